"""A question, and what all are about: a preset's sizes, the course's recipe, a sheet, and counts of a training.

The numbers are the workshop's, or drawn by a seed, so that no two students have the same.
"""

import random
from dataclasses import dataclass, replace
from typing import Any

from kotha.course.exercises.grading import Expected
from kotha.course.exercises.hints import HINTS
from kotha.course.exercises.ordering import Flowchart
from kotha.course.exercises.rubric import Rubric
from kotha.course.exercises.rubrics import RUBRICS
from kotha.course.worksheet.sheet import Sheet
from kotha.course.worksheet.workshop import sheet_of_student
from kotha.errors import UsageError
from kotha.i18n.wording import Words
from kotha.model.config import GPTConfig
from kotha.model.presets import preset as config_of
from kotha.training.config import TrainConfig
from kotha.training.recipes import recipe

# What training took where the workshop measured it.
_MEASURED_GIGABYTES = {"bangla-58m": 4.33}
_BATCH_SIZE = 64
_MOST_SEED = 2**32


@dataclass(frozen=True)
class Slip:
    """A wrong way that people take to a number, with where it leads, and what to say of it."""

    name: str
    words: Words
    values: tuple[float, ...]


@dataclass(frozen=True)
class Question:
    """One thing to answer: numbers (``expected``), an order of pieces (``order``), or one's own words (``rubric``)."""

    id: str  # its number in the workshop, and which part of it: 2c, 9a-2
    text: Words
    worked: tuple[Words, ...]  # how one gets there, line by line; of an open question, a model answer
    expected: Expected | None = None
    shows: tuple[str, ...] = ()  # matrices of the sheet that one needs to answer
    lines: tuple[str, ...] = ()  # for a matrix, the arithmetic of each cell, to show the one that went wrong
    step: str = ""  # which step of the sheet is asked for, and which row, where it is not all
    row: int | None = None
    slips: tuple[Slip, ...] = ()
    hints: tuple[Words, ...] = ()
    rubric: Rubric | None = None
    order: Flowchart | None = None
    points: int = 0
    bonus: bool = False  # its points are not among those that make the whole

    @property
    def number(self) -> int:
        """The workshop's number of it."""
        return int("".join(character for character in self.id[:2] if character.isdigit()))

    @property
    def weight(self) -> int:
        """How much work it is beside the other parts of its number."""
        return 3 if self.step or self.order else 2 if self.rubric else 1


@dataclass(frozen=True)
class Setting:
    """The sizes that the answers are computed for."""

    sheet: Sheet  # of questions 1 to 5
    config: GPTConfig
    batch_size: int
    course: TrainConfig  # its steps are max_iters, which the workshop does not say
    measured_gigabytes: float | None  # what training took on a GPU, where the workshop says it
    seed: int | None = None  # by which the numbers were drawn; None for the workshop's own
    training: tuple[int, int] = (7_270, 2_312_741)  # samples and tokens, as the workshop counts them
    validation: tuple[int, int] = (383, 122_216)
    iterations: int = 8_500  # how far the workshop's model was trained
    losses: tuple[float, float] = (2.6058, 4.0778)
    rate_steps: tuple[int, int] = (500, 10_000)  # at which the learning rate is asked for
    true_token: int = 5432  # the next one, in question 7
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
        hints = tuple(hint.fill(**values) for hint in HINTS.get(id, ()))
        rubric = RUBRICS.get(id) if expected is None else None
        return Question(id, Words(en, bn).fill(**values), lines, expected, hints=hints, rubric=rubric)


def make_setting(
    preset: str = "bangla-58m",
    batch_size: int | None = None,
    steps: int | None = None,
    size: str | None = None,
    seed: int | None = None,
) -> Setting:
    """The workshop's own numbers, or other ones: ``size`` of the sheet, and a ``seed`` that draws them all."""
    config = config_of(preset)
    if not isinstance(config, GPTConfig):
        raise UsageError(f"the questions are about a GPT, and {preset} is a {config.family}; try gpt2")
    if batch_size is not None and batch_size < 1:
        raise UsageError(f"batch_size={batch_size} is no batch; use 1 or more")
    if seed is not None and not 0 <= seed < _MOST_SEED:
        raise UsageError(f"seed={seed} is no seed; use 0 to {_MOST_SEED - 1}")
    changes: dict[str, Any] = {} if steps is None else {"steps": steps}
    course, sheet = recipe("course", **changes), sheet_of_student(size, seed)
    setting = Setting(sheet, config, batch_size or _BATCH_SIZE, course, _MEASURED_GIGABYTES.get(preset))
    return setting if seed is None else _drawn(setting, seed, batch_size)


def _drawn(setting: Setting, seed: int, batch_size: int | None) -> Setting:
    """Other counts of a training, of the workshop's kind."""
    draw = random.Random(seed)
    samples, held_out = draw.randint(3_000, 9_999), draw.randint(160, 520)
    each = draw.uniform(240, 400)
    loss = draw.uniform(2.2, 3.0)
    return replace(
        setting,
        seed=seed,
        batch_size=batch_size or draw.choice((16, 24, 32, 40, 48, 56, 72, 80, 96)),
        measured_gigabytes=None,
        training=(samples, round(samples * each)),
        validation=(held_out, round(held_out * (each + draw.uniform(-4, 4)))),
        iterations=draw.randrange(4_000, 12_001, 500),
        losses=(round(loss, 4), round(loss + draw.uniform(1.0, 1.8), 4)),
        rate_steps=(draw.randrange(150, 951, 50), draw.randrange(4_000, 16_001, 500)),
        true_token=draw.randint(100, setting.config.vocab_size - 1),
        new_tokens=draw.randrange(60, 241, 10),
    )
