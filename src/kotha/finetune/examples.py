"""Learning from examples: one path from texts, pairs, images or conversations to a run folder.

::

    RUN/examples/  train, validation and test (.jsonl, of images .npz): learned from, chosen by, measured on
    RUN/best/      the model, a model folder as any other

The rest is a run as ``train`` makes it. The examples lie in the run, so to resume it takes no other file, and what was
held out can be found again. The third part is looked at once, after the last step. What differs from use to use is
an `ExampleTask`: ``classify.py``, ``instruct.py``, ``pairs.py`` and ``images.py`` have one each. The caller
says how good a model is: a task is made with a function that measures it.
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
from kotha.artifacts.run_folder import RunFolder
from kotha.errors import CheckpointError, ConfigError, KothaError, UsageError
from kotha.finetune.splits import Parts
from kotha.i18n.message import Message, OnRemark, Option, Plural
from kotha.model.config import ModelConfig, TextConfig
from kotha.model.presets import preset
from kotha.storage.atomic import atomic_write
from kotha.storage.json_files import as_json
from kotha.text.tokenizer.tokenizer import Tokenizer
from kotha.training.config import TrainConfig, recipe
from kotha.training.loop import OnEvent, Sampler, Training
from kotha.training.plan.rules import pace_of
from kotha.training.reporting.report import write_report
from kotha.training.start import USUAL_MINUTES, TrainRequest, fit_to_minutes, make_folder, resume_training, take_sizes
from kotha.training.tasks.examples import ExamplesTask

EXAMPLES, PARTS = "examples", ("train", "validation", "test")

Measure = Callable[[Bundle, Parts[Any], Path, OnRemark], dict[str, Any]]
"""What a model reaches on the held-out part, for the summary; writes the pages of the run."""


@dataclass(frozen=True, kw_only=True)
class ExamplesRequest(TrainRequest):
    """What was asked for, and the examples."""

    data: Any  # of images, their folder or archive
    validation: Any = None  # examples to choose by; None: a share of the data
    test: Any = None  # examples to be measured on; None: a share of the data
    held_out: float | None = None  # that share; None: what is usual
    epochs: float = 8.0  # passes over the examples, at most, where a trained model is fine-tuned
    tokenizer: Tokenizer | None = None  # for both languages of pairs; None: the one of the weights, or a new one

    @property
    def seed(self) -> int:
        """By which the examples are divided."""
        return int(self.changes.get("seed", 0))


@dataclass(frozen=True)
class RunPlan:
    """A run that is about to begin."""

    model: ModelConfig
    config: TrainConfig
    parts: Parts[Any]
    tokenizer: Tokenizer | None = None
    about: dict[str, Any] = field(default_factory=dict)  # what the run's config holds beside its settings


def no_scores(best: Bundle, parts: Parts[Any], run: Path, say: OnRemark) -> dict[str, Any]:
    """For who only trains."""
    return {}


@dataclass(frozen=True)
class ExampleTask(ABC):
    """One use of examples: how they are divided and kept, which model learns from them."""

    measure: Measure = no_scores

    learns: ClassVar[type[ExamplesTask]]
    names: ClassVar[tuple[str, ...]] = ()  # of the values of a row in the files of the run
    called: ClassVar[tuple[str, str]]  # one and several examples, as templates
    too_long: ClassVar[tuple[str, str]] = ("", "")  # one and several that do not fit, as templates
    by_minutes: ClassVar[bool] = False  # whether a time can be given

    @abstractmethod
    def plan(self, request: ExamplesRequest, say: OnRemark) -> RunPlan:
        """Divide the examples and choose model, tokenizer and settings; refuses before anything is written."""

    @abstractmethod
    def task(self, plan: RunPlan) -> ExamplesTask:
        """What is learned."""

    @abstractmethod
    def read_part(self, file: Path, about: dict[str, Any]) -> Any:
        """Examples as a run keeps them, in a file whose name has no ending yet."""

    def write_part(self, file: Path, part: Any) -> None:
        """Write examples into a file whose name has no ending yet."""
        rows = (dict(zip(self.names, row, strict=True)) for row in self.rows(part))
        atomic_write(file.with_suffix(".jsonl"), "".join(as_json(row) + "\n" for row in rows))

    def rows(self, part: Any) -> Iterable[tuple[Any, ...]]:
        """Examples as the run's files hold them."""
        return zip(*(getattr(part, name) for name in part.columns), strict=True)

    def before(self, request: ExamplesRequest, parts: Parts[Any], run: Path, say: OnRemark) -> dict[str, Any]:
        """What is measured before the first step, for the run's config."""
        return {}

    def sampler(self, plan: RunPlan) -> Sampler | None:
        """What shows how the model does at each evaluation."""
        return None

    def read_parts(self, run: Path) -> Parts[Any]:
        """The examples that a run learned from, chose by and was measured on."""
        about = RunFolder(run).about()
        return Parts(*(self.read_part(run / EXAMPLES / name, about) for name in PARTS))

    def say_parts(self, parts: Parts[Any], say: OnRemark) -> None:
        """Report what was left out, and how many examples each part has."""
        for remark in parts.remarks:
            say(remark)
        sizes = {name: Plural(*self.called, n=len(getattr(parts, name))) for name in PARTS}
        say(Message("{train} for train, {validation} for validation, {test} for test", **sizes))


def start(
    use: ExampleTask,
    request: ExamplesRequest,
    folder: RunFolder,
    *,
    on_event: OnEvent | None = None,
    on_remark: OnRemark | None = None,
) -> dict[str, Any]:
    """Learn from examples; returns the summary, with the scores on the held-out part."""
    say, began, origin = on_remark or (lambda _: None), time.perf_counter(), request.origin
    folder.check_new()
    plan = use.plan(request, say)
    fill = None if origin is None else lambda made: origin.initialize(made, plan.tokenizer)
    training = _training(use, plan, folder, on_event, say, fill)
    if use.by_minutes and request.timed:
        training.deadline = began + 60 * (request.minutes or USUAL_MINUTES)
    about = plan.about | ({} if origin is None else {"origin": origin.name})
    about |= use.before(request, plan.parts, folder.path, say)
    try:
        make_folder(training, **about)
        place = folder.path / EXAMPLES
        place.mkdir(exist_ok=True)
        for name in PARTS:
            use.write_part(place / name, getattr(plan.parts, name))
        training.save()  # whoever is killed before the next checkpoint has the weights that it started from
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
    """Resume a run that was stopped from its last checkpoint, with some settings changed; returns the summary."""

    def opened(model: ModelConfig, config: TrainConfig) -> Training:
        if folder.about().get("task") != use.learns.name:
            raise CheckpointError(
                "{path} holds a run of a {family} that learned something else; go on with what began it",
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
    fill: Callable[[Any], Any] | None = None,
) -> Training:
    """The training of a plan; what does not fit the context is reported."""
    task = use.task(plan)
    if task.too_long:
        say(Plural(*use.too_long, n=task.too_long, most=task.context_length))
    how: Any = {"sampler": use.sampler(plan), "on_event": on_event, "on_remark": say, "initialize": fill}
    return Training(plan.model, plan.config, task, folder, **how)


def _finish(use: ExampleTask, training: Training) -> dict[str, Any]:
    """Train to the end; then, and only then, look at the held-out part. Returns the summary."""
    folder, summary = training.folder, training.run()
    chosen_by = {name: value for name, value in (folder.best() or {}).items() if name != "step"}
    of_the_run = {name: value for name, value in summary.items() if name not in chosen_by or name == "tokens"}
    summary = {**of_the_run, "validation": chosen_by}
    if not summary["stopped"]:
        training.say(Message("measuring on the held-out part …"))
        best = bundle.load(folder.best_model, training.arithmetic.device)
        before = {name: value for name, value in folder.about().items() if name == "before"}
        parts = use.read_parts(folder.path)
        summary = {**use.measure(best, parts, folder.path, training.say), **before, **summary}
    folder.write(runs.SUMMARY, summary)
    write_report(folder.path)
    return summary


def read_columns(file: Path, names: Sequence[str]) -> list[tuple[str, ...]]:
    """The examples of a part of a run, by their names: its texts, their labels."""
    with example_file(file.with_suffix(".jsonl")) as written:
        rows = [json.loads(line) for line in written.read_text(encoding="utf-8").split("\n") if line]
        return [tuple(str(row[name]) for row in rows) for name in names]


@contextmanager
def example_file(path: Path) -> Iterator[Path]:
    """A file of a run's examples; what is gone or broken in it is one error."""
    try:
        yield path
    except (KothaError, OSError, ValueError, KeyError, TypeError) as error:
        raise CheckpointError(
            "{path} cannot be read: {error}; a run needs its examples to go on", path=path, error=error
        ) from error


def numbered(labels: Sequence[str], classes: Sequence[str]) -> list[int]:
    """Labels as the numbers of their classes."""
    number = {label: place for place, label in enumerate(classes)}
    return [number[label] for label in labels]


def guessed_or_named(guessed: bool) -> Message:
    """Whether the fields of a table were found, or named."""
    return Message("guessed") if guessed else Message("as named")


# -- settings: for so many passes over the examples, for so long, or by a recipe ---------------------------------------


# Evaluations without gain that end a run (early stopping), and evaluations in each pass over the examples.
_PATIENCE, _LOOKS = 6, 2
USUAL: dict[str, Any] = {
    "schedule": "cosine",
    "floor": 0.0,
    "patience": _PATIENCE,
    "keep_checkpoints": 1,
}
# Of texts, batches change their shape from step to step, and each new one would be compiled.
USUAL_TEXTS: dict[str, Any] = {**USUAL, "optimizer": "adamw", "weight_decay": 0.01, "beta2": 0.98, "compile": "off"}
# The learning rate falls with the width: what was best for a small model and for one of 512 (docs/experiments.md), and
# what BERT's authors use at its size. Few numbers learn by LoRA, so they may go further.
_RATE, _RATE_WIDTH, _RATE_POWER, _LARGEST_RATE, _LORA_TIMES = 3e-3, 96, 2.2, 1e-2, 3

AnyConfig = TypeVar("AnyConfig", bound=ModelConfig)


def wished_model(request: ExamplesRequest, kind: type[AnyConfig], usual_preset: str, data: Message) -> AnyConfig:
    """The model that was asked for, with the sizes that were given; of the kind that learns from the data."""
    origin = request.origin
    base = preset(request.preset or usual_preset) if origin is None else origin.bundle.config
    if not isinstance(base, kind):
        raise ConfigError(
            "{name} is a {family} model, and {data} are for a {wanted}: {usual}",
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
    """The largest learning rate with which a model of a width is fine-tuned.

    >>> [round(learning_rate(width), 6) for width in (96, 512, 768)]
    [0.003, 7.5e-05, 3.1e-05]
    """
    rate: float = _RATE * (_RATE_WIDTH / d_model) ** _RATE_POWER
    return min(_LARGEST_RATE, rate * (_LORA_TIMES if lora else 1))


def finetune_settings(
    model: AnyConfig, request: ExamplesRequest, usual: Mapping[str, Any], n_examples: int, longest: int, warmup: float
) -> tuple[AnyConfig, TrainConfig]:
    """Settings for some passes over the examples, from trained weights; ``warmup`` is a share of the steps."""
    if not 0 < request.epochs <= 1000:
        raise UsageError("{epochs} must be above 0, and at most 1,000", epochs=Option("epochs", request.epochs))
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
    """Settings by a recipe, for the minutes that were given, or for the steps in which so many examples are read.

    ``context`` holds the longest example. A warm-up takes a tenth of the steps at most.
    """
    given = take_sizes(model, request.changes)[1]
    # A recipe that is named is taken to the letter.
    config = recipe(request.recipe, **given) if request.recipe else TrainConfig().change(**{**usual, **given})
    model, config = _changed(model, config, {}, given)
    if request.origin is not None:
        request.origin.check(model, tokenizer)
    if context is not None:
        config = config.change(context_length=context)
    if request.timed:
        say(Message("measuring this machine …"))
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
    """Settings with what was not given chosen, and the model with their dropout."""
    config = config.change(**{name: value for name, value in pace.items() if name not in given})
    if config.dropout is not None:
        model = model.replace(dropout=config.dropout)
    return model, config
