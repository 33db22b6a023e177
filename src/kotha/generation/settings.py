"""How the next token is chosen: temperature, top-k, top-p and the like, one frozen set a request, checked when made.

``None`` means off. The order in which they act is that of ``plain.py``: what was said before is made less likely, some
tokens are ruled out, the scores are sharpened or flattened, the unlikely end is cut off three ways, and one token is
drawn. Nothing here imports torch.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from kotha.errors import UsageError
from kotha.i18n.message import Option
from kotha.model.fields import LARGEST_SEED

_SHARE = "{setting} is out of range; use a number above 0 and up to 1, or omit it"
_HOTTEST = 1e6
# What each setting may be, and what is said of any other value.
_RULES: dict[str, tuple[Callable[[Any], bool], str]] = {
    "temperature": (
        lambda value: 0 <= value <= _HOTTEST,
        "{setting} is out of range; use 0 (always the best token) or more; 0.8 is typical",
    ),
    "top_k": (lambda value: value >= 1, "{setting} is out of range; use 1 or more, or omit it"),
    "top_p": (lambda value: 0 < value <= 1, _SHARE),
    "min_p": (lambda value: 0 < value <= 1, _SHARE),
    "repetition_penalty": (
        lambda value: 0 < value <= 100,
        "{setting} is out of range; use a number above 0 and up to 100, such as 1.1, or omit it",
    ),
    "seed": (lambda value: 0 <= value <= LARGEST_SEED, "{setting} must be a whole number from 0 to {most}"),
}


@dataclass(frozen=True, kw_only=True)
class SamplingSettings:
    """How one request draws its tokens.

    >>> SamplingSettings(top_p=1.5)
    Traceback (most recent call last):
    ...
    kotha.errors.UsageError: top_p=1.5 is no share; use a number above 0 and up to 1, or leave it out
    """

    temperature: float = 0.8  # 0 always takes the best token, 1 draws as the model says, more is wilder
    top_k: int | None = 40  # draw among this many of the best tokens
    top_p: float | None = None  # draw among the fewest best tokens that together have this probability
    min_p: float | None = None  # draw among tokens at least this likely, as a share of the best one's probability
    repetition_penalty: float | None = 1.1  # above 1, tokens that the text already has become less likely
    seed: int = 0  # the same seed gives the same text, alone or beside others

    def __post_init__(self) -> None:
        for name, (fits, problem) in _RULES.items():
            value = getattr(self, name)
            if value is not None and not fits(value):
                raise UsageError(problem, setting=Option(name, value), most=LARGEST_SEED)

    @property
    def greedy(self) -> bool:
        """Whether nothing is left to chance."""
        return self.temperature == 0
