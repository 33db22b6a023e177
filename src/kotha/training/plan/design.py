"""Design a model for a budget of memory, time and text, with the reasons for each choice.

Sizes of the modern layout are tried from the largest to the smallest. The design uses the first size for which the text
is large enough, the planned memory is available, and the time allows enough tokens. ``rules.py`` determines the batch
size, context length and learning rates; if the user sets the model sizes, only these settings are chosen. The rules are
based on measurements (docs/dev/experiments.md):

- On 32 MB of text a model with 30 M parameters did well, and one with 58 M only memorised the text sooner. The limit is
  therefore one parameter per byte.
- In a few minutes on two cores, models that saw fewer than 0.8 tokens per parameter were worse than smaller ones. One
  layer of width 128 was better than two of width 96 by 0.01, but the smallest size has two layers, so that attention
  heads can use the output of earlier heads.
- In runs with at most six passes over the text, initialization from the counts of token pairs (``bigrams.py``) was
  better by 0.017 bits per byte on news and 0.008 on stories (benchmarks/results/start_from_counts.json).

The design is a proposal, not the result of a search. Comparing two trained models is more reliable than these rules.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

from kotha.errors import ConfigError, DataError, UsageError
from kotha.i18n.message import Message, Plural
from kotha.model.config import GPTConfig, ModelConfig
from kotha.model.parameters import count_parameters
from kotha.model.presets import preset
from kotha.training.config import Precision, TrainConfig, recipe
from kotha.training.device import available_memory, choose_arithmetic
from kotha.training.plan.memory import MemoryConditions, largest_micro_batch, plan_memory
from kotha.training.plan.rules import (
    EVALUATIONS,
    batch_for,
    choose_vocabulary,
    context_for,
    decay_for,
    evaluations_in,
    is_short,
    most_epochs,
    pace_of,
    rates_for,
    regularisation_for,
)
from kotha.training.plan.step_time import (
    GPU,
    SHARE_OF_PEAK,
    arithmetic_of,
    count_work,
    gpu_here,
    peak_of,
    predict_seconds_per_step,
)
from kotha.training.plan.text_size import TextSize

# -- the budget --------------------------------------------------------------------------------------------------------

Pace = Callable[[ModelConfig, TrainConfig, int, int], float]  # seconds per step: model, settings, micro-batch, context

# The share of the time that is reserved for evaluations, samples and saving.
ASIDE = 0.1
# The share of a CPU's peak speed that small models reach.
_USUAL_SHARE = 0.3
# Startup time of a run: imports, timing and, on a GPU, compiling and recording (benchmarks/results/minutes_h200.json).
_START_SECONDS = {"cpu": 10.0, "cuda": 30.0}


@dataclass(frozen=True)
class Budget:
    """A machine, and the memory and time that may be used."""

    device: str  # cpu or cuda
    precision: str
    memory_bytes: int
    minutes: float
    start_seconds: float  # seconds before the first step: imports, timing, compilation
    reachable: float  # peak operations per second of the machine
    usual: float  # expected operations per second, used to choose sizes before anything is timed
    pace: Pace

    def how(self, context_length: int) -> MemoryConditions:
        """Return the conditions of a training run on this machine."""
        return MemoryConditions(context_length, self.precision, self.device, compiled=self.device == "cuda")

    def micro_batch(self, model: ModelConfig, settings: TrainConfig, context_length: int) -> int:
        """The largest micro-batch that fits in memory."""
        return largest_micro_batch(model, settings, self.memory_bytes, self.how(context_length))

    @property
    def seconds(self) -> float:
        """Seconds available for the steps."""
        return max(0.0, 60 * self.minutes * (1 - ASIDE) - self.start_seconds)


def budget_for(
    minutes: float,
    memory_bytes: int | None = None,
    device: str | None = None,
    precision: Precision = "auto",
    gpu: GPU | None = None,
) -> Budget:
    """Return the budget of this machine or of a named GPU; ``memory_bytes`` defaults to the available memory."""
    arithmetic = choose_arithmetic(precision, device) if gpu is None else arithmetic_of(precision, gpu)
    memory = available_memory(arithmetic.device) if gpu is None else gpu.memory
    if gpu is not None and memory_bytes is not None and memory_bytes > memory:
        raise UsageError(
            "{given:g} GB is more than {gpu} has ({there:g} GB); use a smaller value or omit the memory limit",
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
        start_seconds=_START_SECONDS[kind],
        reachable=peak,
        usual=peak * (_USUAL_SHARE if gpu is None else SHARE_OF_PEAK),
        # of compiled steps, if the GPU is known; steps timed here are not compiled
        pace=partial(predict_seconds_per_step, arithmetic=arithmetic, gpu=gpu or gpu_here(arithmetic.device)),
    )


# -- the design --------------------------------------------------------------------------------------------------------

# Layers and width. Each size costs about twice as much as the one before.
RUNGS = (
    *((2, 64), (2, 96), (3, 128), (4, 192), (4, 256), (6, 320), (6, 384), (8, 512)),
    *((10, 640), (12, 768), (16, 1024), (24, 1280), (32, 1600), (32, 2048)),
)
BASE, RECIPE = "bangla-modern", "modern"
# The minimum number of steps, even for a small text.
LEAST_STEPS = 20
# With fewer steps than this, the batch is halved, because many small steps are better than a few large ones.
_FEW_STEPS, _SMALLEST_BATCH = 200, 2
TOKENS_PER_PARAMETER = 0.8
# Parameters are limited to one per byte of text, but any text allows a small model.
PARAMETERS_PER_BYTE, SMALL_MODEL = 1.0, 500_000
_LEAST_BYTES = 20_000
# A run with at most this many passes over the text is initialized from the counts of token pairs. On a CPU, a share of
# its targets is also sampled from an n-gram model (a GPU would wait for the samples), which is counted from this number
# of tokens.
FEW_PASSES, NGRAM_SHARE, _MOST_COUNTED = 6, 0.5, 5_000_000
# The maximum total time of evaluations, as a share of the time for steps.
_EVALUATING = 0.1


def propose(
    text: TextSize, budget: Budget, fixed: dict[str, Any] | None = None, model: GPTConfig | None = None
) -> "Design":
    """Return the largest size that text, memory and time allow; if there is none, raise an error with the requirements.

    If the time is very short, the smallest size is trained for a few steps. ``fixed`` contains the settings chosen by
    the user. A given ``model`` keeps its sizes and is never rejected.
    """
    if model is not None:
        return Design(text, budget, model, fixed or {}).with_enough_steps()
    check_enough(text)
    vocab_size = text.vocab_size or choose_vocabulary(text.bytes)
    considered: list[Design] = []
    for layers, width in reversed(RUNGS):
        trial = Design(text, budget, shape(layers, width, vocab_size), fixed or {}, may_count=True)
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
    """Raise an error if a text is too small to train on."""
    if text.bytes < _LEAST_BYTES:
        raise DataError(
            "{path} has only {n:,} bytes to train on; provide at least {least:,}",
            path=text.path,
            n=text.bytes,
            least=_LEAST_BYTES,
        )


def shape(layers: int, width: int, vocab_size: int) -> GPTConfig:
    """A model config of the modern layout.

    >>> shape(8, 512, 8192).d_ff, shape(2, 96, 8192).n_heads
    (1408, 3)
    """
    d_head = 64 if width >= 256 else 32
    d_ff = 32 * round(2.75 * width / 32)
    base = preset(BASE)
    assert isinstance(base, GPTConfig), "only GPTs are designed"
    return base.replace(n_layers=layers, d_model=width, n_heads=width // d_head, d_ff=d_ff, vocab_size=vocab_size)


def limit_context(model: GPTConfig, context_length: int | None) -> GPTConfig:
    """Limit a model's context to the training length if no weight depends on the context length."""
    if context_length is None or context_length > model.context_length or model.positions != "rotary":
        return model
    return model.replace(context_length=context_length)


class Design:
    """A model and its training settings, checked against text, memory and time."""

    def __init__(
        self, text: TextSize, budget: Budget, model: GPTConfig, fixed: dict[str, Any], may_count: bool = False
    ) -> None:
        """With ``may_count``, a run with few passes over the text is initialized from token counts (``bigrams.py``)."""
        self._given, self._fixed, self._may_count = (text, budget, model), fixed, may_count
        self.verdict: Message | None = None  # why it does not fit, and what is required; None if it fits
        self.considered: list[Design] = []  # sizes tried, largest first, up to this one; empty if sizes were given
        self._judged = count_parameters(model).total
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
            **regularisation_for(expected / self._train_tokens, short),
            **fixed,
        }
        self.model = limit_context(model, context).replace(dropout=self._base["dropout"])
        if (
            may_count
            and text.prepared
            and not {"initial", "lora"} & fixed.keys()
            and expected <= FEW_PASSES * self._train_tokens
        ):
            self.model, self._base["initial"] = self.model.replace(tied_head=False), "bigrams"
            if budget.device == "cpu" and self._train_tokens <= _MOST_COUNTED and not fixed.get("backwards"):
                self._base.setdefault("ngram_share", NGRAM_SHARE)
        self.parameters = count_parameters(self.model).total
        self.context_length, self.tokens_per_step = int(context), int(self._base["batch_size"] * context)

    def with_enough_steps(self) -> "Design":
        """Return the design with the batch halved until there are enough steps, unless the user set the batch."""
        design, size = self, int(self._base["batch_size"])
        while (
            self._given[1].seconds < _FEW_STEPS * design.seconds_per_step
            and size > _SMALLEST_BATCH
            and "batch_size" not in self._fixed
        ):
            size //= 2
            design = Design(*self._given, {**self._fixed, "batch_size": size}, self._may_count)
        return design

    def judge(self, smallest: bool) -> Message | None:
        """Return why the design does not fit and what it requires, or None if it fits. Cheap checks come first."""
        text, budget, _ = self._given
        wanted, n = 0.0 if smallest else TOKENS_PER_PARAMETER * self._judged, self._judged
        if not smallest and n > max(SMALL_MODEL, PARAMETERS_PER_BYTE * text.bytes):
            return Message(
                "{n:,} parameters for {size:,} bytes of text: the model would memorise it", n=n, size=text.bytes
            )
        work = count_work(self.model, self.context_length).training_per_token
        if wanted * work / budget.reachable > budget.seconds:
            return Message(
                "too slow: {wanted:,.0f} tokens would exceed the time limit even at this machine's peak speed",
                wanted=wanted,
            )
        if not self.fits_memory:
            return Message(
                "{available:g} GB of memory is not enough for {layers} of width {width}: one sequence of {context} "
                "tokens at a time needs {needed:.2f} GB; allow at least {least:.1f} GB",
                available=budget.memory_bytes / 1e9,
                layers=Plural("{n} layer", "{n:,} layers", n=self.model.n_layers),
                width=self.model.d_model,
                needed=self._memory / 1e9,
                context=self.context_length,
                least=self._memory / 1e9 + 0.05,
            )
        tokens = budget.seconds / self.seconds_per_step * self.tokens_per_step
        slow = "too slow: {tokens:,.0f} tokens within the time limit, but at least {wanted:,.0f} are needed"
        return None if tokens >= wanted else Message(slow, tokens=tokens, wanted=wanted)

    @property
    def _settings(self) -> TrainConfig:
        return recipe(RECIPE, **self._base)

    @cached_property
    def _memory(self) -> int:
        how = self._given[1].how(self.context_length)
        return plan_memory(self.model, self._settings, self.micro_batch_size, how).total

    @property
    def fits_memory(self) -> bool:
        """Whether the planned memory is available."""
        return self._memory <= self._given[1].memory_bytes

    @cached_property
    def micro_batch_size(self) -> int:
        """The largest micro-batch that fits in memory."""
        return self._given[1].micro_batch(self.model, self._settings, self.context_length)

    @cached_property
    def seconds_per_step(self) -> float:
        """Seconds per step, measured on this machine or estimated for a named GPU."""
        return self._given[1].pace(self.model, self._settings, self.micro_batch_size, self.context_length)

    @property
    def _steps_by_time(self) -> int:
        return max(EVALUATIONS, int(self._given[1].seconds / self.seconds_per_step))

    @property
    def most_steps(self) -> int:
        """The number of steps after which the model would only memorise the text."""
        return max(LEAST_STEPS, int(self._most_tokens / self.tokens_per_step))

    @property
    def text_ends(self) -> bool:
        """Whether the text limits the run, rather than the time."""
        return self._steps_by_time > self.most_steps

    @property
    def tokens(self) -> int:
        """The number of tokens on which the run trains."""
        return min(self._steps_by_time, self.most_steps) * self.tokens_per_step

    @property
    def epochs(self) -> float:
        """The number of passes over the text."""
        return self.tokens / self._train_tokens

    @property
    def changes(self) -> dict[str, Any]:
        """The settings that differ from the recipe's."""
        # Evaluations may take a fixed share of the time in total; a forward pass takes a third of a step.
        affordable, held_out = int(_EVALUATING * 3 * self.tokens / EVALUATIONS), self._given[0].validation_tokens
        least = max(2 * self.context_length, affordable)
        sizes = {
            "micro_batch_size": self.micro_batch_size,
            "evaluate_tokens": None if held_out is not None and held_out <= affordable else least,
        }
        steps = min(self._steps_by_time, self.most_steps)
        evaluations = evaluations_in(self._given[1].seconds)
        return {**pace_of(steps, evaluations=evaluations), **decay_for(steps), **sizes, **self._base}

    @property
    def settings(self) -> TrainConfig:
        """The recipe's settings with the changes applied."""
        return recipe(RECIPE, **self.changes)

    @property
    def sizes(self) -> dict[str, int]:
        """The model's fields that differ from the base preset."""
        names = ("n_layers", "d_model", "n_heads", "d_ff")
        untied = {} if self.model.tied_head else {"tied_head": False}
        return {name: getattr(self.model, name) for name in names} | untied
