"""How a lesson is taught: models are trained seed by seed, measured, and the figures read in words.

A lesson says which models learn what (``tasks``), what is measured of each (``measures``) and what the figures mean
(``read``); its columns, sizes and words are data.
"""

import platform
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from functools import cached_property, partial
from types import SimpleNamespace
from typing import Any

import torch
from torch import Tensor, nn

from kotha import __version__
from kotha.course.lessons.classroom import Classroom, Sizes, classroom
from kotha.course.lessons.learning import Assignment, Taught, curve, held_out_loss, learn, parameters_of
from kotha.course.lessons.measuring import let_write
from kotha.course.lessons.result import Condition, Drawing, Figure, LessonResult, Line, Sample
from kotha.errors import UsageError
from kotha.i18n.message import Bilingual, Option
from kotha.training.device.hardware import describe_machine

_MOST_SEEDS = 100
Measure = Callable[[Taught], float]
Rows = Mapping[str, Condition]


class MeasuredLesson(ABC):
    """One lesson, with its sizes and seeds."""

    def __init__(
        self,
        name: str,
        told: Mapping[str, Any],
        words: Mapping[str, Bilingual],
        seeds: Sequence[int],
        sizes: Mapping[str, Any],
    ) -> None:
        if not 1 <= len(seeds) <= _MOST_SEEDS:
            given = Option("seeds", len(seeds))
            raise UsageError("{seeds}: give 1 to {most}; 3 show what chance does", seeds=given, most=_MOST_SEEDS)
        self.name, self.told, self.words = name, told, words
        self.seeds, self.sizes = seeds, Sizes(**{**self.told.get("sizes", {}), **sizes})
        self.about: dict[str, Any] = {}  # what else is to be kept
        self.tell: Callable[[int, int], None] = lambda done, total: None
        self.done, self.total = 0, 0

    @cached_property
    def room(self) -> Classroom:
        """The texts."""
        return classroom(self.sizes)

    @cached_property
    def windows(self) -> Tensor:
        """Held-out text."""
        return self.room.windows()

    @abstractmethod
    def tasks(self) -> Mapping[str, Assignment]:
        """What is trained, by the keys of the conditions."""

    def measures(self) -> dict[str, Measure]:
        """What is measured, besides what ``figures`` always knows."""
        return {}

    @abstractmethod
    def read(self, rows: Rows) -> list[Bilingual]:
        """What the figures say, whatever they are."""

    def title(self, key: str) -> Bilingual:
        """A condition in words."""
        return self.words[key]

    def samples(self, found: Mapping[str, list[Taught]]) -> list[Sample]:
        """Texts to show."""
        return []

    def on_text(self, build: Callable[..., nn.Module], **changes: Any) -> Assignment:
        """A model of the classroom's config, or of one with changes, that learns the classroom's texts."""
        return Assignment(partial(build, self.room.gpt(**changes)), self.room)

    def say(self, key: str, rows: Rows, **more: Any) -> Bilingual:
        """A sentence with its figures: ``{with.held_out}`` is a mean of the condition ``with``."""
        means = {name: SimpleNamespace(**{each: row.mean(each) for each in row.figures}) for name, row in rows.items()}
        return self.words[key].fill(**means, **more)

    def step(self) -> None:
        """One step more is done."""
        self.done += 1
        self.tell(self.done, self.total)

    def train(self, tasks: Mapping[str, Assignment]) -> dict[str, list[Taught]]:
        """Every task with every seed, seed by seed: what slows a machine for a while slows all alike."""
        self.total = len(self.seeds) * sum(task.steps or self.sizes.steps for task in tasks.values())
        found: dict[str, list[Taught]] = {key: [] for key in tasks}
        for seed in self.seeds:
            for key, task in tasks.items():
                found[key].append(learn(task, self.sizes, seed, self.step))
        return found

    def conditions(self, found: Mapping[str, list[Taught]]) -> list[Condition]:
        """A row for each condition: every measure of every run."""
        usual: dict[str, Measure] = {
            "training": lambda run: run.training_loss,
            "held_out": lambda run: held_out_loss(run.model, self.windows),
            "parameters": lambda run: parameters_of(run.model),
            "words": lambda run: let_write(run.model, self.room, run.seed).share,
        }
        measures = {**usual, **self.measures()}
        columns = [figure["key"] for figure in self.told["figures"]]
        return [
            Condition(key, self.title(key), {name: [measures[name](run) for run in runs] for name in columns})
            for key, runs in found.items()
        ]

    def measure(self) -> tuple[list[Condition], list[Line], list[Sample]]:
        """The rows, the lines of the picture, the texts."""
        found = self.train(self.tasks())
        rows = self.conditions(found)
        return rows, [curve(row.title, found[row.key]) for row in rows if row.key in found], self.samples(found)

    def run(self, tell: Callable[[int, int], None]) -> LessonResult:
        """All that came of it, with the machine, the versions, the sizes that were asked for, and its time."""
        self.tell = tell
        began, worked = time.perf_counter(), time.process_time()
        rows, lines, samples = self.measure()
        title, x, y = (self.words[key] for key in self.told.get("axes", ("on_the_way", "steps", "nats")))
        about = {
            "machine": describe_machine(torch.device("cpu")),
            "versions": {"kotha": __version__, "python": platform.python_version(), "torch": torch.__version__},
            "sizes": asdict(self.sizes),
            "seeds": list(self.seeds),
            "seconds": round(time.perf_counter() - began, 1),
            "processor_seconds": round(time.process_time() - worked, 1),  # of all cores; says more on a busy machine
        }
        return LessonResult(
            self.name,
            [Figure(title=self.words[each["key"]], **each) for each in self.told["figures"]],
            rows,
            self.read({row.key: row for row in rows}),
            Drawing(title, x, y, lines, from_zero=self.told.get("from_zero", False)),
            samples,
            {**about, **self.about},
        )

    def first_texts(self, found: Mapping[str, list[Taught]]) -> list[Sample]:
        """What the first model of each condition wrote."""
        firsts = {key: let_write(runs[0].model, self.room, runs[0].seed) for key, runs in found.items()}
        return [Sample(self.title(key), each.texts[0]) for key, each in firsts.items()]
