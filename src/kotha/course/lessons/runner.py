"""How a lesson is taught: models are trained seed by seed, measured, and the figures read in words.

A lesson is a function of its own name in the module that ``lessons.json`` names: from sizes it makes a ``LessonPlan``,
which models learn what and what is measured of each. Its columns, its sizes, what the figures mean and its words are
data.
"""

import platform
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property, partial
from importlib import import_module
from keyword import iskeyword
from types import SimpleNamespace
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from kotha import __version__
from kotha.course.data import both, calculate
from kotha.course.lessons.catalogue import Lesson, words
from kotha.course.lessons.learning import Assignment, Taught, curve, learn
from kotha.course.lessons.measures import held_out_loss, let_write, parameters_of
from kotha.course.lessons.result import LessonResult, Line, Row, row_of
from kotha.course.lessons.training_data import Classroom, Sizes, classroom
from kotha.errors import UsageError
from kotha.i18n.message import Bilingual, Option
from kotha.training.device import describe_machine

_MOST_SEEDS = 100
Measure = Callable[[Taught], float]
# Figures by condition and column.
Figures = Mapping[str, Mapping[str, float]]


@dataclass(frozen=True)
class LessonPlan:
    """What is trained, by the keys of the conditions, and what is measured of it."""

    tasks: Mapping[str, Assignment] = field(default_factory=dict)
    measures: Mapping[str, Measure] = field(default_factory=dict)  # by column, besides those that all lessons know
    figures: Callable[[Mapping[str, Taught]], Figures] | None = None  # of one seed, where a condition is no model
    lines: Callable[[Mapping[str, Row]], Mapping[str, Line]] | None = None  # left out: the loss on the way
    writes: bool = False  # whether texts of the first models are shown
    samples: Mapping[str, str] = field(default_factory=dict)  # other texts to show
    about: Mapping[str, Any] = field(default_factory=dict)  # what else is to be kept


class MeasuredLesson:
    """One lesson, with its sizes and seeds."""

    def __init__(self, lesson: Lesson, seeds: Sequence[int] = (0, 1, 2), **sizes: Any) -> None:
        if not 1 <= len(seeds) <= _MOST_SEEDS:
            given = Option("seeds", len(seeds))
            raise UsageError(
                "{seeds} is out of range; use 1 to {most} (3 are enough to show the variation)",
                seeds=given,
                most=_MOST_SEEDS,
            )
        if (steps := sizes.get("steps", 1)) < 1:
            given = Option("steps", steps)
            raise UsageError("{given} is too low; use at least 1", given=given)
        self.name, self.told, self.words = lesson.name, lesson.told, words(lesson.name)
        self.seeds, self.sizes = seeds, Sizes(**{**self.told.get("sizes", {}), **sizes})

    @cached_property
    def room(self) -> Classroom:
        """The texts."""
        return classroom(self.sizes)

    @cached_property
    def windows(self) -> Tensor:
        """Held-out text."""
        return self.room.windows()

    @cached_property
    def named(self) -> dict[str, dict[str, Any]]:
        """The numbers by which conditions differ, where their titles and the reading name them."""
        told, sizes = self.told.get("named", {}), asdict(self.sizes)
        return {key: {name: calculate(each, sizes) for name, each in named.items()} for key, named in told.items()}

    def on_text(self, build: Callable[..., nn.Module], **changes: Any) -> Assignment:
        """A model of the classroom's config, or of one with changes, that learns the classroom's texts."""
        return Assignment(partial(build, self.room.gpt(**changes)), self.room)

    def title(self, key: str) -> Bilingual:
        """A condition in words."""
        return self.words[key].fill(**{**asdict(self.sizes), **self.named.get(key, {})})

    def read(self, rows: Mapping[str, Row]) -> list[Bilingual]:
        """What the figures say, whatever they are: ``{mask.held_out}`` of a sentence is a condition's mean."""
        first, *others = rows.values()
        if "held_out" in first["means"]:
            rows = {**rows, "best": min(others, key=lambda row: row["means"]["held_out"])}
        named = {key: self.named.get(row["key"], {}) for key, row in rows.items()}
        means = {key: SimpleNamespace(**named[key], **row["means"]) for key, row in rows.items()}
        seeds: dict[str, Any] = {
            f"{key}_" if iskeyword(key) else key: SimpleNamespace(
                **{name: np.array(values) for name, values in row["figures"].items()}
            )
            for key, row in rows.items()
        }
        values: dict[str, Any] = {}
        for name, formula in self.told.get("values", {}).items():
            values[name] = seeds[name] = calculate(formula, seeds)
        chosen = (_chosen(entry, seeds) for entry in self.told["reading"])
        return [self.words[key].fill(**means, **values) for key in chosen if key]

    def measure(self, plan: LessonPlan, runs: Mapping[str, Taught]) -> Figures:
        """Every figure of one seed."""
        if plan.figures is not None:
            return plan.figures(runs)
        measures: dict[str, Measure] = {
            "training": lambda run: run.training_loss,
            "held_out": lambda run: held_out_loss(run.model, self.windows),
            "parameters": lambda run: parameters_of(run.model),
            "words": lambda run: let_write(run.model, self.room, run.seed)[1],
            **plan.measures,
        }
        columns = [figure["key"] for figure in self.told["figures"]]
        return {key: {name: measures[name](run) for name in columns} for key, run in runs.items()}

    def train(
        self, plan: LessonPlan, tell: Callable[[int, int], None]
    ) -> tuple[list[dict[str, Taught]], list[Figures]]:
        """Every task with every seed, seed by seed: what slows a machine for a while slows all alike."""
        # Measuring is one step more of each seed.
        total = len(self.seeds) * (1 + sum(task.steps or self.sizes.steps for task in plan.tasks.values()))
        done, runs, figures = 0, [], []

        def step() -> None:
            nonlocal done
            done += 1
            tell(done, total)

        for seed in self.seeds:
            runs.append({key: learn(task, self.sizes, seed, step) for key, task in plan.tasks.items()})
            figures.append(self.measure(plan, runs[-1]))
            step()
        return runs, figures

    def run(self, tell: Callable[[int, int], None] = lambda done, total: None) -> LessonResult:
        """Train, measure, and say what was seen, and where it was; ``tell`` hears how far it is."""
        began, worked = time.perf_counter(), time.process_time()
        plan: LessonPlan = getattr(import_module(f"kotha.course.lessons.{self.told['in']}"), self.name)(self)
        runs, found = self.train(plan, tell)
        rows = {
            key: row_of(key, self.title(key), {name: [each[key][name] for each in found] for name in row})
            for key, row in found[0].items()
        }
        lines = (
            {key: curve([run[key] for run in runs]) for key in plan.tasks} if plan.lines is None else plan.lines(rows)
        )
        texts = dict(plan.samples)
        if plan.writes:
            texts = {key: let_write(run.model, self.room, run.seed)[0][0] for key, run in runs[0].items()}
        axes = zip(("title", "x", "y"), self.told.get("axes", ("on_the_way", "steps", "nats")), strict=True)
        drawing = {
            **{name: both(self.words[key]) for name, key in axes},
            "lines": [{"title": both(self.title(key)), "points": list(points)} for key, points in lines.items()],
            "from_zero": self.told.get("from_zero", False),
        }
        figure = {"digits": 2, "better": "low", "percent": False}
        return LessonResult(
            {
                "lesson": self.name,
                "figures": [
                    {"key": each["key"], "title": both(self.words[each["key"]]), **figure, **each}
                    for each in self.told["figures"]
                ],
                "conditions": list(rows.values()),
                "reading": [both(sentence) for sentence in self.read(rows)],
                "drawing": drawing,
                "samples": [{"title": both(self.title(key)), "text": text} for key, text in texts.items()],
                "about": {
                    "machine": describe_machine(torch.device("cpu")),
                    "versions": {"kotha": __version__, "python": platform.python_version(), "torch": torch.__version__},
                    "sizes": asdict(self.sizes),
                    "seeds": list(self.seeds),
                    "seconds": round(time.perf_counter() - began, 1),
                    # Of all cores; says more on a busy machine.
                    "processor_seconds": round(time.process_time() - worked, 1),
                    **plan.about,
                },
            }
        )


def _chosen(entry: Any, values: Mapping[str, Any]) -> str | None:
    """Which sentence an entry of the reading says: itself, or one ``when`` all of that holds, or else another."""
    if entry is None or isinstance(entry, str):
        return entry
    holds = all(calculate(formula, values) for formula in entry["when"])
    return _chosen(entry["say"] if holds else entry.get("else"), values)
