"""A question of the quiz."""

from dataclasses import dataclass

from kotha.inside.exercises.grading import Expected
from kotha.wording import Words


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
