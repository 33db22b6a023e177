"""Backwards: from memory, minutes and a text to a model that fits all three, and why.

A ladder of shapes in the modern layout is tried from the largest down. A rung is taken if the text is large enough for
it, if its planned memory fits, and if it sees enough tokens in the time. The rules come from what was measured here
(docs/experiments.md, on Bangla news and on stories); where they reach beyond it, the reasons say so:

- 30 M parameters did well on 32 MB of text and 58 M only memorised it sooner: at most one parameter a byte;
- in a minute on two cores, models that saw fewer than half as many tokens as they had parameters lost to smaller ones;
- after 21 passes over the news the modern recipe still gained: at most 20 passes;
- learning rates fall with the width: 6e-3 (Muon 2e-2) was best at 96, 1e-3 (3e-3) was used at 512.

It proposes; it does not search. A trained pair of runs says more than all of these rules.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

from kotha.errors import ConfigError, DataError
from kotha.model.config import GPTConfig
from kotha.model.parameters import count_parameters
from kotha.model.presets import preset
from kotha.train.config import TrainConfig
from kotha.train.plan.activations import positions
from kotha.train.plan.budget import Place
from kotha.train.plan.flops import count_work
from kotha.train.plan.material import Material
from kotha.train.plan.memory import CPU_POSITIONS, MemoryPlan, largest_micro_batch, plan_memory
from kotha.train.recipes import recipe

# Layers and width. One step up costs about twice as much.
RUNGS = (
    *((2, 64), (2, 96), (3, 128), (4, 192), (4, 256), (6, 320), (6, 384), (8, 512)),
    *((10, 640), (12, 768), (16, 1024), (24, 1280), (32, 1600), (32, 2048)),
)
BASE = "bangla-modern"
LEAST_STEPS = 100
TOKENS_PER_PARAMETER = 0.5
PARAMETERS_PER_BYTE = 1.0
MOST_EPOCHS = 20
_EVALUATIONS = 8
_FEWEST_TOKENS_PER_STEP, _MOST_TOKENS_PER_STEP = 1024, 16_384
_WANTED_STEPS = 500
_LEAST_BYTES = 20_000
# Weights, gradients and what Muon remembers, in float32.
_LEAST_BYTES_PER_PARAMETER = 12
# Bytes of text from which a vocabulary pays; 8,192 was measured at 32 MB, the rest follows it.
_VOCABULARIES = ((0, 1024), (200_000, 2048), (1_000_000, 4096), (4_000_000, 8192), (400_000_000, 16_384))


@dataclass(frozen=True)
class Candidate:
    """A rung, and what became of it."""

    layers: int
    width: int
    parameters: int
    verdict: str
    """Empty if it fits."""


@dataclass(frozen=True)
class Design:
    """What is proposed."""

    model: GPTConfig
    recipe: str
    changes: dict[str, Any]
    """Settings that differ from the recipe's."""
    parameters: int
    memory: MemoryPlan
    seconds_per_step: float
    epochs: float
    tokens: int
    text_ends: bool
    """Is it the text and not the time that ends it?"""
    considered: list[Candidate]
    """The rungs tried, largest first; the last is this one."""

    @property
    def settings(self) -> TrainConfig:
        """The recipe with the changes."""
        return recipe(self.recipe, **self.changes)

    @property
    def sizes(self) -> dict[str, int]:
        """The model's fields that differ from the preset that it is built on."""
        names = ("n_layers", "d_model", "n_heads", "d_ff")
        return {name: getattr(self.model, name) for name in names}


def propose(material: Material, place: Place, fixed: dict[str, Any] | None = None) -> Design:
    """The largest rung that text, memory and time allow; too little of one is refused with what would do.

    ``fixed`` are settings that the user has chosen.
    """
    if material.bytes < _LEAST_BYTES:
        raise DataError(
            f"{material.path} has {material.bytes:,} bytes to train on; a model needs at least {_LEAST_BYTES:,}"
        )
    vocab_size = material.vocab_size or choose_vocabulary(material.bytes)
    considered: list[Candidate] = []
    for layers, width in reversed(RUNGS):
        trial = _Trial(material, place, shape(layers, width, vocab_size), (layers, width) == RUNGS[0], fixed or {})
        considered.append(Candidate(layers, width, trial.parameters, trial.verdict()))
        if not considered[-1].verdict:
            return trial.design(considered)
    raise ConfigError(considered[-1].verdict)


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


def choose_vocabulary(n_bytes: int) -> int:
    """Pieces for a text of a size.

    >>> choose_vocabulary(32_000_000)
    8192
    """
    return max(size for least, size in _VOCABULARIES if n_bytes >= least)


class _Trial:
    """One rung held against text, memory and time."""

    def __init__(
        self, material: Material, place: Place, model: GPTConfig, smallest: bool, fixed: dict[str, Any]
    ) -> None:
        self._material, self._place, self._smallest, self._fixed = material, place, smallest, fixed
        self.parameters = _parameters(model)
        self.train_tokens = material.tokens_with(model.vocab_size)
        expected = self._expected_tokens(model)
        self.context_length = 128 if expected < 2e6 else 256 if expected < 2e7 else 512
        per_step = min(_MOST_TOKENS_PER_STEP, max(_FEWEST_TOKENS_PER_STEP, expected / _WANTED_STEPS))
        self.batch_size = 1 << max(0, round(per_step / self.context_length).bit_length() - 1)
        self.dropout, self.weight_decay = _restraint(expected / self.train_tokens)
        self.model = model.replace(dropout=self.dropout)

    def verdict(self) -> str:
        """Why not, with what would be needed; empty if it fits. What is quickly told comes first."""
        if not self._smallest and self.parameters > PARAMETERS_PER_BYTE * self._material.bytes:
            return f"{self.parameters:,} parameters for {self._material.bytes:,} bytes of text: it would memorise it"
        wanted = 0.0 if self._smallest else TOKENS_PER_PARAMETER * self.parameters
        work = _work(self.model, self.context_length)
        if wanted * work / self._place.reachable > self._place.seconds:
            return f"too slow: {wanted:,.0f} tokens would take more than the time at this machine's very best"
        if not self._smallest and _LEAST_BYTES_PER_PARAMETER * self.parameters > self._place.memory_bytes:
            return "too large: its weights, gradients and the optimizer alone need more than the memory"
        return self._memory_verdict() or self._time_verdict(wanted)

    def _memory_verdict(self) -> str:
        total, budget = self.memory().total, self._place.memory_bytes
        if total <= budget:
            return ""
        return (
            f"{budget / 1e9:g} GB of memory is too little for {self._name}: it needs {total / 1e9:.2f} GB, one "
            f"sequence of {self.context_length} tokens at a time; give --memory-gb {total / 1e9 + 0.05:.1f}"
        )

    def _time_verdict(self, wanted: float) -> str:
        steps = self._place.seconds / self.seconds_per_step
        if steps * self.tokens_per_step < wanted:
            return f"too slow: {steps * self.tokens_per_step:,.0f} tokens in the time, and it should see {wanted:,.0f}"
        if steps >= LEAST_STEPS:
            return ""
        need = self._place.minutes_for(LEAST_STEPS * self.seconds_per_step)
        return (
            f"{self._place.minutes:g} minutes are too little for {self._name}: {LEAST_STEPS} steps, with a start and "
            f"evaluations, take {need:.1f}; give --minutes {need + 0.05:.1f}"
        )

    @property
    def _name(self) -> str:
        return f"{self.model.n_layers} layers of {self.model.d_model}"

    @property
    def tokens_per_step(self) -> int:
        return self.batch_size * self.context_length

    @cached_property
    def seconds_per_step(self) -> float:
        settings = recipe("modern", **self._base_changes())
        return self._place.pace(self.model, settings, self.micro_batch_size, self.context_length)

    @cached_property
    def micro_batch_size(self) -> int:
        size = largest_micro_batch(
            self.model,
            recipe("modern", **self._base_changes()),
            available_bytes=self._place.memory_bytes,
            **self._how(),
        )
        of_use = CPU_POSITIONS // positions(self.model, self.context_length)
        return max(1, min(size, of_use)) if self._place.device == "cpu" else size

    def memory(self) -> MemoryPlan:
        settings = recipe("modern", **self._base_changes())
        return plan_memory(self.model, settings, micro_batch_size=self.micro_batch_size, **self._how())

    def design(self, considered: list[Candidate]) -> Design:
        """The proposal, once the verdict is good."""
        by_time = int(self._place.seconds / self.seconds_per_step)
        by_text = max(LEAST_STEPS, int(MOST_EPOCHS * self.train_tokens / self.tokens_per_step))
        steps = min(by_time, by_text)
        changes = {
            **self._base_changes(),
            "steps": steps,
            "micro_batch_size": self.micro_batch_size,
            "warmup_steps": min(50, steps // 10),
            "evaluate_every": -(-steps // _EVALUATIONS),
            "evaluate_tokens": self._evaluate_tokens(steps),
        }
        tokens = steps * self.tokens_per_step
        epochs = tokens / self.train_tokens
        made = (self.model, "modern", changes, self.parameters, self.memory(), self.seconds_per_step, epochs, tokens)
        return Design(*made, by_time > by_text, considered)

    def _expected_tokens(self, model: GPTConfig) -> float:
        work = _work(model, 256)
        return min(self._place.usual * self._place.seconds / work, MOST_EPOCHS * self.train_tokens)

    def _base_changes(self) -> dict[str, Any]:
        scale = min(6.0, 512 / self.model.d_model)
        return {
            "batch_size": self.batch_size,
            "context_length": self.context_length,
            "learning_rate": _rounded(1e-3 * scale),
            "muon_learning_rate": _rounded(3e-3 * scale),
            "dropout": self.dropout,
            "weight_decay": self.weight_decay,
            **self._fixed,
        }

    def _how(self) -> dict[str, Any]:
        place = self._place
        return {
            **{"context_length": self.context_length, "precision": place.precision},
            **{"device": place.device, "compiled": place.compiled},
        }

    def _evaluate_tokens(self, steps: int) -> int | None:
        """As many as cost a tenth of the time, all evaluations together; a forward pass is a third of a step."""
        affordable = int(0.1 * 3 * steps * self.tokens_per_step / _EVALUATIONS)
        held_out = self._material.validation_tokens
        return None if held_out is not None and held_out <= affordable else max(2 * self.context_length, affordable)


def _parameters(model: GPTConfig) -> int:
    """Parameters of a shape of the ladder, without building it: blocks are alike."""
    one, two = (count_parameters(model.replace(n_layers=layers)).total for layers in (1, 2))
    return one + (model.n_layers - 1) * (two - one)


def _work(model: GPTConfig, context_length: int) -> float:
    """Operations of training for each token, without building all of its blocks."""
    one = count_work(model.replace(n_layers=1), context_length)
    return one.training["head"] + model.n_layers * (one.training_per_token - one.training["head"])


def _restraint(epochs: float) -> tuple[float, float]:
    """Dropout and weight decay: none and little for text seen once or twice, as measured for many passes."""
    return (0.0, 0.1) if epochs <= 2 else (0.1, 0.2) if epochs <= 8 else (0.3, 0.5)


def _rounded(value: float) -> float:
    return float(f"{value:.2g}")
