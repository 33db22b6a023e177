"""A user's training request, and the model and settings chosen for it.

With a time limit, the batch size, context length, learning rates and number of steps are derived from the text and the
machine (``plan/rules.py``). Without a preset, the model sizes are derived too (``plan/design.py``) and, if there is
enough time, teachers and a student are planned (``plan/stages.py``). If the user sets the number of steps, or chooses a
recipe other than the modern one, the recipe's settings are used unchanged, except that a warm-up longer than most of
the run is shortened.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from kotha.errors import UsageError
from kotha.i18n.message import Message, Option, Plural, Text
from kotha.i18n.numbers import Count, Duration, Size
from kotha.model.config import GPTConfig, ModelConfig, TextConfig
from kotha.model.fields import is_number
from kotha.model.parameters import count_parameters
from kotha.model.presets import preset
from kotha.text.tokenizer.tokenizer import Tokenizer
from kotha.training.config import TrainConfig, check_names, recipe
from kotha.training.initial_weights import Origin
from kotha.training.plan.design import RECIPE, Budget, Design, budget_for, check_enough, limit_context, propose
from kotha.training.plan.memory import planned_context
from kotha.training.plan.rules import EVALUATIONS, pace_of, times
from kotha.training.plan.stages import Quality, Stage, plan_stages
from kotha.training.plan.step_time import GPU
from kotha.training.plan.text_size import TextSize

# The default time limit, the largest time limit (a year), and the default preset.
USUAL_MINUTES, LONGEST_MINUTES, USUAL_PRESET = 10.0, 525_600, "pocket"


@dataclass(frozen=True)
class TrainRequest:
    """The user's request; all other settings are chosen automatically."""

    preset: str | None = None  # preset name; None: sizes chosen for the text and the time
    recipe: str | None = None  # course, classic or modern; None: chosen for the data
    minutes: float | None = None  # time limit for the whole run, in minutes
    memory_bytes: int | None = None  # memory limit; None: the available memory
    device: str | None = None  # cpu or cuda; None: the best device of this machine
    gpu: GPU | None = None  # a GPU to plan for, which need not be present
    changes: Mapping[str, Any] = field(default_factory=dict)  # training settings and model sizes, by name
    origin: Origin | None = None  # a trained model to start from; None: random weights
    quality: Quality = "quick"  # quick: one ordinary model; standard: possibly a wider one; best: possibly teachers too

    def __post_init__(self) -> None:
        if self.minutes is not None and not (is_number(self.minutes) and 0 < self.minutes <= LONGEST_MINUTES):
            raise UsageError(
                "{minutes} must be above 0 and at most a year ({most:,})",
                minutes=Option("minutes", self.minutes),
                most=LONGEST_MINUTES,
            )
        if self.minutes is not None and "steps" in self.changes:
            raise UsageError("minutes and steps both set the length of the run; use only one of them")
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
        """Raise an error for settings that only a new run can have."""
        if self.origin is not None or self.minutes is not None:
            raise UsageError("initial weights and minutes apply only to new runs; start a new run, or change steps")


@dataclass(frozen=True)
class RunSetup:
    """The model and settings chosen for a training request."""

    model: ModelConfig
    settings: TrainConfig
    seconds_per_step: float | None = None  # seconds per step, as measured while choosing
    design: Design | None = None  # the design on which the choice is based, if any
    stages: tuple[Stage, ...] = ()  # the teachers and the student, or a single stage; empty: only the designed model
    sentence: Text = ""  # what was chosen, and why; empty if nothing was chosen

    @property
    def most_steps(self) -> int | None:
        """The number of steps after which more passes over the text do not help; None if unknown."""
        if self.stages:
            return self.stages[-1].most_steps
        return None if self.design is None else self.design.most_steps


def choose_settings(
    request: TrainRequest,
    text: TextSize | None = None,
    before_timing: Callable[[], Any] = lambda: None,
    tokenizer: Tokenizer | None = None,
) -> RunSetup:
    """Choose the model and the settings for a request; ``text`` and ``tokenizer`` belong to the data, if any.

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
        raise UsageError("settings for a time limit depend on the text; specify the data")
    by_rules = request.recipe in (None, RECIPE) and isinstance(model, GPTConfig)
    if by_rules and not sized:
        check_enough(text)
    before_timing()
    if by_rules and isinstance(model, GPTConfig):
        quality = "quick" if sized else request.quality
        return _designed(text, request.budget(settings), rest, model if sized else None, quality)
    return fit_to_minutes(request, model, settings, rest)


def take_sizes(model: ModelConfig, given: Mapping[str, Any]) -> tuple[ModelConfig, dict[str, Any]]:
    """Apply the settings that are fields of the model, such as n_layers; return the model and the other settings."""
    of_training = {each.name for each in fields(TrainConfig)}
    # Includes vocab_size, which the config of a model without a vocabulary rejects.
    sizes = {"vocab_size", *(each.name for each in fields(model))} - of_training
    check_names(given, {*of_training, *sizes})
    changes = {name: value for name, value in given.items() if name in sizes}
    rest = {name: value for name, value in given.items() if name not in sizes}
    return (model.replace(**changes) if changes else model), rest


def fit_to_minutes(
    request: TrainRequest,
    model: ModelConfig,
    settings: TrainConfig,
    fixed: Mapping[str, Any],
    usual_length: int | None = None,
) -> RunSetup:
    """Return the settings with as many steps as the time allows; ``usual_length`` is a typical example length."""
    budget, context = request.budget(settings), planned_context(model, settings)
    seconds = budget.pace(model, settings, budget.micro_batch(model, settings, context), usual_length or context)
    steps = max(EVALUATIONS, int(budget.seconds / seconds))
    pace = {name: value for name, value in pace_of(steps, settings.warmup_steps).items() if name not in fixed}
    many, time = Plural("{n} step", "{n:,} steps", n=steps), Duration(60 * budget.minutes)
    sentence = Message("{steps} in {time}", steps=many, time=time)
    return RunSetup(model, settings.change(**pace), seconds, sentence=sentence)


def _designed(
    text: TextSize, budget: Budget, fixed: dict[str, Any], model: GPTConfig | None, quality: Quality
) -> RunSetup:
    """Choose settings by the rules and, if no model is given, also its sizes and the stages."""
    design, stages = propose(text, budget, fixed, model), tuple[Stage, ...]()
    if not {"teachers", "backwards", "lora"} & fixed.keys():
        stages = plan_stages(text, budget, design, fixed, quality)
    if not stages:
        sentence = _describe(design.model, design.settings, text, budget, design.text_ends)
        return RunSetup(design.model, design.settings, design.seconds_per_step, design, (), sentence)
    *teachers, last = stages
    sentence = _describe(last.model, last.settings, text, budget, last.settings.steps == last.most_steps)
    if teachers:
        n_teachers = Plural("{n} teacher", "{n:,} teachers", n=len(teachers))
        sentence = Message(
            "{teachers}, then a student distilled from them: {student}", teachers=n_teachers, student=sentence
        )
    return RunSetup(last.model, last.settings, last.seconds_per_step, design, stages, sentence)


def _describe(model: GPTConfig, settings: TrainConfig, text: TextSize, budget: Budget, text_ends: bool) -> Message:
    """Describe a model and its settings in one sentence."""
    ends = Message("; with more passes the model would only memorise this small text") if text_ends else ""
    tokens = settings.steps * settings.batch_size * (settings.context_length or model.context_length)
    return Message(
        "{layers} of width {width} ({parameters} parameters), {steps:,} steps of {batch} x {context} tokens, "
        "learning rates {rate:g} (AdamW) and {muon:g} (Muon): for {size} of text and {time}, {times} passes over the "
        "text{ends}",
        layers=Plural("{n} layer", "{n:,} layers", n=model.n_layers),
        width=model.d_model,
        parameters=Count(count_parameters(model).total),
        steps=settings.steps,
        batch=settings.batch_size,
        context=settings.context_length,
        rate=settings.learning_rate,
        muon=settings.muon_learning_rate,
        size=Size(text.bytes),
        time=Duration(60 * budget.minutes),
        times=times(tokens / text.tokens_with(model.vocab_size)),
        ends=ends,
    )
