"""How a model learns from examples: for so many passes over them, for so long, or by a recipe."""

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from kotha.errors import ConfigError, UsageError
from kotha.finetune.examples import ExamplesRequest
from kotha.i18n.message import Message, OnRemark, Option
from kotha.model.config import ModelConfig, TextConfig
from kotha.model.presets import preset
from kotha.text.tokenizer.tokenizer import Tokenizer
from kotha.training.config import TrainConfig, recipe
from kotha.training.plan.rules import pace_of
from kotha.training.start import fit_to_minutes, take_sizes

# Evaluations without gain that end a run (early stopping), and evaluations in each pass over the examples.
_PATIENCE, _LOOKS = 6, 2
USUAL: dict[str, Any] = {
    "schedule": "cosine",
    "floor": 0.0,
    "patience": _PATIENCE,
    "keep_checkpoints": 1,
    "spike": None,
}
# Of texts, batches change their shape from step to step, and each new one would be compiled.
USUAL_TEXTS: dict[str, Any] = {**USUAL, "optimizer": "adamw", "weight_decay": 0.01, "beta2": 0.98, "compile": "off"}
# The learning rate falls with the width: what was best for a small model and for one of 512 (docs/dev/experiments.md),
# and what BERT's authors use at its size. Few numbers learn by LoRA, so they may go further.
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
    warmup: Callable[[int], int] | None = None,
) -> tuple[ModelConfig, TrainConfig]:
    """Settings by a recipe, for the minutes that were given, or for the steps in which so many examples are read.

    ``warmup`` gives the steps of warm-up where they go by the number of all; ``context`` holds the longest example.
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
    pace = pace_of(steps, config.warmup_steps) if warmup is None else {**pace_of(steps), "warmup_steps": warmup(steps)}
    return _changed(model, config, pace, given)


def _changed(
    model: AnyConfig, config: TrainConfig, pace: Mapping[str, Any], given: Mapping[str, Any]
) -> tuple[AnyConfig, TrainConfig]:
    """Settings with what was not given chosen, and the model with their dropout."""
    config = config.change(**{name: value for name, value in pace.items() if name not in given})
    if config.dropout is not None:
        model = model.replace(dropout=config.dropout)
    return model, config
