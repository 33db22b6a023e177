"""The sampling settings of a request, such as temperature, top-k and top-p, validated on construction.

``None`` disables a setting. ``plain.py`` documents the order in which the settings are applied. This module does not
import torch.
"""

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from kotha.errors import UsageError
from kotha.i18n.message import Option
from kotha.model.fields import LARGEST_SEED

_OUT_OF_RANGE = "{setting} is out of range; use a number above 0 and up to 1, or omit the setting"
_HOTTEST = 1e6
# A test for each setting's value, and the error message if the test fails.
_RULES: dict[str, tuple[Callable[[Any], bool], str]] = {
    "temperature": (
        lambda value: 0 <= value <= _HOTTEST,
        "{setting} is out of range; use 0 (always the most likely token) or more; 0.8 is typical",
    ),
    "top_k": (lambda value: value >= 1, "{setting} is out of range; use 1 or more, or omit the setting"),
    "top_p": (lambda value: 0 < value <= 1, _OUT_OF_RANGE),
    "min_p": (lambda value: 0 < value <= 1, _OUT_OF_RANGE),
    "repetition_penalty": (
        lambda value: 0 < value <= 100,
        "{setting} is out of range; use a number above 0 and up to 100, such as 1.1, or omit the setting",
    ),
    "seed": (lambda value: 0 <= value <= LARGEST_SEED, "{setting} must be an integer from 0 to {most}"),
}


@dataclass(frozen=True, kw_only=True)
class SamplingSettings:
    """Settings for sampling the tokens of a request.

    >>> SamplingSettings(top_p=1.5)
    Traceback (most recent call last):
    ...
    kotha.errors.UsageError: top_p=1.5 is out of range; use a number above 0 and up to 1, or omit the setting
    """

    temperature: float = 0.8  # 0: always the most likely token; 1: the model's distribution; above 1: flatter
    top_k: int | None = 40  # sample from this number of most likely tokens
    top_p: float | None = None  # sample from the fewest most likely tokens that together have this probability
    min_p: float | None = None  # sample from tokens with at least this share of the most likely token's probability
    repetition_penalty: float | None = 1.1  # values above 1 make tokens that are already in the text less likely
    seed: int = 0  # the same seed gives the same text, alone or in a batch

    def __post_init__(self) -> None:
        for name, (fits, problem) in _RULES.items():
            value = getattr(self, name)
            if value is not None and not fits(value):
                raise UsageError(problem, setting=Option(name, value), most=LARGEST_SEED)

    @property
    def greedy(self) -> bool:
        """Whether the most likely token is always chosen."""
        return self.temperature == 0


def uniforms(seed: int) -> Iterator[float]:
    """Yield a random number in [0, 1) for each step, without end.

    The numbers equal those of ``torch.rand`` with this seed: 24 bits of each output of a Mersenne Twister (Matsumoto
    and Nishimura 1998), seeded by its authors' ``init_genrand``.

    >>> numbers = uniforms(0)
    >>> round(next(numbers), 4), round(next(numbers), 4)
    (0.4963, 0.7682)
    """
    state = [seed & 0xFFFFFFFF]
    for index in range(1, 624):
        state.append((1812433253 * (state[-1] ^ state[-1] >> 30) + index) & 0xFFFFFFFF)
    twister = random.Random()
    twister.setstate((3, (*state, 624), None))  # 3: the version of the format
    while True:
        yield (twister.getrandbits(32) & 0xFFFFFF) / (1 << 24)
