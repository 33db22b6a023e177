"""Tokens as a reader sees them: how each one reads, and where one cuts through a letter.

Letters are shown as letters, and bytes only where a token is part of a character. ``ক্ষ`` in two tokens is cut.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

from kotha.text.akshara import aksharas, starts_dependent
from kotha.text.tokenizer.tokenizer import Tokenizer

_DOTTED_CIRCLE = "\u25cc"
_SPACES = str.maketrans({" ": "␣", "\n": "⏎", "\t": "⇥", "\r": "␍"})
_JOINERS = str.maketrans({"\u200d": "‹zwj›", "\u200c": "‹zwnj›"})


@dataclass(frozen=True)
class ViewedToken:
    """A token of a text: its id, how it reads, and whether it is only part of a character."""

    id: int
    text: str
    part: bool


@dataclass(frozen=True)
class CutToken(ViewedToken):
    """A token of a text, and whether it ends inside a letter."""

    bytes: int
    cut: bool


def view(tokenizer: Tokenizer, text: str) -> list[ViewedToken]:
    """The tokens of a text, readable.

    Spaces are shown as ␣; a sign without its letter stands on ◌; part of a character is shown as hex.
    """
    return [view_token(tokenizer, token) for token in tokenizer.encode(text)]


def view_token(tokenizer: Tokenizer, token: int) -> ViewedToken:
    """One token, readable."""
    if tokenizer.special.get("unk") == token:
        return ViewedToken(token, "‹unknown›", False)
    data = tokenizer.token_bytes(token)
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return ViewedToken(token, data.hex(" ").upper(), True)
    if starts_dependent(text) and text[0] not in "\u200c\u200d":
        text = _DOTTED_CIRCLE + text
    # A joiner inside a letter does its work unseen; alone, or at an edge, it is worth showing.
    at_edge = text.strip("\u200c\u200d") != text
    return ViewedToken(token, text.translate(_SPACES | _JOINERS if at_edge else _SPACES), False)


def view_cuts(tokenizer: Tokenizer, text: str) -> list[CutToken]:
    """The tokens of a text, readable, and where one cuts through a letter."""
    ids = tokenizer.encode(text)
    return [
        CutToken(**vars(view_token(tokenizer, token)), bytes=len(tokenizer.token_bytes(token)), cut=cut)
        for token, cut in zip(ids, ends_inside(tokenizer, text, ids), strict=True)
    ]


def ends_inside(tokenizer: Tokenizer, text: str, ids: Sequence[int]) -> list[bool]:
    """Whether each token of a text, as it was encoded, ends inside a letter.

    Counted in bytes, so that half a character counts too; by the tokenizer's own word for one that loses some of it.
    """
    normalized = tokenizer.normalize(text)
    if tokenizer.decode(ids) != normalized:
        prepared = tokenizer.normalizer(text) if tokenizer.normalizer else text
        letter_ends = {0, *accumulate(map(len, aksharas(prepared)))}
        return [end not in letter_ends for _, _, end in tokenizer.spans(text)]
    letter_ends = set(accumulate(len(letter.encode()) for letter in aksharas(normalized)))
    ends = list(accumulate(len(tokenizer.token_bytes(token)) for token in ids))
    # A tokenizer that puts a space before the first word counts one byte more than the text has.
    extra = ends[-1] - len(normalized.encode()) if ends else 0
    return [end > extra and end - extra not in letter_ends for end in ends]
