"""What a corpus should be rid of before it is learned from: copies, leaks between splits, other languages.

Give these functions text that is already normalised: two spellings of one letter are two words to them.
"""

from kotha.text.clean.duplicates import DEFAULT_THRESHOLD, ExactDuplicates, Match, NearDuplicates
from kotha.text.clean.language import count_scripts, is_language, language_of, language_share
from kotha.text.clean.leakage import LeakIndex
from kotha.text.clean.shingles import count_words, shingle_hashes

__all__ = [
    "DEFAULT_THRESHOLD",
    "ExactDuplicates",
    "LeakIndex",
    "Match",
    "NearDuplicates",
    "count_scripts",
    "count_words",
    "is_language",
    "language_of",
    "language_share",
    "shingle_hashes",
]
