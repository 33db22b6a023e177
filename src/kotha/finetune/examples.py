"""Learning from examples: one path from texts, pairs, images or conversations to a run folder.

::

    RUN/examples/  train, validation and test (.jsonl, of images .npz): learned from, chosen by, measured on
    RUN/best/      the model, a model folder as any other

The rest is a run as ``train`` makes it. The examples lie in the run, so to resume it takes no other file, and what was
held out can be found again. The third part is looked at once, after the last step. What differs from use to use is
an `ExampleTask`: ``classify.py``, ``instruct.py``, ``pairs.py`` and ``images.py`` have one each.
"""

import json
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Generic

from kotha.artifacts import model_folder as bundle
from kotha.artifacts import run_folder as runs
from kotha.artifacts.model_folder import Bundle
from kotha.artifacts.run_folder import RunFolder
from kotha.errors import CheckpointError, ConfigError, KothaError
from kotha.finetune.splits import Examples, Parts
from kotha.i18n.message import Message, Plural, Text
from kotha.model.config import ModelConfig
from kotha.storage.atomic import write_whole
from kotha.storage.json_files import as_json
from kotha.text.tokenizer.tokenizer import Tokenizer
from kotha.training.config import TrainConfig
from kotha.training.device import describe_machine
from kotha.training.loop import OnEvent, Sampler, Training
from kotha.training.origin import Origin
from kotha.training.settings import USUAL_MINUTES, TrainRequest, take_sizes
from kotha.training.show.report import write_report
from kotha.training.tasks.task import Task

EXAMPLES, PARTS = "examples", ("train", "validation", "test")

OnRemark = Callable[[Text], None]
Row = tuple[Any, ...]


@dataclass(frozen=True)
class ExamplesRequest:
    """What was asked for; all the rest is chosen."""

    data: Any  # the examples; of images, their folder or archive
    origin: Origin | None = None  # a trained model to start from; None: chance, where the task allows it
    validation: Any = None  # examples to choose by; None: a share of the data
    test: Any = None  # examples to be measured on; None: a share of the data
    held_out: float | None = None  # that share; None: what is usual
    epochs: float = 8.0  # passes over the examples, at most, where a trained model is fine-tuned
    tokenizer: Tokenizer | None = None  # for both languages of pairs; None: the one of the weights, or a new one
    recipe: str | None = None  # settings by name; None: those that are usual for the task
    wish: TrainRequest = field(default_factory=TrainRequest)  # preset, minutes, settings and sizes

    @property
    def seed(self) -> int:
        """By which the examples are divided."""
        return int(self.wish.changes.get("seed", 0))


@dataclass(frozen=True)
class RunPlan(Generic[Examples]):
    """A run that is about to begin."""

    model: ModelConfig
    config: TrainConfig
    parts: Parts[Examples]
    tokenizer: Tokenizer | None
    encoded: Any = None  # the parts to learn from and to choose by as ids, where they are known already


class ExampleTask(ABC, Generic[Examples]):
    """One use of examples: how they are divided and kept, which model learns from them, what is measured."""

    names: ClassVar[tuple[str, ...]] = ()  # of the values of a row in the files of the run
    called: ClassVar[tuple[str, str]]  # one and several examples, as templates
    by_minutes: ClassVar[bool] = False  # whether a time can be given
    other_run: ClassVar[str]  # said of a run that learned something else

    @abstractmethod
    def plan(self, request: ExamplesRequest, folder: RunFolder, say: OnRemark) -> RunPlan[Examples]:
        """Divide the examples and choose model, tokenizer and settings; refuses before anything is written."""

    @abstractmethod
    def task(self, plan: RunPlan[Examples]) -> tuple[Task, Message | None]:
        """What is learned, and what must be said of examples that do not fit."""

    @abstractmethod
    def measure(self, best: Bundle, parts: Parts[Examples], run: Path, say: OnRemark) -> dict[str, Any]:
        """What the best model reaches on the held-out part, for the summary; it writes the pages of the run."""

    @abstractmethod
    def resumes(self, model: ModelConfig, about: dict[str, Any]) -> bool:
        """Whether a run with this model and this config is one of this task."""

    def about(self, request: ExamplesRequest, parts: Parts[Examples], say: OnRemark) -> dict[str, Any]:
        """What the run's config holds beside its settings."""
        return {} if request.origin is None else {"origin": request.origin.name}

    def sampler(self, plan: RunPlan[Examples]) -> Sampler | None:
        """What shows how the model does at each evaluation."""
        return None

    def rows(self, part: Examples) -> Sequence[Row]:
        """Examples as the run's files hold them."""
        return []

    def write_parts(self, folder: Path, parts: Parts[Examples]) -> None:
        """Write the examples of each part into a folder."""
        for name in PARTS:
            rows = self.rows(getattr(parts, name))
            text = "".join(as_json(dict(zip(self.names, row, strict=True))) + "\n" for row in rows)
            write_whole(folder / f"{name}.jsonl", text)

    @abstractmethod
    def read_parts(self, run: Path) -> Parts[Examples]:
        """The examples that a run learned from, chose by and was measured on."""

    def say_parts(self, parts: Parts[Examples], say: OnRemark) -> None:
        """Report what was left out, and how many examples each part has."""
        for remark in parts.remarks:
            say(remark)
        sizes = {name: Plural(*self.called, n=len(getattr(parts, name))) for name in PARTS}
        say(Message("{train} for train, {validation} for validation, {test} for test", **sizes))


def start(
    use: ExampleTask[Examples],
    request: ExamplesRequest,
    folder: RunFolder,
    *,
    on_event: OnEvent | None = None,
    on_remark: OnRemark | None = None,
) -> dict[str, Any]:
    """Learn from examples; returns the summary, with the scores on the held-out part."""
    say, began, origin = on_remark or (lambda _: None), time.perf_counter(), request.origin
    plan = use.plan(request, folder, say)
    fill = None if origin is None else lambda made: origin.fill(made, plan.tokenizer)
    training, remark = _training(use, plan, folder, on_event, fill)
    if use.by_minutes and request.wish.timed:
        training.deadline = began + 60 * (request.wish.minutes or USUAL_MINUTES)
    about = use.about(request, plan.parts, say)
    with _held(folder):
        _begin(use, training, plan, about)
        return _finish(use, training, plan.parts, remark, say)


def resume(
    use: ExampleTask[Examples],
    folder: RunFolder,
    changes: dict[str, Any],
    *,
    on_event: OnEvent | None = None,
    on_remark: OnRemark | None = None,
) -> dict[str, Any]:
    """Resume a run that was stopped from its last checkpoint, with some settings changed; returns the summary."""
    say = on_remark or (lambda _: None)
    folder.claim()
    with _held(folder):
        model, config = _settings_of(folder, changes)
        if not use.resumes(model, folder.about()):
            raise CheckpointError(use.other_run, path=folder.path, family=model.family)
        tokenizer = Tokenizer.load(folder.path) if use.names else None
        plan = RunPlan(model, config, use.read_parts(folder.path), tokenizer)
        training, remark = _training(use, plan, folder, on_event)
        if changes:
            folder.change(training.config.to_dict())
        step, steps = training.resume(), training.config.steps
        say(Message("going on from step {step:,} of {steps:,}", step=step, steps=steps))
        return _finish(use, training, plan.parts, remark, say)


def read_columns(run: Path, names: Sequence[str]) -> list[list[tuple[str, ...]]]:
    """The examples of each part of a run, by their names: the texts of a part, their labels."""
    return [_read_part(run / EXAMPLES / f"{part}.jsonl", names) for part in PARTS]


def unreadable(path: Path, error: Exception) -> CheckpointError:
    """The error of a run whose examples are gone or broken."""
    return CheckpointError("{path} cannot be read: {error}; a run needs its examples to go on", path=path, error=error)


# -- the steps of a run -----------------------------------------------------------------------------------------------


@contextmanager
def _held(folder: RunFolder) -> Iterator[None]:
    try:
        yield
    finally:
        folder.release()


def _training(
    use: ExampleTask[Examples],
    plan: RunPlan[Examples],
    folder: RunFolder,
    on_event: OnEvent | None,
    fill: Callable[[Any], Any] | None = None,
) -> tuple[Training, Message | None]:
    """The training of a plan; who listens also hears how many steps there will be."""

    def hear(event: dict[str, Any]) -> None:
        if on_event is not None:
            on_event({**event, "steps": training.config.steps})

    task, remark = use.task(plan)
    hands: Any = {"sampler": use.sampler(plan), "on_event": hear, "initialize": fill}
    training: Training = Training(plan.model, plan.config, task, folder, **hands)
    return training, remark


def _begin(use: ExampleTask[Examples], training: Training, plan: RunPlan[Examples], about: dict[str, Any]) -> None:
    """Make the run folder, with the examples of each part."""
    folder = training.folder
    folder.start(
        plan.model,
        training.config.to_dict(),
        plan.tokenizer,
        task=training.task.name,
        machine={**describe_machine(training.arithmetic.device), "precision": training.arithmetic.precision},
        references=training.task.references(),
        **about,
    )
    place = folder.path / EXAMPLES
    place.mkdir(exist_ok=True)
    use.write_parts(place, plan.parts)
    training.save()  # whoever is killed before the next checkpoint has the weights that it started from


def _finish(
    use: ExampleTask[Examples], training: Training, parts: Parts[Examples], remark: Message | None, say: OnRemark
) -> dict[str, Any]:
    """Train to the end; then, and only then, look at the held-out part. Returns the summary."""
    folder = training.folder
    if remark is not None:
        say(remark)
    training.fitting.on_remark = say
    summary = training.run()
    chosen_by = dict(folder.best() or {})
    chosen_by.pop("step", None)
    of_the_run = {name: value for name, value in summary.items() if name not in chosen_by or name == "tokens"}
    summary = {**of_the_run, "validation": chosen_by}
    if not summary["stopped"]:
        say(Message("measuring on the held-out part …"))
        best = bundle.load(folder.best_model, training.arithmetic.device)
        summary = {**use.measure(best, parts, folder.path, say), **summary}
    folder.write(runs.SUMMARY, summary)
    write_report(folder.path)
    return summary


def _settings_of(folder: RunFolder, changes: dict[str, Any]) -> tuple[ModelConfig, TrainConfig]:
    """The model and the settings of a run that is resumed, with some changed."""
    model, settings = folder.read()
    same, changes = take_sizes(model, changes)
    if same != model:
        raise ConfigError("a run that goes on keeps its model; for other sizes start another run")
    try:
        config = TrainConfig().change(**settings)
    except (KothaError, TypeError) as error:
        raise CheckpointError("{path} is broken: {error}", path=folder.path / runs.CONFIG, error=error) from error
    return model, config.change(**changes)


def _read_part(file: Path, names: Sequence[str]) -> list[tuple[str, ...]]:
    try:
        rows = [json.loads(line) for line in file.read_text(encoding="utf-8").split("\n") if line]
        return [tuple(str(row[name]) for row in rows) for name in names]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise unreadable(file, error) from error
