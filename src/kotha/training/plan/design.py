"""Backwards: from memory, minutes and a text to a model that fits all three, and why.

A ladder of shapes in the modern layout is tried from the largest down. A rung is taken if the text is large enough for
it, if its planned memory fits, and if it sees enough tokens in the time. Batch, context and rates follow by
``rules.py``; where the sizes are given, only those do. What was measured (docs/experiments.md):

- 30 M parameters did well on 32 MB of text and 58 M only memorised it sooner: at most one parameter a byte;
- in a minute or two on two cores, models that saw fewer than half as many tokens as they had parameters lost to smaller
  ones. One layer of 128 beat two of 96 by a hundredth; two stay, for a head that looks at what another found.

It proposes; it does not search. A trained pair of runs says more than all of these rules.
"""

from functools import cached_property
from typing import Any

from kotha.errors import ConfigError, DataError
from kotha.i18n.message import Message, Plural
from kotha.model.config import GPTConfig
from kotha.model.parameters import count_parameters
from kotha.model.presets import preset
from kotha.training.config import TrainConfig, recipe
from kotha.training.plan.flops import count_work
from kotha.training.plan.memory import MemoryPlan, plan_memory
from kotha.training.plan.planning import Budget, TextSize
from kotha.training.plan.rules import (
    EVALUATIONS,
    batch_for,
    choose_vocabulary,
    context_for,
    decay_for,
    is_short,
    most_epochs,
    pace_of,
    rates_for,
    restraint_for,
)

# Layers and width. One step up costs about twice as much.
RUNGS = (
    *((2, 64), (2, 96), (3, 128), (4, 192), (4, 256), (6, 320), (6, 384), (8, 512)),
    *((10, 640), (12, 768), (16, 1024), (24, 1280), (32, 1600), (32, 2048)),
)
BASE, RECIPE = "bangla-modern", "modern"
# Steps that a very short text is read for, whatever its passes.
LEAST_STEPS = 20
# With fewer steps than these the batch is halved: on a busy machine many small steps teach more than a few large ones.
_FEW_STEPS, _SMALLEST_BATCH = 200, 2
TOKENS_PER_PARAMETER = 0.5
# A text bears a parameter for each byte, and any text a small model.
PARAMETERS_PER_BYTE, SMALL_MODEL = 1.0, 500_000
_LEAST_BYTES = 20_000
# Weights, gradients and what Muon remembers, in float32.
_LEAST_BYTES_PER_PARAMETER = 12
# Of the time of the steps, what all evaluations together may take.
_EVALUATING = 0.1


def propose(
    text: TextSize, budget: Budget, fixed: dict[str, Any] | None = None, model: GPTConfig | None = None
) -> "Design":
    """The largest rung that text, memory and time allow; too little text or memory is refused with what would do.

    In too little time the smallest still does a few steps. ``fixed`` are settings that the user has chosen. With a
    ``model`` its sizes stay, and nothing is refused.
    """
    if model is not None:
        only = Design(text, budget, model, fixed or {})
        only.take_smaller_steps()
        return only
    check_enough(text)
    vocab_size = text.vocab_size or choose_vocabulary(text.bytes)
    considered: list[Design] = []
    for layers, width in reversed(RUNGS):
        trial = Design(text, budget, shape(layers, width, vocab_size), fixed or {}, (layers, width) == RUNGS[0])
        considered.append(trial)
        if not trial.verdict:
            trial.considered = considered
            return trial
    last = considered[-1].verdict
    assert last is not None, "none was taken"
    raise ConfigError("{verdict}", verdict=last)


def check_enough(text: TextSize) -> None:
    """Refuse a text that no model can learn from."""
    if text.bytes < _LEAST_BYTES:
        raise DataError(
            "{path} has {n:,} bytes to train on; a model needs at least {least:,}",
            path=text.path,
            n=text.bytes,
            least=_LEAST_BYTES,
        )


def shape(layers: int, width: int, vocab_size: int) -> GPTConfig:
    """A model of the modern layout.

    >>> shape(8, 512, 8192).d_ff, shape(2, 96, 8192).n_heads
    (1408, 3)
    """
    d_head = 64 if width >= 256 else 32
    d_ff = 32 * round(2.75 * width / 32)
    base = preset(BASE)
    assert isinstance(base, GPTConfig), "designs are of GPTs"
    return base.replace(n_layers=layers, d_model=width, n_heads=width // d_head, d_ff=d_ff, vocab_size=vocab_size)


def as_learned(model: GPTConfig, context_length: int | None) -> GPTConfig:
    """A model whose context is no longer than what it will have learned from, where no weight depends on it."""
    if context_length is None or context_length > model.context_length or model.positions != "rotary":
        return model
    return model.replace(context_length=context_length)


class Design:
    """One model held against text, memory and time, and how it would be trained."""

    def __init__(
        self, text: TextSize, budget: Budget, model: GPTConfig, fixed: dict[str, Any], smallest: bool = False
    ) -> None:
        self._text, self._budget, self._smallest, self._fixed = text, budget, smallest, fixed
        self.considered: list[Design] = []  # rungs tried, largest first, this one last; none where sizes were given
        self.parameters = _parameters(model)
        self._train_tokens = text.tokens_with(model.vocab_size)
        by_time = budget.usual * budget.seconds / _work(model, min(256, model.context_length))
        self._short = is_short(by_time)
        self._most_tokens = most_epochs(self._short) * self._train_tokens
        expected = min(by_time, self._most_tokens)
        context = fixed.get("context_length") or min(model.context_length, context_for(expected))
        self._base = {
            "context_length": context,
            "batch_size": batch_for(expected, context, little_text=by_time > self._most_tokens),
            **rates_for(model.d_model),
            **restraint_for(expected / self._train_tokens, self._short),
            **fixed,
        }
        self.model = as_learned(model, context).replace(dropout=self._base["dropout"])
        self.context_length, self.batch_size = int(context), int(self._base["batch_size"])

    @cached_property
    def verdict(self) -> Message | None:
        """Why not, with what would be needed; None if it fits. What is quickly told comes first."""
        if not self._smallest and self.parameters > max(SMALL_MODEL, PARAMETERS_PER_BYTE * self._text.bytes):
            return Message(
                "{n:,} parameters for {size:,} bytes of text: it would memorise it",
                n=self.parameters,
                size=self._text.bytes,
            )
        wanted = 0.0 if self._smallest else TOKENS_PER_PARAMETER * self.parameters
        work = _work(self.model, self.context_length)
        if wanted * work / self._budget.reachable > self._budget.seconds:
            return Message(
                "too slow: {wanted:,.0f} tokens would take more than the time at this machine's very best",
                wanted=wanted,
            )
        if self._smallest:
            self.take_smaller_steps()
        elif _LEAST_BYTES_PER_PARAMETER * self.parameters > self._budget.memory_bytes:
            return Message("too large: its weights, gradients and the optimizer alone need more than the memory")
        total, available = self.memory.total, self._budget.memory_bytes
        if total > available:
            return Message(
                "{available:g} GB of memory is too little for {layers} of {width}: it needs {needed:.2f} GB, one "
                "sequence of {context} tokens at a time; give at least {least:.1f} GB",
                available=available / 1e9,
                layers=Plural("{n} layer", "{n:,} layers", n=self.model.n_layers),
                width=self.model.d_model,
                needed=total / 1e9,
                context=self.context_length,
                least=total / 1e9 + 0.05,
            )
        tokens = self._budget.seconds / self.seconds_per_step * self.tokens_per_step
        slow = "too slow: {tokens:,.0f} tokens in the time, and it should see {wanted:,.0f}"
        return None if tokens >= wanted else Message(slow, tokens=tokens, wanted=wanted)

    @property
    def tokens_per_step(self) -> int:
        """Tokens that one update sees."""
        return self.batch_size * self.context_length

    @cached_property
    def seconds_per_step(self) -> float:
        """As the machine was timed, or a GPU's is estimated."""
        return self._budget.pace(self.model, recipe(RECIPE, **self._base), self.micro_batch_size, self.context_length)

    def take_smaller_steps(self) -> None:
        """Halve the batch as long as there would be very few steps, unless the user chose it."""
        while (
            self._budget.seconds < _FEW_STEPS * self.seconds_per_step
            and self.batch_size > _SMALLEST_BATCH
            and "batch_size" not in self._fixed
        ):
            self.batch_size = self._base["batch_size"] = self.batch_size // 2
            for name in ("seconds_per_step", "micro_batch_size", "memory"):
                self.__dict__.pop(name, None)

    @cached_property
    def micro_batch_size(self) -> int:
        """Sequences at once that the memory holds."""
        return self._budget.micro_batch(self.model, recipe(RECIPE, **self._base), self.context_length)

    @cached_property
    def memory(self) -> MemoryPlan:
        """What it needs."""
        settings, how = recipe(RECIPE, **self._base), self._budget.how(self.context_length)
        return plan_memory(self.model, settings, micro_batch_size=self.micro_batch_size, **how)

    @property
    def _steps_by(self) -> tuple[int, int]:
        """How many steps the time allows, and how many the text."""
        by_time = max(EVALUATIONS, int(self._budget.seconds / self.seconds_per_step))
        return by_time, max(LEAST_STEPS, int(self._most_tokens / self.tokens_per_step))

    @property
    def most_steps(self) -> int:
        """Steps after which more passes would only memorise the text."""
        return self._steps_by[1]

    @property
    def text_ends(self) -> bool:
        """Is it the text and not the time that ends it?"""
        by_time, by_text = self._steps_by
        return by_time > by_text

    @property
    def tokens(self) -> int:
        """Tokens that it will see."""
        return min(self._steps_by) * self.tokens_per_step

    @property
    def epochs(self) -> float:
        """Passes over the text."""
        return self.tokens / self._train_tokens

    @property
    def changes(self) -> dict[str, Any]:
        """Settings that differ from the recipe's."""
        steps = min(self._steps_by)
        sizes = {"micro_batch_size": self.micro_batch_size, "evaluate_tokens": self._evaluate_tokens(steps)}
        return {**pace_of(steps), **decay_for(steps), **sizes, **self._base}

    @property
    def settings(self) -> TrainConfig:
        """The recipe with the changes."""
        return recipe(RECIPE, **self.changes)

    @property
    def sizes(self) -> dict[str, int]:
        """The model's fields that differ from the preset that a design is built on."""
        names = ("n_layers", "d_model", "n_heads", "d_ff")
        return {name: getattr(self.model, name) for name in names}

    def _evaluate_tokens(self, steps: int) -> int | None:
        """As many as cost their share of the time, all evaluations together; a forward pass is a third of a step."""
        affordable = int(_EVALUATING * 3 * steps * self.tokens_per_step / EVALUATIONS)
        held_out = self._text.validation_tokens
        return None if held_out is not None and held_out <= affordable else max(2 * self.context_length, affordable)


def _parameters(model: GPTConfig) -> int:
    """Parameters of a shape of the ladder, without building it: blocks are alike."""
    one, two = (count_parameters(model.replace(n_layers=layers)).total for layers in (1, 2))
    return one + (model.n_layers - 1) * (two - one)


def _work(model: GPTConfig, context_length: int) -> float:
    """Operations of training for each token, without building all of its blocks."""
    one = count_work(model.replace(n_layers=1), context_length)
    return one.training["head"] + model.n_layers * (one.training_per_token - one.training["head"])
