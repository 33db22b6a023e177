"""The curve of a training, read from the rows of a run's metrics: what the doctor looks at, and what is drawn.

Any part may be missing or broken, because a run may be unfinished or older; such a row is passed over.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

from kotha.artifacts.run_folder import figure, mapping
from kotha.training.show.findings import Record

MEASURED = ("tokens", "seconds", "loss_nats", "learning_rate", "gradient_norm", "tokens_per_second", "memory_bytes")
_EVALUATED = ("loss_nats", "bits_per_byte", "bits_per_character")
# The training loss at an evaluation is the median of so many logged steps since the last: one batch says little.
_NEAR = 20


Row = dict[str, Any]


@dataclass(frozen=True)
class Evaluation:
    """A look at unseen text, and what training was like just then."""

    step: int
    loss: float
    training: float | None  # median training loss of the last steps; None where none was logged
    tokens: float | None  # tokens learned from until then
    bits_per_byte: float | None
    bits_per_character: float | None


@dataclass(frozen=True)
class Curve:
    """Training and validation loss over the steps, and the settings that explain them."""

    steps: list[int]  # logged steps
    losses: list[float]  # training loss at each, finite
    lost: int | None  # the first step whose loss was not a number
    evaluations: list[Evaluation]
    references: dict[str, float]  # losses to compare with, by name: "ln V", "unigram", "3-gram" …
    learning_rate: float | None  # the highest that was used
    vocab_size: int | None
    epochs: float | None  # how often the training text was read
    regularized: bool  # dropout, label smoothing or averaging raise the training loss above the kept model's
    floor: float | None  # bits per byte that nobody can beat, where the source of the text is known

    @property
    def best(self) -> Evaluation | None:
        """The evaluation of least loss."""
        return min(self.evaluations, key=lambda each: each.loss, default=None)

    def smoothed(self) -> list[float]:
        """The median of each training loss and its five neighbours on each side: one bad batch is no event."""
        return [median(self.losses[max(0, place - 5) : place + 6]) for place in range(len(self.losses))]


def read_curve(config: dict[str, Any], metrics: Sequence[Row], references: dict[str, float] | None = None) -> Curve:
    """The curve of a run; ``references`` are further losses to compare with."""
    learned, looked = _rows(metrics)
    finite = [row for row in learned if figure(row, "loss_nats") is not None]
    rates = [rate for row in learned if (rate := figure(row, "learning_rate")) is not None]
    tokens, corpus = _last(learned, "tokens"), figure(config, "data", "train_tokens")
    model, training = mapping(config, "model"), mapping(config, "training")
    harder = ("label_smoothing", "ema_decay", "backwards")
    noisy = (figure(model, "dropout"), *(figure(training, name) for name in harder))
    named = mapping(config, "references")
    known = {name: value for name in named if (value := figure(named, name)) is not None}
    vocab_size = figure(model, "vocab_size")
    return Curve(
        steps=[int(row["step"]) for row in finite],
        losses=[float(row["loss_nats"]) for row in finite],
        lost=next((int(row["step"]) for row in learned if figure(row, "loss_nats") is None), None),
        evaluations=_evaluations(looked, finite),
        references={**known, **(references or {})},
        learning_rate=max(rates, default=None),
        vocab_size=None if vocab_size is None else int(vocab_size),
        epochs=tokens / corpus if tokens is not None and corpus else None,
        regularized=any(noisy),
        floor=figure(config, "floors", "bits_per_byte"),
    )


def _rows(metrics: Sequence[Row]) -> tuple[list[Row], list[Row]]:
    """The rows of steps, and of looks at unseen text."""
    record = Record({}, metrics, {})
    looked = [row for row in record.evaluations if figure(row, "validation", "loss_nats") is not None]
    return [row for row in record.steps if "loss_nats" in row], looked


def _evaluations(looked: list[Row], learned: list[Row]) -> list[Evaluation]:
    found: list[Evaluation] = []
    for row in looked:
        since = found[-1].step if found else -1
        before = [each for each in learned if since < each["step"] <= row["step"]][-_NEAR:]
        found.append(
            Evaluation(
                step=int(row["step"]),
                loss=float(row["validation"]["loss_nats"]),
                training=median(float(each["loss_nats"]) for each in before) if before else None,
                tokens=_last(before, "tokens"),
                bits_per_byte=figure(row, "validation", "bits_per_byte"),
                bits_per_character=figure(row, "validation", "bits_per_character"),
            )
        )
    return found


def _last(rows: list[Row], key: str) -> float | None:
    return next((value for row in reversed(rows) if (value := figure(row, key)) is not None), None)


# -- ready to be drawn -------------------------------------------------------------------------------------------------


def points_of(metrics: Sequence[Row], most: int) -> list[Row]:
    """What was measured at the steps of a run, each figure None where a row has none; about ``most`` rows, or all.

    Of very many, of each stretch the lowest and the highest loss, so that no outlier is lost.
    """
    rows, _ = _rows(metrics)
    if len(rows) > most:
        length, kept = -(-len(rows) * 2 // most), list[Row]()
        for start in range(0, len(rows), length):
            stretch = sorted(rows[start : start + length], key=lambda row: figure(row, "loss_nats") or 0.0)
            ends = {row["step"]: row for row in (stretch[0], stretch[-1])}
            kept += [ends[step] for step in sorted(ends)]
        rows = kept
    return [{"step": int(row["step"]), **{name: figure(row, name) for name in MEASURED}} for row in rows]


def evaluations_of(metrics: Sequence[Row]) -> list[Row]:
    """The looks at unseen text, with what the model wrote then."""
    return [
        {
            "step": int(row["step"]),
            **{name: figure(row, "validation", name) for name in _EVALUATED},
            "sample": row["sample"] if isinstance(row.get("sample"), str) else "",
        }
        for row in _rows(metrics)[1]
    ]
