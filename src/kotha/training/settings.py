"""From what was asked for to a model and all settings of its training: one way for ``train``, ``plan`` and Python.

With a time, batch, context, rates and steps follow from the text and the machine (``plan/rules.py``); without a preset
the sizes too (``plan/design.py``). A number of steps, or a recipe other than the modern one, is taken as it is; only a
warm-up that nobody asked for is shortened where it would take most of the steps.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from kotha.artifacts.run_folder import CONFIG, RunFolder
from kotha.errors import CheckpointError, ConfigError, KothaError, UsageError
from kotha.i18n.message import Message, Option, Plural, Text
from kotha.i18n.numbers import Count, Duration, Size
from kotha.model.config import ClassifierConfig, GPTConfig, ModelConfig, TextConfig, ViTConfig
from kotha.model.fields import is_number
from kotha.model.presets import preset
from kotha.text.tokenizer.tokenizer import Tokenizer
from kotha.training.config import TrainConfig, check_names, recipe
from kotha.training.origin import Origin
from kotha.training.plan.design import RECIPE, Budget, Design, TextSize, as_learned, budget_for, check_enough, propose
from kotha.training.plan.memory import planned_context
from kotha.training.plan.rules import EVALUATIONS, pace_of, times, warmed_in_time
from kotha.training.plan.step_time import GPU

# How long a training takes of which nothing was said.
USUAL_MINUTES = 10.0
USUAL_PRESET = "pocket"
# A year.
LONGEST_MINUTES = 525_600


@dataclass(frozen=True)
class TrainRequest:
    """What was asked for; all the rest is chosen."""

    preset: str | None = None  # exact name; None for sizes that suit the text and the time
    recipe: str = RECIPE  # course, classic or modern
    minutes: float | None = None  # how long it may take, all in all
    memory_bytes: int | None = None  # how much memory it may take; None for what there is
    device: str | None = None  # cpu or cuda; None for this machine's best
    gpu: GPU | None = None  # A GPU that need not be here, for a plan
    changes: Mapping[str, Any] = field(default_factory=dict)  # settings of the training and sizes of the model, by name
    model: ModelConfig | None = None  # of weights to start from

    def __post_init__(self) -> None:
        if self.minutes is not None and not (is_number(self.minutes) and 0 < self.minutes <= LONGEST_MINUTES):
            raise UsageError(
                "minutes={minutes!r} must be above 0, and at most a year ({most:,})",
                minutes=self.minutes,
                most=LONGEST_MINUTES,
            )
        if self.minutes is not None and "steps" in self.changes:
            raise UsageError("minutes and steps both say how long to train; give one of them")
        if self.model is not None and self.preset is not None:
            raise UsageError(
                "weights to start from have their sizes; {preset} cannot change them",
                preset=Option("preset", self.preset),
            )

    @property
    def timed(self) -> bool:
        """Does the time decide how many steps there are?"""
        return self.minutes is not None or (self.preset is None and "steps" not in self.changes)


@dataclass(frozen=True)
class Choice:
    """What will be trained, and how."""

    model: ModelConfig
    settings: TrainConfig
    seconds_per_step: float | None = None  # as it was timed for the choice
    design: Design | None = None  # the design behind it, where there is one
    sentence: Text = ""  # what was chosen and why; empty where nothing was


def choose_settings(
    request: TrainRequest, text: TextSize | None = None, before_timing: Callable[[], Any] = lambda: None
) -> Choice:
    """The model and the settings for a request; ``text`` is what it will learn from.

    What can be refused at once is refused before anything is timed.
    """
    model, rest = take_sizes(request.model or preset(request.preset or USUAL_PRESET), request.changes)
    if "vocab_size" in rest:
        model = model.replace(vocab_size=rest.pop("vocab_size"))  # a model without words says so
    longest = rest.get("context_length")
    if request.model is None and isinstance(model, TextConfig) and isinstance(longest, int):
        model = model.replace(context_length=max(longest, model.context_length))  # who shall read more sees more
    sized = request.preset is not None or request.model is not None or len(rest) < len(request.changes)
    if request.model is not None and isinstance(model, TextConfig):
        rest.setdefault("context_length", model.context_length)  # what it can read, it goes on reading
    elif text is not None and text.vocab_size and "vocab_size" not in request.changes and isinstance(model, TextConfig):
        model = model.replace(vocab_size=text.vocab_size)
    settings = recipe(request.recipe, **rest)
    if settings.dropout is not None and isinstance(model, TextConfig):
        model = model.replace(dropout=settings.dropout)
    if not request.timed:
        model = as_learned(model, settings.context_length) if isinstance(model, GPTConfig) else model
        return Choice(model, warmed_in_time(settings, rest))
    if text is None:
        raise UsageError("what suits a time depends on the text too: name the data")
    if request.recipe == RECIPE and isinstance(model, GPTConfig) and not sized:
        check_enough(text)
    before_timing()
    if request.recipe != RECIPE or not isinstance(model, GPTConfig):
        return fit_to_minutes(request, model, settings, rest)
    return _designed(text, _budget(request, settings), rest, model if sized else None)


def take_sizes(model: ModelConfig, given: Mapping[str, Any]) -> tuple[ModelConfig, dict[str, Any]]:
    """A model with those settings that only a model has, such as n_layers, and the settings that are left."""
    of_training = {each.name for each in fields(TrainConfig)}
    sizes = {each.name for each in fields(model)} - of_training
    known = {*of_training, *sizes, "vocab_size"}  # which a model without words refuses in words of its own
    check_names(given, known)
    changes = {name: value for name, value in given.items() if name in sizes}
    rest = {name: value for name, value in given.items() if name not in sizes}
    return (model.replace(**changes) if changes else model), rest


def resumed_settings(folder: RunFolder, changes: Mapping[str, Any]) -> tuple[ModelConfig, TrainConfig]:
    """The model and the settings of a run that goes on, with some settings changed."""
    model, settings = folder.read()
    try:
        config = TrainConfig().change(**settings)
    except (KothaError, TypeError) as error:
        raise CheckpointError("{path} is broken: {error}", path=folder.path / CONFIG, error=error) from error
    same, changes = take_sizes(model, changes)  # torchrun starts again with all that was said the first time
    if same != model:
        raise ConfigError("a run that goes on keeps its model; for other sizes start another run")
    return model, config.change(**changes)


def _budget(request: TrainRequest, settings: TrainConfig) -> Budget:
    minutes = request.minutes or USUAL_MINUTES
    return budget_for(minutes, request.memory_bytes, request.device, settings.precision, request.gpu)


def fit_to_minutes(
    request: TrainRequest,
    model: ModelConfig,
    settings: TrainConfig,
    fixed: Mapping[str, Any],
    usual_length: int | None = None,
) -> Choice:
    """Settings as they are, for as many steps as the time allows over examples whose length is usually this."""
    budget, context = _budget(request, settings), planned_context(model, settings)
    seconds = budget.pace(model, settings, budget.micro_batch(model, settings, context), usual_length or context)
    steps = max(EVALUATIONS, int(budget.seconds / seconds))
    pace = {name: value for name, value in pace_of(steps, settings.warmup_steps).items() if name not in fixed}
    many, time = Plural("{n} step", "{n:,} steps", n=steps), Duration(60 * budget.minutes)
    return Choice(model, settings.change(**pace), seconds, None, Message("{steps} in {time}", steps=many, time=time))


def check_settings(model: ModelConfig, config: TrainConfig) -> None:
    """Refuse settings that only another family learns by."""
    for name in ("teachers", "backwards"):
        if getattr(config, name) and not isinstance(model, GPTConfig):
            raise ConfigError("{name} is for a gpt, which learns next tokens; train this one without", name=name)
    if config.augment != "none" and not isinstance(model, ViTConfig):
        raise ConfigError("augment is for images; leave it out")
    if isinstance(model, ViTConfig | ClassifierConfig):
        return
    if config.class_weights != "equal" or config.best_by != "loss":
        raise ConfigError("class_weights and best_by are for classes, and this run learns words; leave them out")


def check_lora(lora: int | None, tokenizer: Tokenizer, data: str, origin: Origin | None) -> None:
    """Refuse LoRA where there is nothing that it could be beside; ``data`` is what the tokenizer cuts."""
    if lora is None:
        return
    if origin is None:
        raise UsageError("lora={lora} learns beside weights that stay, so it needs a model to start from", lora=lora)
    own = origin.bundle.tokenizer
    if own is None or own.fingerprint != tokenizer.fingerprint:
        raise UsageError(
            "lora={lora} leaves the table of words as it is, and {data} was cut by another tokenizer than "
            "{origin} reads with; prepare the data with that one",
            lora=lora,
            data=data,
            origin=origin.name,
        )


def _designed(text: TextSize, budget: Budget, fixed: dict[str, Any], model: GPTConfig | None) -> Choice:
    """Settings by the rules, and without a model its sizes too."""
    design = propose(text, budget, fixed, model)
    settings = design.settings
    ends = Message("; more passes over so little text would only memorise it") if design.text_ends else ""
    sentence = Message(
        "{layers} of {width} ({parameters} parameters), {steps:,} steps of {batch} x {context} tokens, learning rates "
        "{rate:g} and Muon {muon:g}: for {size} of text and {time}, {times} times through it{ends}",
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
    return Choice(design.model, settings, design.seconds_per_step, design, sentence)
