"""Reading backwards: some sequences from their end to their start, as a help on little text.

What came before a token says as much of it as what comes after, so a text gives twice the exercise before it is known
by heart. The mask token, which no text holds, stands before what is read backwards, where the tokenizer has one; and
the last quarter of a run reads as people do. (The same idea against forgetting who was whose mother: reverse training,
https://arxiv.org/abs/2403.13799.)
"""

import numpy as np
from numpy.typing import NDArray

from kotha.text.tokenizer.tokenizer import Tokenizer

_LAST_FORWARDS = 0.25


class Backwards:
    """Turns a share of the sequences around, until the last quarter of the steps; which ones, seed and step decide."""

    def __init__(self, share: float, seed: int, steps: int, tokenizer: Tokenizer) -> None:
        self._share, self._seed, self.steps = share, seed, steps
        self._mark = tokenizer.special.get("mask")

    def turn(self, sequences: NDArray[np.int64], step: int, first: int) -> None:
        """Turn some of the sequences around, which are those of a step's batch from ``first`` on: (B, T + 1)."""
        if not self._share or step >= (1 - _LAST_FORWARDS) * self.steps:
            return
        draw = np.random.default_rng([self._seed, step, 1])
        turned = draw.random(first + len(sequences))[first:] < self._share
        sequences[turned] = sequences[turned, ::-1]
        if self._mark is not None:
            sequences[turned, 0] = self._mark
