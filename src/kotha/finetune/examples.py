"""Train on examples (texts, pairs, images or conversations): the code shared by all tasks, from data to run folder.

::

    RUN/examples/  train, validation and test parts (.jsonl; images .npz)
    RUN/best/      the best model, as a model folder

Otherwise the run folder is like that of ``kotha train``. The examples are stored in it, so that the run can be resumed
without other files, and the held-out examples are recorded. The test part is evaluated once, after the last step. The
code specific to a task is in an `ExampleTask`, in ``classify.py``, ``instruct.py``, ``pairs.py`` and ``images.py``. The
caller passes the function that evaluates the model.
"""

import json
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, TypeVar

from kotha.artifacts import model_folder as bundle
from kotha.artifacts import run_folder as runs
from kotha.artifacts.model_folder import Bundle
from kotha.artifacts.own_text import model_language
from kotha.artifacts.run_folder import RunFolder
from kotha.errors import CheckpointError, ConfigError, KothaError, UsageError
from kotha.finetune.splits import Parts
from kotha.i18n.message import Message, OnRemark, Option, Plural
from kotha.model.config import ModelConfig, TextConfig
from kotha.model.presets import preset
from kotha.storage import bundled
from kotha.storage.atomic import atomic_write
from kotha.storage.json_files import as_json
from kotha.text.tokenizer.tokenizer import Tokenizer
from kotha.training.config import TrainConfig, recipe
from kotha.training.loop import OnEvent, Sampler, Training
from kotha.training.plan.rules import pace_of
from kotha.training.reporting.report import write_report
from kotha.training.request import USUAL_MINUTES, TrainRequest, fit_to_minutes, take_sizes
from kotha.training.start import make_folder, resume_training
from kotha.training.tasks.examples import ExamplesTask

EXAMPLES, PARTS = "examples", ("train", "validation", "test")

Measure = Callable[[Bundle, Parts[Any], Path, OnRemark], dict[str, Any]]
"""Evaluates a model on the test part, returns scores for the summary, and writes the run's pages."""


@dataclass(frozen=True, kw_only=True)
class ExamplesRequest(TrainRequest):
    """A training request together with its examples."""

    data: Any  # images: their folder or archive
    validation: Any = None  # validation examples; None: a share of the data
    test: Any = None  # test examples; None: a share of the data
    held_out: float | None = None  # share of the data in each of these parts; None: the task's default
    epochs: float = 8.0  # maximum epochs of fine-tuning
    tokenizer: Tokenizer | None = None  # for both languages; None: that of the initial weights, or a new one

    @property
    def seed(self) -> int:
        """The random seed for splitting the examples into parts."""
        return int(self.changes.get("seed", 0))


@dataclass(frozen=True)
class RunPlan:
    """The settings and objects that a new run needs."""

    model: ModelConfig
    config: TrainConfig
    parts: Parts[Any]
    tokenizer: Tokenizer | None = None
    about: dict[str, Any] = field(default_factory=dict)  # additional entries of the run's config


def no_scores(best: Bundle, parts: Parts[Any], run: Path, say: OnRemark) -> dict[str, Any]:
    """Skip the evaluation."""
    return {}


@dataclass(frozen=True)
class ExampleTask(ABC):
    """A task that trains on examples: it splits and stores them, and chooses the model and its settings."""

    measure: Measure = no_scores

    learns: ClassVar[type[ExamplesTask]]
    names: ClassVar[tuple[str, ...]] = ()  # field names of a row in the run's files
    called: ClassVar[tuple[str, str]]  # singular and plural message for a number of examples
    too_long: ClassVar[tuple[str, str]] = ("", "")  # singular and plural message for examples that do not fit
    by_minutes: ClassVar[bool] = False  # whether a time budget can be given

    @abstractmethod
    def plan(self, request: ExamplesRequest, say: OnRemark) -> RunPlan:
        """Split the examples, and choose the model, tokenizer and settings; raise errors before anything is written."""

    @abstractmethod
    def task(self, plan: RunPlan) -> ExamplesTask:
        """Return the training task of a plan."""

    @abstractmethod
    def read_part(self, file: Path, about: dict[str, Any]) -> Any:
        """Read a part of the examples from a run; ``file`` has no extension yet."""

    def write_part(self, file: Path, part: Any) -> None:
        """Write a part of the examples into a run; ``file`` has no extension yet."""
        rows = (dict(zip(self.names, row, strict=True)) for row in self.rows(part))
        atomic_write(file.with_suffix(".jsonl"), "".join(as_json(row) + "\n" for row in rows))

    def rows(self, part: Any) -> Iterable[tuple[Any, ...]]:
        """Return the rows of a part, as stored in the run."""
        return zip(*(getattr(part, name) for name in part.columns), strict=True)

    def before(self, request: ExamplesRequest, parts: Parts[Any], run: Path, say: OnRemark) -> dict[str, Any]:
        """Evaluate before the first step and return entries for the run's config."""
        return {}

    def sampler(self, plan: RunPlan) -> Sampler | None:
        """Return the function that generates a sample at each evaluation, if any."""
        return None

    def read_parts(self, run: Path) -> Parts[Any]:
        """Read the train, validation and test parts of a run."""
        about = RunFolder(run).about()
        return Parts(*(self.read_part(run / EXAMPLES / name, about) for name in PARTS))

    def say_parts(self, parts: Parts[Any], say: OnRemark) -> None:
        """Report removed examples and the size of each part."""
        for remark in parts.remarks:
            say(remark)
        sizes = {name: Plural(*self.called, n=len(getattr(parts, name))) for name in PARTS}
        say(Message("{train} for training, {validation} for validation, {test} for testing", **sizes))


def start(
    use: ExampleTask,
    request: ExamplesRequest,
    folder: RunFolder,
    *,
    on_event: OnEvent | None = None,
    on_remark: OnRemark | None = None,
) -> dict[str, Any]:
    """Train on examples in a new run; return its summary, with the scores on the test part."""
    say, began, origin = on_remark or (lambda _: None), time.perf_counter(), request.origin
    folder.check_new()
    plan = use.plan(request, say)
    fill = None if origin is None else lambda made: origin.initialize(made, plan.tokenizer)
    training = _training(use, plan, folder, on_event, say, fill)
    if use.by_minutes and request.timed:
        training.deadline = began + 60 * (request.minutes or USUAL_MINUTES)
    about = plan.about | ({} if origin is None else {"origin": origin.name})
    if origin is not None and (language := model_language(bundled.model_path(origin.name))) is not None:
        about["language"] = language
    about |= use.before(request, plan.parts, folder.path, say)
    try:
        make_folder(training, **about)
        examples = folder.path / EXAMPLES
        examples.mkdir(exist_ok=True)
        for name in PARTS:
            use.write_part(examples / name, getattr(plan.parts, name))
        training.save()  # a run killed before its next checkpoint can resume from its initial weights
        return _finish(use, training)
    finally:
        folder.release()


def resume(
    use: ExampleTask,
    folder: RunFolder,
    changes: dict[str, Any],
    *,
    on_event: OnEvent | None = None,
    on_remark: OnRemark | None = None,
) -> dict[str, Any]:
    """Resume a stopped run from its last checkpoint, with changed settings; return its summary."""

    def opened(model: ModelConfig, config: TrainConfig) -> Training:
        if folder.about().get("task") != use.learns.name:
            raise CheckpointError(
                "{path} is a {family} run of another task; resume it with the command that started it",
                path=folder.path,
                family=model.family,
            )
        tokenizer = Tokenizer.load(folder.path) if use.names else None
        plan = RunPlan(model, config, use.read_parts(folder.path), tokenizer)
        return _training(use, plan, folder, on_event, on_remark or (lambda _: None))

    try:
        return _finish(use, resume_training(folder, changes, opened))
    finally:
        folder.release()


def _training(
    use: ExampleTask,
    plan: RunPlan,
    folder: RunFolder,
    on_event: OnEvent | None,
    say: OnRemark,
    initialize: Callable[[Any], Any] | None = None,
) -> Training:
    """Create the training of a plan, and report examples that do not fit the context."""
    task = use.task(plan)
    if task.too_long:
        say(Plural(*use.too_long, n=task.too_long, most=task.context_length))
    how: Any = {"sampler": use.sampler(plan), "on_event": on_event, "on_remark": say, "initialize": initialize}
    return Training(plan.model, plan.config, task, folder, **how)


def _finish(use: ExampleTask, training: Training) -> dict[str, Any]:
    """Train to the end, evaluate on the test part, and return the summary."""
    folder, summary = training.folder, training.run()
    chosen_by = {name: value for name, value in (folder.best() or {}).items() if name != "step"}
    of_the_run = {name: value for name, value in summary.items() if name not in chosen_by or name == "tokens"}
    summary = {**of_the_run, "validation": chosen_by}
    if not summary["stopped"]:
        training.say(Message("evaluating on the held-out part …"))
        best = bundle.load(folder.best_model, training.arithmetic.device)
        before = {name: value for name, value in folder.about().items() if name == "before"}
        parts = use.read_parts(folder.path)
        summary = {**use.measure(best, parts, folder.path, training.say), **before, **summary}
    folder.write(runs.SUMMARY, summary)
    write_report(folder.path)
    return summary


def read_columns(file: Path, names: Sequence[str]) -> list[tuple[str, ...]]:
    """Return the columns of a part of a run, such as texts and labels, by field name."""
    with example_file(file.with_suffix(".jsonl")) as written:
        rows = [json.loads(line) for line in written.read_text(encoding="utf-8").split("\n") if line]
        return [tuple(str(row[name]) for row in rows) for name in names]


@contextmanager
def example_file(path: Path) -> Iterator[Path]:
    """Open a file with the examples of a run; a failure to read it raises `CheckpointError`."""
    try:
        yield path
    except (KothaError, OSError, ValueError, KeyError, TypeError) as error:
        raise CheckpointError(
            "{path} cannot be read: {error}; the run cannot be resumed without its examples", path=path, error=error
        ) from error


def numbered(labels: Sequence[str], classes: Sequence[str]) -> list[int]:
    """Return the class indices of labels."""
    number = {label: index for index, label in enumerate(classes)}
    return [number[label] for label in labels]


def guessed_or_named(guessed: bool) -> Message:
    """Describe whether the fields of a table were guessed or given."""
    return Message("guessed") if guessed else Message("as given")


# -- settings: by epochs, by time, or by a recipe ----------------------------------------------------------------------


# Number of evaluations without improvement that end a run (early stopping), and evaluations per epoch.
_PATIENCE, _LOOKS = 6, 2
USUAL: dict[str, Any] = {
    "schedule": "cosine",
    "floor": 0.0,
    "patience": _PATIENCE,
    "keep_checkpoints": 1,
}
# Batches of texts have a different shape at every step, and torch would compile each new shape.
USUAL_TEXTS: dict[str, Any] = {**USUAL, "optimizer": "adamw", "weight_decay": 0.01, "beta2": 0.98, "compile": "off"}
# The learning rate decreases with the width; the curve is fitted to the best rates of a small model and one of width
# 512 (docs/dev/experiments.md), and to the rate that BERT's authors used. LoRA trains few weights and allows a higher
# rate.
_RATE, _RATE_WIDTH, _RATE_POWER, _LARGEST_RATE, _LORA_TIMES = 3e-3, 96, 2.2, 1e-2, 3

AnyConfig = TypeVar("AnyConfig", bound=ModelConfig)


def requested_model(request: ExamplesRequest, kind: type[AnyConfig], usual_preset: str, data: Message) -> AnyConfig:
    """Return the requested model with the requested sizes; raise an error if it does not fit the data."""
    origin = request.origin
    base = preset(request.preset or usual_preset) if origin is None else origin.bundle.config
    if not isinstance(base, kind):
        raise ConfigError(
            "{name} is a {family} model, but {data} require a {wanted} model; use {usual}",
            name=request.preset if origin is None else origin.name,
            family=base.family,
            data=data,
            wanted=preset(usual_preset).family,
            usual=Option("preset", usual_preset),
        )
    model, rest = take_sizes(base, request.changes)
    if isinstance(model, TextConfig) and rest.get("context_length") is not None:
        model = model.replace(context_length=rest["context_length"])
    assert isinstance(model, kind)
    return model


def learning_rate(d_model: int, lora: bool = False) -> float:
    """Return the peak learning rate for fine-tuning a model of the given width.

    >>> [round(learning_rate(width), 6) for width in (96, 512, 768)]
    [0.003, 7.5e-05, 3.1e-05]
    """
    rate: float = _RATE * (_RATE_WIDTH / d_model) ** _RATE_POWER
    return min(_LARGEST_RATE, rate * (_LORA_TIMES if lora else 1))


def finetune_settings(
    model: AnyConfig, request: ExamplesRequest, usual: Mapping[str, Any], n_examples: int, longest: int, warmup: float
) -> tuple[AnyConfig, TrainConfig]:
    """Return settings for fine-tuning for a number of epochs; ``warmup`` is a share of the steps."""
    if not 0 < request.epochs <= 1000:
        raise UsageError("{epochs} must be above 0 and at most 1,000", epochs=Option("epochs", request.epochs))
    given = dict(request.changes)
    rate = learning_rate(model.d_model, lora=given.get("lora") is not None)
    config = TrainConfig().change(**{**USUAL_TEXTS, **usual, "learning_rate": rate, **given})
    per_pass = -(-n_examples // config.batch_size)
    steps = config.steps if "steps" in given else max(1, round(request.epochs * per_pass))
    pace = {"steps": steps, "warmup_steps": round(warmup * steps), "evaluate_every": max(1, per_pass // _LOOKS)}
    return _changed(model, config, {**pace, "context_length": longest}, given)


def training_settings(
    model: ModelConfig,
    request: ExamplesRequest,
    usual: Mapping[str, Any],
    say: OnRemark,
    *,
    examples_read: int,
    usual_length: int,
    tokenizer: Tokenizer | None = None,
    context: int | None = None,
) -> tuple[ModelConfig, TrainConfig]:
    """Return settings from a recipe, for a time budget, or for as many steps as ``examples_read`` examples take.

    ``context`` is the length of the longest example. The warm-up takes at most a tenth of the steps.
    """
    given = take_sizes(model, request.changes)[1]
    # A named recipe is used unchanged, without the defaults below.
    config = recipe(request.recipe, **given) if request.recipe else TrainConfig().change(**{**usual, **given})
    model, config = _changed(model, config, {}, given)
    if request.origin is not None:
        request.origin.check(model, tokenizer)
    if context is not None:
        config = config.change(context_length=context)
    if request.timed:
        say(Message("measuring the speed of this machine …"))
        choice = fit_to_minutes(request, model, config, given, usual_length)
        say(choice.sentence)
        return model, choice.settings
    if request.recipe:
        return model, config
    steps = config.steps if "steps" in given else max(1, round(examples_read / config.batch_size))
    return _changed(model, config, pace_of(steps, config.warmup_steps), given)


def _changed(
    model: AnyConfig, config: TrainConfig, pace: Mapping[str, Any], given: Mapping[str, Any]
) -> tuple[AnyConfig, TrainConfig]:
    """Return the settings, filling in those not given from ``pace``, and the model with their dropout."""
    config = config.change(**{name: value for name, value in pace.items() if name not in given})
    if config.dropout is not None:
        model = model.replace(dropout=config.dropout)
    return model, config
