"""What people call a job, and the words that they find it by (tags).

A tag is one line that can be read: what cannot be seen, or turns the writing around, would only look like another.
"""

import unicodedata
from typing import Annotated

from pydantic import AfterValidator, Field

from kotha.server.validation import FieldError

LONGEST_NAME, LONGEST_TAG, MOST_TAGS = 200, 40, 12
# Bangla needs them inside words, as in র‍্যাম; nothing else that is invisible is needed by any.
_JOINERS = "\u200c\u200d"
_BETWEEN = ","  # parts one tag from the next where they are typed


def seen_name(name: str) -> str:
    """What can be seen of a name that nobody typed, such as a file's: it is not refused, but tidied and cut.

    >>> seen_name("report\u202efdp.txt\\x00")
    'reportfdp.txt'
    """
    seen = "".join(letter for letter in name if letter.isspace() or not _unseen(letter))
    return unicodedata.normalize("NFC", " ".join(seen.split()))[:LONGEST_NAME]


def tidy_name(name: str, longest: int = LONGEST_NAME) -> str:
    """A name as it is kept: one line, NFC, single spaces.

    >>> tidy_name("  ছোট   মডেল ")
    'ছোট মডেল'
    """
    for letter in name:
        if _unseen(letter) and not letter.isspace():
            raise FieldError(
                "it has a letter that cannot be seen, {letter}; leave it out", letter=f"U+{ord(letter):04X}"
            )
    tidy = unicodedata.normalize("NFC", " ".join(name.split()))  # which makes two of some letters, as of য়
    if len(tidy) > longest:
        raise FieldError("it has {n} letters, and may have {longest}; shorten it", n=len(tidy), longest=longest)
    return tidy


def tidy_tag(tag: str) -> str:
    """A tag as it is kept, as a name; it is not empty, and has no comma.

    >>> tidy_tag("ছোট, বড়")
    Traceback (most recent call last):
    ...
    kotha.server.validation.FieldError: a tag has no comma: commas part one tag from the next
    """
    tidy = tidy_name(tag, LONGEST_TAG)
    if not tidy.strip(_JOINERS):
        raise FieldError("a tag is empty; leave it out")
    if _BETWEEN in tidy:
        raise FieldError("a tag has no comma: commas part one tag from the next")
    return tidy


def _unseen(letter: str) -> bool:
    return unicodedata.category(letter).startswith("C") and letter not in _JOINERS


def _each_once(tags: list[str]) -> list[str]:
    return list(dict.fromkeys(tags))


SeenName = Annotated[str, AfterValidator(seen_name)]
Name = Annotated[str, Field(max_length=LONGEST_NAME), AfterValidator(tidy_name)]
Tag = Annotated[str, Field(min_length=1, max_length=LONGEST_TAG), AfterValidator(tidy_tag)]
Tags = Annotated[list[Tag], Field(max_length=MOST_TAGS, fail_fast=True), AfterValidator(_each_once)]
