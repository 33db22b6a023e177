"""Tokens as a reader would write them: letters as letters, bytes only where a token is part of a character."""

from dataclasses import dataclass

from kotha.text.akshara import starts_dependent
from kotha.text.tokenizer.tokenizer import Tokenizer

_DOTTED_CIRCLE = "\u25cc"
_SPACES = str.maketrans({" ": "␣", "\n": "⏎", "\t": "⇥", "\r": "␍"})
_JOINERS = str.maketrans({"\u200d": "‹zwj›", "\u200c": "‹zwnj›"})


@dataclass(frozen=True)
class ViewedToken:
    """A token of a text: its id, how it reads, and whether it is only part of a character."""

    id: int
    text: str
    is_part: bool


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
