"""A sum typed instead of its result: ``1.0×0.2 + 0.5×0.1``, ``0.37/1.414``, ``e^0.5 / (e^0.5 + 1)``.

Whoever types the way has given the number exactly. What is no sum, or only half of one, is not guessed at: None. The
page reads the same by ``web/src/math/sums.ts``; one list of cases holds both.
"""

import math
import re

from kotha.i18n.numbers import ascii_digits

_PIECE = re.compile(r"\s*(\d+\.?\d*|\.\d+|[-+*/^()√e])")
_SPELLED = ((re.compile(r"\bexp\s*(?=\()"), "e^"), (re.compile(r"\bsqrt\b"), "√"), (re.compile(r"\*\*"), "^"))
_SIGNS = str.maketrans({"−": "-", "–": "-", "×": "*", "·": "*", "x": "*", "÷": "/", "[": "(", "]": ")"})
# A number, or one with a power of ten: its digits say how exactly it is meant, so it is read as a number.
_BARE = re.compile(r"[-+]?\s*(?:\d+\.?\d*|\.\d+)(?:\s*\*\s*10\s*\^\s*\(?[-+]?\d+\)?)?")
_LONGEST, _DEEPEST = 400, 40


def worked_sum(text: str) -> float | None:
    """What a typed sum comes to; None for a bare number and for what is no sum.

    >>> worked_sum("১.০×০.২ + ০.৫×০.১"), worked_sum("0.25"), worked_sum("2 +")
    (0.25, None, None)
    """
    plain = ascii_digits(text).lower().rpartition("=")[2]
    for spelled, sign in _SPELLED:
        plain = spelled.sub(sign, plain)
    plain = plain.translate(_SIGNS).strip()
    if len(plain) > _LONGEST or _BARE.fullmatch(plain):
        return None
    pieces = _PIECE.findall(plain)
    if not pieces or _PIECE.sub("", plain).strip():
        return None
    reader = _Reader(pieces)
    try:
        value = reader.sum()
    except (ArithmeticError, ValueError):
        return None
    return value if reader.at == len(pieces) and math.isfinite(value) else None


class _Reader:
    """Reads pieces from the left: sums of products of powers, each deeper one in brackets."""

    def __init__(self, pieces: list[str]) -> None:
        self.pieces, self.at, self.depth = pieces, 0, 0

    def sum(self) -> float:
        value = self.product()
        while self._next() in ("+", "-"):
            value += self.product() if self._take() == "+" else -self.product()
        return value

    def product(self) -> float:
        value = self.signed()
        while self._next() in ("*", "/"):
            value = value * self.signed() if self._take() == "*" else value / self.signed()
        return value

    def signed(self) -> float:
        self.depth += 1
        if self.depth > _DEEPEST:
            raise ValueError("too deep")
        if self._next() in ("+", "-"):
            value = self.signed() if self._take() == "+" else -self.signed()
        else:
            value = self.power()
        self.depth -= 1
        return value

    def power(self) -> float:
        base = self.atom()
        if self._next() != "^":
            return base
        self._take()
        raised = base ** self.signed()
        if isinstance(raised, complex):
            raise ValueError("a root of a negative number")
        return float(raised)

    def atom(self) -> float:
        piece = self._take()
        if piece == "(":
            value = self.sum()
            if self._take() != ")":
                raise ValueError("a bracket is open")
            return value
        if piece == "√":
            return math.sqrt(self.atom())
        return math.e if piece == "e" else float(piece)

    def _next(self) -> str:
        return self.pieces[self.at] if self.at < len(self.pieces) else ""

    def _take(self) -> str:
        piece = self._next()
        self.at += 1
        return piece
