"""Backwards: from memory, minutes and a text to a model that fits all three, and why.

A ladder of shapes in the modern layout is tried from the largest down. A rung is taken if the text is large enough for
it, if its planned memory fits, and if it sees enough tokens in the time. Batch, context and rates follow by
``rules.py``; where the sizes are given, only those do. What was measured (docs/dev/experiments.md):

- 30 M parameters did well on 32 MB of text and 58 M only memorised it sooner: at most one parameter a byte;
- in a minute or two on two cores, models that saw fewer than half as many tokens as they had parameters lost to smaller
  ones. One layer of 128 beat two of 96 by a hundredth; two stay, for a head that looks at what another found.

It proposes; it does not search. A trained pair of runs says more than all of these rules.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import numpy as np

from kotha.errors import ConfigError, DataError, UsageError
from kotha.i18n.message import Message, Plural
from kotha.model.config import GPTConfig, ModelConfig
from kotha.model.parameters import count_parameters
from kotha.model.presets import preset
from kotha.text.corpus.documents import read_documents
from kotha.text.shards import DATASET_FILE, Dataset
from kotha.training.config import Precision, TrainConfig, recipe
from kotha.training.device import available_memory, choose_arithmetic
from kotha.training.plan.memory import Conditions, largest_micro_batch, plan_memory
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
from kotha.training.plan.step_time import (
    COMPILE_SECONDS,
    GPU,
    SHARE_OF_PEAK,
    arithmetic_there,
    count_work,
    peak_of,
    predict_seconds_per_step,
)

# -- the text ----------------------------------------------------------------------------------------------------------

# Of a corpus, what `kotha prepare` leaves for training.
_TRAIN_SHARE = 0.95
# Characters of a token with so many pieces, and how many more with each doubling (docs/dev/experiments.md).
_CHARACTERS_PER_TOKEN, _PER_DOUBLING, _AT = 4.29, 0.476, 8192


@dataclass(frozen=True)
class TextSize:
    """A text to learn from. A data folder knows its tokens; of a corpus they are estimated from the news set."""

    path: str
    bytes: int  # of the training part
    characters: int
    documents: int
    tokens: int | None = None  # of the training part, where it is already cut into tokens
    vocab_size: int | None = None  # of its tokenizer, where it has one
    validation_tokens: int | None = None

    @property
    def prepared(self) -> bool:
        """Is it a data folder?"""
        return self.tokens is not None

    def tokens_with(self, vocab_size: int) -> int:
        """Tokens of the training part: counted, or estimated for a vocabulary."""
        if self.tokens is not None:
            return self.tokens
        per_token = _CHARACTERS_PER_TOKEN + _PER_DOUBLING * math.log2(vocab_size / _AT)
        return int(self.characters / max(1.0, per_token))


def measure_text(path: str) -> TextSize:
    """Measure a data folder or any corpus that can be read."""
    if (Path(path) / DATASET_FILE).is_file():
        data = Dataset(path, verify=False)
        train, held_out = data["train"].info, data.splits.get("validation")
        validation = None if held_out is None else held_out.info.tokens
        size = data.tokenizer.vocab_size
        return TextSize(path, train.bytes, train.characters, train.documents, train.tokens, size, validation)
    sizes = np.zeros(3, np.int64)  # bytes, characters, documents
    for document in read_documents([path]):
        sizes += (len(document.text.encode()), len(document.text), 1)
    if not sizes[2]:
        raise DataError("{path} contains no text; give a data folder, a file or a folder of texts", path=path)
    return TextSize(path, *(int(_TRAIN_SHARE * each) for each in sizes.tolist()))


# -- the budget --------------------------------------------------------------------------------------------------------

Pace = Callable[[ModelConfig, TrainConfig, int, int], float]  # seconds of a step: model, settings, micro-batch, context

# Of the time, what goes into evaluations, samples and saving.
ASIDE = 0.1
# What small models reach of a processor's large products, and how long a run takes to start there.
_USUAL_SHARE, _START_SECONDS = 0.3, 10.0


@dataclass(frozen=True)
class Budget:
    """A machine, and what may be used of it."""

    device: str  # cpu or cuda
    precision: str
    memory_bytes: int
    minutes: float
    start_seconds: float  # before the first step: imports, a short timing, compiling
    reachable: float  # operations a second that no training there exceeds
    usual: float  # operations a second that one may expect, to choose sizes before anything is timed
    pace: Pace

    def how(self, context_length: int) -> Conditions:
        """How a training runs there."""
        return Conditions(context_length, self.precision, self.device, compiled=self.device == "cuda")

    def micro_batch(self, model: ModelConfig, settings: TrainConfig, context_length: int) -> int:
        """Sequences at once that the memory holds."""
        return largest_micro_batch(model, settings, self.memory_bytes, self.how(context_length))

    @property
    def seconds(self) -> float:
        """What is left for the steps."""
        return max(0.0, 60 * self.minutes * (1 - ASIDE) - self.start_seconds)


def budget_for(
    minutes: float,
    memory_bytes: int | None = None,
    device: str | None = None,
    precision: Precision = "auto",
    gpu: GPU | None = None,
) -> Budget:
    """This machine, or a GPU by name; without a budget of memory, what is free there."""
    arithmetic = choose_arithmetic(precision, device) if gpu is None else arithmetic_there(precision, gpu)
    memory = available_memory(arithmetic.device) if gpu is None else gpu.memory
    if gpu is not None and memory_bytes is not None and memory_bytes > memory:
        raise UsageError(
            "{given:g} GB is more than {gpu} has ({there:g} GB); give less, or omit it",
            given=memory_bytes / 1e9,
            gpu=gpu.title,
            there=memory / 1e9,
        )
    peak, kind = peak_of(arithmetic, gpu), arithmetic.device.type
    return Budget(
        device=kind,
        precision=arithmetic.precision,
        memory_bytes=memory_bytes or memory,
        minutes=minutes,
        start_seconds=COMPILE_SECONDS if kind == "cuda" else _START_SECONDS,
        reachable=peak,
        usual=peak * (_USUAL_SHARE if gpu is None else SHARE_OF_PEAK),
        pace=partial(predict_seconds_per_step, arithmetic=arithmetic, gpu=gpu),
    )


# -- the design --------------------------------------------------------------------------------------------------------

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
        return Design(text, budget, model, fixed or {}).with_enough_steps()
    check_enough(text)
    vocab_size = text.vocab_size or choose_vocabulary(text.bytes)
    considered: list[Design] = []
    for layers, width in reversed(RUNGS):
        trial = Design(text, budget, shape(layers, width, vocab_size), fixed or {})
        smallest = (layers, width) == RUNGS[0]
        if smallest:
            trial = trial.with_enough_steps()
        trial.verdict = trial.judge(smallest)
        considered.append(trial)
        if trial.verdict is None:
            trial.considered = considered
            return trial
    raise ConfigError("{verdict}", verdict=considered[-1].verdict)


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

    def __init__(self, text: TextSize, budget: Budget, model: GPTConfig, fixed: dict[str, Any]) -> None:
        self._given, self._fixed = (text, budget, model), fixed
        self.verdict: Message | None = None  # why not, with what would be needed; None if it fits
        self.considered: list[Design] = []  # rungs tried, largest first, this one last; none where sizes were given
        self.parameters = count_parameters(model).total
        self._train_tokens = text.tokens_with(model.vocab_size)
        work = count_work(model, min(256, model.context_length)).training_per_token
        by_time = budget.usual * budget.seconds / work
        short = is_short(by_time)
        self._most_tokens = most_epochs(short) * self._train_tokens
        expected = min(by_time, self._most_tokens)
        context = fixed.get("context_length") or min(model.context_length, context_for(expected))
        self._base = {
            "context_length": context,
            "batch_size": batch_for(expected, context, little_text=by_time > self._most_tokens),
            **rates_for(model.d_model),
            **restraint_for(expected / self._train_tokens, short),
            **fixed,
        }
        self.model = as_learned(model, context).replace(dropout=self._base["dropout"])
        self.context_length, self.tokens_per_step = int(context), int(self._base["batch_size"] * context)

    def with_enough_steps(self) -> "Design":
        """The same with half the batch, as often as there would be very few steps, unless the user chose it."""
        design, size = self, int(self._base["batch_size"])
        while (
            self._given[1].seconds < _FEW_STEPS * design.seconds_per_step
            and size > _SMALLEST_BATCH
            and "batch_size" not in self._fixed
        ):
            size //= 2
            design = Design(*self._given, {**self._fixed, "batch_size": size})
        return design

    def judge(self, smallest: bool) -> Message | None:
        """Why not, with what would be needed; None if it fits. What is quickly told comes first."""
        text, budget, _ = self._given
        wanted, n = 0.0 if smallest else TOKENS_PER_PARAMETER * self.parameters, self.parameters
        if not smallest and n > max(SMALL_MODEL, PARAMETERS_PER_BYTE * text.bytes):
            return Message(
                "{n:,} parameters for {size:,} bytes of text: the model would memorise it", n=n, size=text.bytes
            )
        work = count_work(self.model, self.context_length).training_per_token
        if wanted * work / budget.reachable > budget.seconds:
            return Message(
                "too slow: {wanted:,.0f} tokens would exceed the given time even at this machine's peak speed",
                wanted=wanted,
            )
        needed = plan_memory(self.model, self._settings, self.micro_batch_size, budget.how(self.context_length)).total
        if needed > budget.memory_bytes:
            return Message(
                "{available:g} GB of memory is too little for {layers} of width {width}: one sequence of "
                "{context} tokens at a time needs {needed:.2f} GB; give at least {least:.1f} GB",
                available=budget.memory_bytes / 1e9,
                layers=Plural("{n} layer", "{n:,} layers", n=self.model.n_layers),
                width=self.model.d_model,
                needed=needed / 1e9,
                context=self.context_length,
                least=needed / 1e9 + 0.05,
            )
        tokens = budget.seconds / self.seconds_per_step * self.tokens_per_step
        slow = "too slow: {tokens:,.0f} tokens in the given time, but at least {wanted:,.0f} are needed"
        return None if tokens >= wanted else Message(slow, tokens=tokens, wanted=wanted)

    @property
    def _settings(self) -> TrainConfig:
        return recipe(RECIPE, **self._base)

    @cached_property
    def micro_batch_size(self) -> int:
        """Sequences at once that the memory holds."""
        return self._given[1].micro_batch(self.model, self._settings, self.context_length)

    @cached_property
    def seconds_per_step(self) -> float:
        """As the machine was timed, or a GPU's is estimated."""
        return self._given[1].pace(self.model, self._settings, self.micro_batch_size, self.context_length)

    @property
    def _steps_by_time(self) -> int:
        return max(EVALUATIONS, int(self._given[1].seconds / self.seconds_per_step))

    @property
    def most_steps(self) -> int:
        """Steps after which more passes would only memorise the text."""
        return max(LEAST_STEPS, int(self._most_tokens / self.tokens_per_step))

    @property
    def text_ends(self) -> bool:
        """Is it the text and not the time that ends it?"""
        return self._steps_by_time > self.most_steps

    @property
    def tokens(self) -> int:
        """Tokens that it will see."""
        return min(self._steps_by_time, self.most_steps) * self.tokens_per_step

    @property
    def epochs(self) -> float:
        """Passes over the text."""
        return self.tokens / self._train_tokens

    @property
    def changes(self) -> dict[str, Any]:
        """Settings that differ from the recipe's."""
        # Evaluations may cost their share of the time, all together; a forward pass is a third of a step.
        affordable, held_out = int(_EVALUATING * 3 * self.tokens / EVALUATIONS), self._given[0].validation_tokens
        least = max(2 * self.context_length, affordable)
        sizes = {
            "micro_batch_size": self.micro_batch_size,
            "evaluate_tokens": None if held_out is not None and held_out <= affordable else least,
        }
        steps = min(self._steps_by_time, self.most_steps)
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
