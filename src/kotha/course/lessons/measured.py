"""How a lesson is taught: models are trained seed by seed, measured, and the figures read in words.

A lesson says which models learn what (``tasks``) and what is measured of each (``measures``); its columns, its sizes,
what the figures mean and its words are data.
"""

import platform
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from functools import cached_property, partial
from keyword import iskeyword
from types import SimpleNamespace
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from kotha import __version__
from kotha.course.exercises.formula import calculate
from kotha.course.lessons.classroom import Classroom, Sizes, classroom
from kotha.course.lessons.learning import Assignment, Taught, curve, held_out_loss, learn, parameters_of
from kotha.course.lessons.measuring import let_write
from kotha.course.lessons.result import Condition, LessonResult, Line, Sample, both
from kotha.errors import UsageError
from kotha.i18n.message import Bilingual, Option
from kotha.training.device import describe_machine

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

    def values(self, rows: Rows) -> dict[str, Any]:
        """What sentences name besides figures, and what ``lessons.json`` does not work out."""
        return {}

    def title(self, key: str) -> Bilingual:
        """A condition in words."""
        return self.words[key]

    def samples(self, found: Mapping[str, list[Taught]]) -> list[Sample]:
        """Texts to show."""
        return []

    def on_text(self, build: Callable[..., nn.Module], **changes: Any) -> Assignment:
        """A model of the classroom's config, or of one with changes, that learns the classroom's texts."""
        return Assignment(partial(build, self.room.gpt(**changes)), self.room)

    def read(self, rows: Rows) -> list[Bilingual]:
        """What the figures say, whatever they are: ``{mask.held_out}`` of a sentence is a condition's mean."""
        first, *others = rows.values()
        if "held_out" in first.figures:
            rows = {**rows, "best": min(others, key=lambda each: each.mean("held_out"))}
        values = self.values(rows)
        seeds = {**values, **{key: _by_seed(row) for key, row in rows.items()}}
        seeds |= {f"{key}_": row for key, row in seeds.items() if iskeyword(key)}
        for name, formula in self.told.get("values", {}).items():
            values[name] = seeds[name] = calculate(formula, seeds)
        means = {key: SimpleNamespace(**{each: row.mean(each) for each in row.figures}) for key, row in rows.items()}
        chosen = (_chosen(entry, seeds) for entry in self.told["reading"])
        return [self.words[key].fill(**means, **values) for key in chosen if key]

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
        axes = self.told.get("axes", ("on_the_way", "steps", "nats"))
        about = {
            "machine": describe_machine(torch.device("cpu")),
            "versions": {"kotha": __version__, "python": platform.python_version(), "torch": torch.__version__},
            "sizes": asdict(self.sizes),
            "seeds": list(self.seeds),
            "seconds": round(time.perf_counter() - began, 1),
            "processor_seconds": round(time.process_time() - worked, 1),  # of all cores; says more on a busy machine
        }
        figure = {"digits": 2, "better": "low", "percent": False}
        drawing = {
            **{name: both(self.words[key]) for name, key in zip(("title", "x", "y"), axes, strict=True)},
            "lines": [{"title": both(title), "points": list(points)} for title, points in lines],
            "from_zero": self.told.get("from_zero", False),
        }
        return LessonResult(
            {
                "lesson": self.name,
                "figures": [
                    {"key": each["key"], "title": both(self.words[each["key"]]), **figure, **each}
                    for each in self.told["figures"]
                ],
                "conditions": [row.to_dict() for row in rows],
                "reading": [both(sentence) for sentence in self.read({row.key: row for row in rows})],
                "drawing": drawing,
                "samples": [{"title": both(title), "text": text} for title, text in samples],
                "about": {**about, **self.about},
            }
        )

    def first_texts(self, found: Mapping[str, list[Taught]]) -> list[Sample]:
        """What the first model of each condition wrote."""
        firsts = {key: let_write(runs[0].model, self.room, runs[0].seed) for key, runs in found.items()}
        return [(self.title(key), each.texts[0]) for key, each in firsts.items()]


def _by_seed(row: Condition) -> SimpleNamespace:
    return SimpleNamespace(**{name: np.array(values) for name, values in row.figures.items()})


def _chosen(entry: Any, values: Mapping[str, Any]) -> str | None:
    """Which sentence an entry of the reading says: itself, or one ``when`` all of that holds, or else another."""
    if entry is None or isinstance(entry, str):
        return entry
    holds = all(calculate(formula, values) for formula in entry["when"])
    return _chosen(entry["say"] if holds else entry.get("else"), values)
