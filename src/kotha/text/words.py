"""Words, counted in one way wherever a figure tells of them: what white space separates in a normalized text.

This is how tokens a word (fertility) are counted elsewhere, and it needs no decision about what a hyphen or a danda is.
Where words are compared and not counted (``clean/shingles.py``) they are runs of letters.
"""


def count_words(text: str) -> int:
    """How many words a text has.

    >>> count_words("আমি বাংলায় গান গাই।")
    4
    """
    return len(text.split())
