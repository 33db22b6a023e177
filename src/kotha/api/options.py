"""What may be chosen of a piece of work: a frozen dataclass each, which a command parses and hands over as it is.

Nothing here imports torch, so that a wrong option is refused before anything heavy is loaded. The words below a field
are its help.
"""

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from kotha.errors import UsageError
from kotha.i18n.message import Option
from kotha.text.choices import Errors


@dataclass(frozen=True)
class Asked:
    """What a model shall read while it is watched, and how many words of its own it adds."""

    text: str | None = None
    """What the model reads; [MASK] hides a word from a BERT."""
    second: str | None = None
    """The second sentence of a pair, for a BERT."""
    target: str | None = None
    """The translation, for a Seq2Seq; left out, the model writes it."""
    image: Any = None
    """A PNG, JPEG, PGM, .npy or .json image, for a ViT; in Python also its pixels."""
    generate: int | None = None
    """Let the model add so many tokens, and look there too."""
    temperature: float = 0.0
    """Of what it adds: 0 takes the best token each time."""
    seed: int = 0
    """Of what it adds, above temperature 0."""

    def __post_init__(self) -> None:
        if self.generate is not None and self.generate < 1:
            given = Option("generate", self.generate)
            raise UsageError("{generate} writes nothing; use 1 or more, or leave it out", generate=given)
        if self.generate is None and (self.temperature or self.seed):
            raise UsageError(
                "{temperature} and {seed} say how the model goes on; say how far with {generate}",
                **{name: Option(name) for name in ("temperature", "seed", "generate")},
            )
        if self.text is not None and self.image is not None:
            raise UsageError("a text and an image are for different models; give one of them")


@dataclass(frozen=True, kw_only=True)
class EvaluateOptions:
    """How a model is measured."""

    context: int | None = None
    """Tokens in a window; left out: the model's context."""
    stride: int | None = None
    """Tokens a window moves on by; left out: half the context."""
    baselines: str | os.PathLike[str] = "auto"
    """Data folder to count n-grams in, or none; auto: the one the run was trained on."""
    split: str = "validation"
    """Split of a data folder to measure on."""
    field: str = "text"
    """Field or column that holds the text."""
    pair: tuple[str, str] | None = None
    """The two fields of a table: source and target, text and label, question and answer."""
    perturb: tuple[str, ...] = ()
    """Also on the text with noise: spelling, typos, latin, digits, punctuation, or a file."""
    share: float = 0.2
    """Share of the words that --perturb changes."""
    errors: Errors = "stop"
    """What happens to a document that cannot be read."""


@dataclass(frozen=True, kw_only=True)
class SweepOptions:
    """What is searched, and how."""

    out: Path | None = None
    """The sweep's folder, to make or to go on with, with a run for each trial; left out: DATA-sweep."""
    trials: int = 20
    """How many trials there shall be, of all processes together."""
    minutes: float | None = None
    """How long each trial may take; 10 where nothing else says it."""
    search: tuple[str, ...] = ()
    """What to search: NAME=FROM..TO, NAME=FROM..TO:log or NAME=A,B,C."""
    preset: str | None = None
    """Exact name of a preset; left out, the sizes are chosen and searched."""
    recipe: str = "modern"
    """course, classic or modern: what the search starts from."""
    prune: Literal["median", "hyperband", "none"] = "median"
    """How a trial that falls behind is stopped early."""
    seed: int = 0
    """Decides what is drawn; the trainings' own is --set seed=N."""
    study: str = "sweep"
    """The name of the study there."""


@dataclass(frozen=True, kw_only=True)
class PlanOptions:
    """What is planned: a preset, or a design for a budget."""

    preset: str | None = None
    """Exact name of a preset, such as bangla-58m."""
    recipe: str = "modern"
    """course, classic or modern."""
    device: Literal["cpu", "cuda"] | None = None
    """Where to train; left out: this machine's."""
    gpu: str | None = None
    """Estimate for a GPU by name: h200, a100, rtx-4090, t4, …"""
    data: str | None = None
    """A data folder, to count epochs; for a design, any text too."""
    memory_gb: float | None = None
    """Design a model for this much memory."""
    minutes: float | None = None
    """What `kotha train` does in this time, and why."""
    no_time: bool = False
    """Time no steps on this machine."""


@dataclass(frozen=True, kw_only=True)
class ClusterOptions:
    """Many GPUs, on paper."""

    gpus: int | None = None
    """On paper: what so many GPUs would need and give."""
    nodes: int | None = None
    """Machines that share --gpus; left out: one for each 8."""
    tokens: tuple[str, ...] = ()
    """With --gpus: tokens to train on, as 10B or 1T; left out, 10B 100B 1T."""
    network: float | None = None
    """With --gpus: Gb/s of each GPU's network card; else 400."""
    storage: float | None = None
    """With --gpus: GB/s that a machine writes; else 2."""


@dataclass(frozen=True, kw_only=True)
class SheetOptions:
    """Which sheet of arithmetic, and how it is written."""

    sheet: Literal["attention", "block", "thinking", "robot", "bank", "positions"] = "attention"
    """Which: one head; a whole block to the guess; the notes' 112 and 96, robot, bank; positions."""
    given: Path | None = None
    """Your own X, W_Q, W_K and W_V: a .json or .csv file."""
    run: str | None = None
    """A run folder (its best model), or a model folder; left out, or box: the model in the box."""
    text: str | None = None
    """What the model reads; without it and without --run: the workshop's."""
    target: str | None = None
    """What a Seq2Seq has written to it."""
    layer: int = 0
    """Which layer, counted from 0."""
    head: int = 0
    """Which head, counted from 0."""
    stack: Literal["encoder", "decoder"] | None = None
    """Of a Seq2Seq; left out: decoder."""
    part: Literal["attention", "cross"] = "attention"
    """cross looks at the source."""
    size: str | None = None
    """A drawn sheet of other sizes instead: TOKENSxWIDTHxHEAD, 4x6x3."""
    seed: int | None = None
    """Draw other numbers: the sheet of `kotha inside exercise` with this seed."""

    @property
    def of_model(self) -> dict[str, Any]:
        """Which head of a model."""
        return {name: getattr(self, name) for name in ("layer", "head", "stack", "part", "target")}
