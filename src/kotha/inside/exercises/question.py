"""A question of the quiz, and what the questions are about."""

from collections.abc import Callable
from dataclasses import dataclass

from kotha.inside.exercises.grading import Expected
from kotha.inside.worksheet.sheet import Sheet
from kotha.model.config import GPTConfig
from kotha.wording import Words


@dataclass(frozen=True)
class Setting:
    """The sizes that the answers are computed for."""

    sheet: Sheet
    """Of questions 1 to 5."""
    config: GPTConfig
    batch_size: int
    learning_rate: float
    warmup_steps: int
    steps: int
    """max_iters, which the workshop does not say."""
    rate_at: Callable[[int], float]
    """The learning rate at an iteration."""
    training: tuple[int, int] = (7_270, 2_312_741)
    """Samples and tokens, as the workshop counts them."""
    validation: tuple[int, int] = (383, 122_216)
    iterations: int = 8_500
    """How far the workshop's model was trained."""
    losses: tuple[float, float] = (2.6058, 4.0778)
    new_tokens: int = 150
    """How many to write, in question 8."""
    measured_gigabytes: float | None = None
    """What training took on a GPU, where the workshop says it."""


@dataclass(frozen=True)
class Question:
    """One thing to answer: graded where ``expected`` is given, else compared by the student with ``model_answer``."""

    id: str
    """Its number in the workshop, and which part of it: 2c, 9a-2."""
    text: Words
    worked: tuple[Words, ...]
    """How one gets there, line by line; of an open question, a model answer."""
    expected: Expected | None = None
    shows: tuple[str, ...] = ()
    """Matrices of the sheet that one needs to answer."""
    lines: tuple[str, ...] = ()
    """For a matrix, the arithmetic of each cell, to show the one that went wrong."""

    @property
    def number(self) -> int:
        """The workshop's number of it."""
        return int("".join(character for character in self.id[:2] if character.isdigit()))
