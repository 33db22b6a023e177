"""A question of the quiz, and what all are about: a preset's sizes, the course's recipe, and a sheet."""

from dataclasses import dataclass
from typing import Any

from kotha.errors import UsageError
from kotha.inside.exercises.grading import Expected
from kotha.inside.worksheet.sheet import Sheet
from kotha.inside.worksheet.workshop import sheet_by_hand
from kotha.model.config import GPTConfig
from kotha.model.presets import preset as config_of
from kotha.train.config import TrainConfig
from kotha.train.recipes import recipe
from kotha.wording import Words

# What training took where the workshop measured it.
_MEASURED_GIGABYTES = {"bangla-58m": 4.33}


@dataclass(frozen=True)
class Question:
    """One thing to answer: graded where ``expected`` is given, else compared by the student with ``model_answer``."""

    id: str  # its number in the workshop, and which part of it: 2c, 9a-2
    text: Words
    worked: tuple[Words, ...]  # how one gets there, line by line; of an open question, a model answer
    expected: Expected | None = None
    shows: tuple[str, ...] = ()  # matrices of the sheet that one needs to answer
    lines: tuple[str, ...] = ()  # for a matrix, the arithmetic of each cell, to show the one that went wrong

    @property
    def number(self) -> int:
        """The workshop's number of it."""
        return int("".join(character for character in self.id[:2] if character.isdigit()))


@dataclass(frozen=True)
class Setting:
    """The sizes that the answers are computed for."""

    sheet: Sheet  # of questions 1 to 5
    config: GPTConfig
    batch_size: int
    course: TrainConfig  # its steps are max_iters, which the workshop does not say
    measured_gigabytes: float | None  # what training took on a GPU, where the workshop says it
    training: tuple[int, int] = (7_270, 2_312_741)  # samples and tokens, as the workshop counts them
    validation: tuple[int, int] = (383, 122_216)
    iterations: int = 8_500  # how far the workshop's model was trained
    losses: tuple[float, float] = (2.6058, 4.0778)
    new_tokens: int = 150  # how many to write, in question 8

    @property
    def sizes(self) -> dict[str, int]:
        """The model's sizes, as the texts of the questions call them."""
        config = self.config
        return {
            "batch": self.batch_size,
            "length": config.context_length,
            "layers": config.n_layers,
            "heads": config.n_heads,
            "d_head": config.d_head,
            "joined": config.n_heads * config.d_head,
            "width": config.d_model,
            "inner": config.d_ff,
            "vocabulary": config.vocab_size,
        }

    def ask(
        self, id: str, en: str, bn: str, *worked: Words | str, expected: Expected | None = None, **values: Any
    ) -> Question:
        """A question in two languages, with these sizes and further ``values`` put in; a line of digits is no Words."""
        values = {**self.sizes, **values}
        lines = tuple(Words(each, each) if isinstance(each, str) else each.fill(**values) for each in worked)
        return Question(id, Words(en, bn).fill(**values), lines, expected)


def make_setting(
    preset: str = "bangla-58m", batch_size: int = 64, steps: int | None = None, size: str | None = None, seed: int = 0
) -> Setting:
    """The workshop's own, or other sizes: ``size`` and ``seed`` draw another sheet, as in ``sheet_by_hand``."""
    config = config_of(preset)
    if not isinstance(config, GPTConfig):
        raise UsageError(f"the questions are about a GPT, and {preset} is a {config.family}; try gpt2")
    if batch_size < 1:
        raise UsageError(f"batch_size={batch_size} is no batch; use 1 or more")
    changes: dict[str, Any] = {} if steps is None else {"steps": steps}
    course = recipe("course", **changes)
    return Setting(sheet_by_hand(size, seed), config, batch_size, course, _MEASURED_GIGABYTES.get(preset))
