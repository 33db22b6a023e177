"""Start and resume runs: turn a request into a model, its settings, a run folder and a `Training`.

With a time limit, batch, context, learning rates and steps follow from the text and the machine (``plan/rules.py``),
and without a preset also the sizes (``plan/design.py``). With a number of steps, or a recipe other than the modern one,
the recipe's settings are used; only its warm-up is shortened if it would take most of the steps.
"""

import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from typing import Any

import torch

from kotha.artifacts.run_folder import CONFIG, LAUNCH, RunFolder, describe_data
from kotha.errors import CheckpointError, ConfigError, DataError, KothaError, UsageError
from kotha.i18n.message import Message, OnRemark, Option, Plural, ProgressMessage, Text
from kotha.i18n.numbers import Count, Duration, Size
from kotha.model.config import BERTConfig, ClassifierConfig, GPTConfig, ModelConfig, TextConfig
from kotha.model.fields import is_number
from kotha.model.presets import preset
from kotha.storage.status import matching
from kotha.text.shards import Dataset
from kotha.text.tokenizer.tokenizer import Tokenizer
from kotha.training.checkpoint import copy_missing_files
from kotha.training.config import TrainConfig, check_names, recipe
from kotha.training.device import describe_machine
from kotha.training.distributed import ALONE, Ranks
from kotha.training.initial_weights import Origin, check_lora
from kotha.training.loop import Training
from kotha.training.plan.design import (
    RECIPE,
    Budget,
    Design,
    TextSize,
    budget_for,
    check_enough,
    limit_context,
    measure_text,
    propose,
)
from kotha.training.plan.memory import plan_memory, planned_context
from kotha.training.plan.rules import EVALUATIONS, pace_of, times
from kotha.training.plan.step_time import GPU, use_fastest_threads
from kotha.training.reporting.report import write_report
from kotha.training.tasks.masked_words import MaskedWords
from kotha.training.tasks.task import NextToken

# Default and maximum time limit (a year), and the default preset.
USUAL_MINUTES, LONGEST_MINUTES, USUAL_PRESET = 10.0, 525_600, "pocket"

# The data of families that are not trained on plain text; the others are classifiers.
_OTHERS = {"seq2seq": Message("pairs of texts"), "vit": Message("images with their classes")}


@dataclass(frozen=True)
class TrainRequest:
    """The user's request; all other settings are chosen automatically."""

    preset: str | None = None  # name of a preset; None: sizes that suit the text and the time
    recipe: str | None = None  # course, classic or modern; None: the one that suits the data
    minutes: float | None = None  # time limit for everything
    memory_bytes: int | None = None  # memory limit; None: the available memory
    device: str | None = None  # cpu or cuda; None: the best of this machine
    gpu: GPU | None = None  # a GPU to plan for, which need not be present
    changes: Mapping[str, Any] = field(default_factory=dict)  # training settings and model sizes, by name
    origin: Origin | None = None  # a trained model to start from; None: random weights

    def __post_init__(self) -> None:
        if self.minutes is not None and not (is_number(self.minutes) and 0 < self.minutes <= LONGEST_MINUTES):
            raise UsageError(
                "minutes={minutes!r} must be above 0 and at most a year ({most:,})",
                minutes=self.minutes,
                most=LONGEST_MINUTES,
            )
        if self.minutes is not None and "steps" in self.changes:
            raise UsageError("minutes and steps both set the length of the run; give only one of them")
        if self.origin is not None and self.preset is not None:
            raise UsageError(
                "initial weights determine the sizes of the model; remove {preset}",
                preset=Option("preset", self.preset),
            )

    @property
    def timed(self) -> bool:
        """Whether a time limit determines the number of steps."""
        return self.minutes is not None or (self.preset is None and "steps" not in self.changes)

    def budget(self, settings: TrainConfig) -> Budget:
        """Return the available time and memory."""
        minutes = self.minutes or USUAL_MINUTES
        return budget_for(minutes, self.memory_bytes, self.device, settings.precision, self.gpu)

    def check_resumes(self) -> None:
        """Raise an error if the request sets something that only a new run can have."""
        if self.origin is not None or self.minutes is not None:
            raise UsageError("initial weights and minutes apply only to new runs; start a new run, or change steps")


@dataclass(frozen=True)
class RunSetup:
    """The model and settings that were chosen."""

    model: ModelConfig
    settings: TrainConfig
    seconds_per_step: float | None = None  # as measured while choosing
    design: Design | None = None  # the design behind the choice, if any
    sentence: Text = ""  # the choice and its reason; empty if nothing was chosen


def choose_settings(
    request: TrainRequest,
    text: TextSize | None = None,
    before_timing: Callable[[], Any] = lambda: None,
    tokenizer: Tokenizer | None = None,
) -> RunSetup:
    """Choose the model and the settings for a request; ``text`` and ``tokenizer`` are those of the data, if any.

    Invalid requests are rejected before anything is timed.
    """
    origin, longest = request.origin, request.changes.get("context_length")
    start = preset(request.preset or USUAL_PRESET) if origin is None else origin.config(tokenizer)
    model, rest = take_sizes(start, request.changes)
    sized = request.preset is not None or origin is not None or len(rest) < len(request.changes)
    if isinstance(model, TextConfig):
        known = tokenizer if text is None else text
        if origin is None and known is not None and "vocab_size" not in request.changes:
            model = model.replace(vocab_size=known.vocab_size or model.vocab_size)
        if origin is not None:
            rest.setdefault("context_length", model.context_length)  # keep the model's context
        elif isinstance(longest, int):
            model = model.replace(context_length=max(longest, model.context_length))  # extended on request
    settings = recipe(request.recipe or RECIPE, **rest)
    if settings.dropout is not None and isinstance(model, TextConfig):
        model = model.replace(dropout=settings.dropout)
    if not request.timed:
        if isinstance(model, GPTConfig) and settings.context_length is not None:
            model = limit_context(model, settings.context_length)
        return RunSetup(model, settings)
    if text is None:
        raise UsageError("settings for a given time depend on the text; give the data")
    by_rules = request.recipe in (None, RECIPE) and isinstance(model, GPTConfig)
    if by_rules and not sized:
        check_enough(text)
    before_timing()
    if by_rules and isinstance(model, GPTConfig):
        return _designed(text, request.budget(settings), rest, model if sized else None)
    return fit_to_minutes(request, model, settings, rest)


def take_sizes(model: ModelConfig, given: Mapping[str, Any]) -> tuple[ModelConfig, dict[str, Any]]:
    """Apply the settings that are fields of the model, such as n_layers; return the model and the other settings."""
    of_training = {each.name for each in fields(TrainConfig)}
    # With vocab_size, which a model without a vocabulary rejects by itself.
    sizes = {"vocab_size", *(each.name for each in fields(model))} - of_training
    check_names(given, {*of_training, *sizes})
    changes = {name: value for name, value in given.items() if name in sizes}
    rest = {name: value for name, value in given.items() if name not in sizes}
    return (model.replace(**changes) if changes else model), rest


def resumed_settings(folder: RunFolder, changes: Mapping[str, Any]) -> tuple[ModelConfig, TrainConfig]:
    """Return the model and the settings of a run to resume, with some settings changed."""
    model, saved = folder.read()
    known = {each.name for each in fields(TrainConfig)}  # older runs have settings that were removed
    try:
        config = TrainConfig(**{name: value for name, value in saved.items() if name in known})
    except (KothaError, TypeError) as error:
        raise CheckpointError("{path} is broken: {error}", path=folder.path / CONFIG, error=error) from error
    same, changes = take_sizes(model, changes)  # torchrun restarts with the original arguments
    if same != model:
        raise ConfigError("a resumed run keeps its model; to use other sizes, start a new run")
    return model, config.change(**changes)


def fit_to_minutes(
    request: TrainRequest,
    model: ModelConfig,
    settings: TrainConfig,
    fixed: Mapping[str, Any],
    usual_length: int | None = None,
) -> RunSetup:
    """Return the settings with as many steps as the time allows; ``usual_length`` is the typical example length."""
    budget, context = request.budget(settings), planned_context(model, settings)
    seconds = budget.pace(model, settings, budget.micro_batch(model, settings, context), usual_length or context)
    steps = max(EVALUATIONS, int(budget.seconds / seconds))
    pace = {name: value for name, value in pace_of(steps, settings.warmup_steps).items() if name not in fixed}
    many, time = Plural("{n} step", "{n:,} steps", n=steps), Duration(60 * budget.minutes)
    return RunSetup(model, settings.change(**pace), seconds, None, Message("{steps} in {time}", steps=many, time=time))


def _designed(text: TextSize, budget: Budget, fixed: dict[str, Any], model: GPTConfig | None) -> RunSetup:
    """Choose settings by the rules, and without a model also its sizes."""
    design = propose(text, budget, fixed, model)
    settings = design.settings
    ends = Message("; with more passes the model would only memorise this small text") if design.text_ends else ""
    sentence = Message(
        "{layers} of width {width} ({parameters} parameters), {steps:,} steps of {batch} x {context} tokens, "
        "learning rates {rate:g} (AdamW) and {muon:g} (Muon): for {size} of text and {time}, {times} passes "
        "over it{ends}",
        layers=Plural("{n} layer", "{n:,} layers", n=design.model.n_layers),
        width=design.model.d_model,
        parameters=Count(design.parameters),
        steps=settings.steps,
        batch=settings.batch_size,
        context=settings.context_length,
        rate=settings.learning_rate,
        muon=settings.muon_learning_rate,
        size=Size(text.bytes),
        time=Duration(60 * budget.minutes),
        times=times(design.epochs),
        ends=ends,
    )
    return RunSetup(design.model, settings, design.seconds_per_step, design, sentence)


# -- the run -----------------------------------------------------------------------------------------------------------


def train_run(
    data: Dataset,
    folder: RunFolder,
    request: TrainRequest | None = None,
    *,
    resume: bool = False,
    on_remark: OnRemark | None = None,
    on_ready: Callable[[Training], None] | None = None,
    ranks: Ranks = ALONE,
    **how: Any,
) -> dict[str, Any]:
    """Train a run from request to report, and return the summary.

    With ``resume`` it continues from the last checkpoint in the folder, with the changes of the request. ``on_ready``
    receives the `Training` before its first step; ``how`` takes ``on_event``, ``sampler``, and additional entries for
    the run's config.
    """
    request, say = request or TrainRequest(), on_remark or (lambda _: None)
    if resume:
        request.check_resumes()
    elif ranks.writes:
        folder.check_new()  # fail early; not in other processes, as the first may have created it
    check_held_out(data)
    threads = torch.get_num_threads()
    how |= {"on_remark": say, "ranks": ranks}
    try:
        training = resume_run(data, folder, request.changes, **how) if resume else _start(data, folder, request, **how)
        chosen = training.arithmetic
        message = "{precision} on {device} ({reason})"
        say(Message(message, precision=chosen.precision, device=chosen.device, reason=chosen.reason))
        if on_ready is not None:
            on_ready(training)
        summary = training.run()
    finally:
        torch.set_num_threads(threads)
    if ranks.writes:
        write_report(folder.path)
    return summary


def _start(data: Dataset, folder: RunFolder, request: TrainRequest, **how: Any) -> Training:
    """Choose the settings and start a run; the time limit starts here."""
    began, alone, say, tokenizer = time.perf_counter(), how["ranks"].alone, how["on_remark"], data.tokenizer
    origin = request.origin
    if not alone:  # each process would measure different times
        if request.minutes is not None or (origin is not None and "steps" not in request.changes):
            raise UsageError("minutes requires a single process, but several are running; give steps")
        request = replace(request, preset=request.preset or (None if origin else USUAL_PRESET))

    def get_ready() -> None:
        say(ProgressMessage("measuring the speed of this machine …"))
        use_fastest_threads()

    choice = choose_settings(request, measure_text(str(data.path)) if request.timed else None, get_ready, tokenizer)
    if choice.sentence:
        say(choice.sentence)
    counts: dict[str, int] = {}
    if origin is not None:
        origin.check(choice.model, tokenizer)
        how |= {"initialize": lambda model: counts.update(origin.initialize(model, tokenizer)), "origin": origin.name}
    if choice.settings.lora is not None:
        check_lora(choice.settings.lora, tokenizer, str(data.path), origin)
    training = start_run(choice.model, choice.settings, data, folder, seconds_per_step=choice.seconds_per_step, **how)
    training.most_steps = None if choice.design is None else choice.design.most_steps
    if request.timed and alone:
        training.deadline = began + 60 * (request.minutes or USUAL_MINUTES)
    if origin is not None:
        training.save()  # a run killed before its next checkpoint can still resume from these weights
        kept = ", {kept:,} pieces kept, {joined:,} averaged from old pieces, {drawn:,} initialized at random"
        say(
            Message(
                "initial weights: {origin}{pieces}",
                origin=origin.name,
                pieces=Message(kept, **counts) if counts else "",
            )
        )
    return training


def check_held_out(data: Dataset) -> None:
    """Raise an error if the data has no validation text, without which no model would be saved."""
    if not data["validation"].info.tokens:
        raise DataError(
            "{path} has no validation text, which is needed to select the best model; prepare it again from "
            "two or more documents (separated by blank lines in a .txt file), or with a validation file",
            path=data.path,
        )


def start_run(
    model: ModelConfig,
    config: TrainConfig,
    data: Dataset,
    folder: RunFolder,
    *,
    ranks: Ranks = ALONE,
    seconds_per_step: float | None = None,
    origin: str | None = None,
    floors: Mapping[str, float] | None = None,
    **how: Any,
) -> Training:
    """Create a run in a new folder, ready to ``run()``.

    ``how`` is passed to Training, ``origin`` and ``floors`` are recorded in config.json, and ``seconds_per_step`` is
    the predicted duration of a step.
    """
    if ranks.writes:
        folder.claim()
    training = _open(model, config, data, folder, ranks=ranks, **how)
    if ranks.writes:  # only now, so that invalid settings leave no folder behind
        more = {"origin": origin, "floors": floors, LAUNCH: ranks.launch}
        about = {"data": describe_data(data), **{name: value for name, value in more.items() if value is not None}}
        make_folder(training, seconds_per_step, **about)
    ranks.wait()
    return training


def make_folder(training: Training, seconds_per_step: float | None = None, **about: Any) -> None:
    """Create the run folder; ``about`` has additional entries for its config.json."""
    arithmetic, config = training.arithmetic, training.config
    machine = {"precision": arithmetic.precision, "reason": str(arithmetic.reason), "processes": training.ranks.world}
    seconds = seconds_per_step * config.steps if seconds_per_step else None
    needed = plan_memory(training.model.config, config, training.fitting.micro_batch_size, training.fitting.how)
    training.folder.start(
        training.model.config,
        config.to_dict(),
        training.task.tokenizer,
        task=training.task.name,
        machine={**describe_machine(arithmetic.device), **machine},
        references=training.task.references(),
        predicted={"memory_bytes": asdict(needed), "seconds": seconds},
        **about,
    )


def resume_run(
    data: Dataset, folder: RunFolder, changes: Mapping[str, Any], *, ranks: Ranks = ALONE, **how: Any
) -> Training:
    """Open the run of a folder at its last checkpoint, with some settings changed, ready to ``run()``."""
    copy_missing_files(folder.path, ranks)
    folder.check_data(data)
    opened = lambda model, config: _open(model, config, data, folder, ranks=ranks, **how)
    return resume_training(folder, changes, opened, ranks)


def resume_training(
    folder: RunFolder,
    changes: Mapping[str, Any],
    opened: Callable[[ModelConfig, TrainConfig], Training],
    ranks: Ranks = ALONE,
) -> Training:
    """Open a training run of any kind at the last checkpoint of its folder, with some settings changed."""
    if ranks.writes:
        folder.claim()
    model, config = resumed_settings(folder, changes)
    origin = folder.about().get("origin")
    if origin is not None and not matching(folder.checkpoints):  # it would restart from random weights
        message = "{path} has no checkpoint with the weights of {origin}; start a new run from {origin}"
        raise CheckpointError(message, path=folder.path, origin=origin)
    training = opened(model, config)
    if ranks.writes and changes:
        folder.change(config.to_dict())
    ranks.wait()
    together = "" if ranks.alone else Message(", in {n} processes", n=ranks.world)
    message = "resuming from step {step:,} of {steps:,}{together}"
    training.say(Message(message, step=training.resume(), steps=config.steps, together=together))
    return training


def _open(model: ModelConfig, config: TrainConfig, data: Dataset, folder: RunFolder, **how: Any) -> Training:
    """Create the Training of a run: next tokens for a GPT, masked words for a BERT."""
    if not isinstance(model, GPTConfig | BERTConfig) or isinstance(model, ClassifierConfig):
        message = (
            "a {family} model is trained on {needs}, but {path} contains plain text; provide such data, or "
            "use a gpt or bert model"
        )
        needs = _OTHERS.get(model.family, Message("labelled texts"))
        raise ConfigError(message, family=model.family, needs=needs, path=data.path)
    task = NextToken(model, config, data) if isinstance(model, GPTConfig) else MaskedWords(model, config, data)
    return Training(model, config, task, folder, **how)
