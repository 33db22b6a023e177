"""Show tokens in readable form, and whether each ends within an akshara.

A token is shown as text, or as bytes if it is only part of a character. An akshara such as ``ক্ষ`` that spans two
tokens is reported as cut.
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
    """A token of a text: its id, its readable text, and whether it is only part of a character."""

    id: int
    text: str
    part: bool


@dataclass(frozen=True)
class CutToken(ViewedToken):
    """A token of a text, with its number of bytes and whether it ends within an akshara."""

    bytes: int
    cut: bool


def view(tokenizer: Tokenizer, text: str) -> list[ViewedToken]:
    """Return a text's tokens in readable form.

    A space is shown as ␣, a sign without its letter on ◌, and part of a character as hex.
    """
    return [view_token(tokenizer, token) for token in tokenizer.encode(text)]


def view_token(tokenizer: Tokenizer, token: int) -> ViewedToken:
    """Return one token in readable form."""
    if tokenizer.special.get("unk") == token:
        return ViewedToken(token, "‹unknown›", False)
    data = tokenizer.token_bytes(token)
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return ViewedToken(token, data.hex(" ").upper(), True)
    if starts_dependent(text) and text[0] not in "\u200c\u200d":
        text = _DOTTED_CIRCLE + text
    # A joiner is shown only at the start or end of a token; elsewhere its effect is visible.
    at_edge = text.strip("\u200c\u200d") != text
    return ViewedToken(token, text.translate(_SPACES | _JOINERS if at_edge else _SPACES), False)


def view_cuts(tokenizer: Tokenizer, text: str) -> list[CutToken]:
    """Return a text's tokens in readable form, and mark those that end within an akshara."""
    ids = tokenizer.encode(text)
    return [
        CutToken(**vars(view_token(tokenizer, token)), bytes=len(tokenizer.token_bytes(token)), cut=cut)
        for token, cut in zip(ids, ends_inside(tokenizer, text, ids), strict=True)
    ]


def ends_inside(tokenizer: Tokenizer, text: str, ids: Sequence[int]) -> list[bool]:
    """Return, for each token of an encoded text, whether it ends within an akshara.

    Positions are compared in bytes, so that partial characters count too; if decoding is lossy, the tokenizer's spans
    are used.
    """
    normalized = tokenizer.normalize(text)
    if tokenizer.decode(ids) != normalized:
        prepared = tokenizer.normalizer(text) if tokenizer.normalizer else text
        letter_ends = {0, *accumulate(map(len, aksharas(prepared)))}
        return [end not in letter_ends for _, _, end in tokenizer.spans(text)]
    letter_ends = set(accumulate(len(letter.encode()) for letter in aksharas(normalized)))
    ends = list(accumulate(len(tokenizer.token_bytes(token)) for token in ids))
    # If a tokenizer puts a space before the first word, the tokens have one byte more than the text.
    extra = ends[-1] - len(normalized.encode()) if ends else 0
    return [end > extra and end - extra not in letter_ends for end in ends]
