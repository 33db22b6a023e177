"""What a corpus should be rid of before it is learned from: copies, leaks between splits, other languages.

Give these functions text that is already normalised: two spellings of one letter are two words to them.
"""
