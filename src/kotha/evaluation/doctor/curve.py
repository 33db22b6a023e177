"""The training curve of a run, read from its metrics, and the signs of problems that the diagnosis looks for.

A run may be unfinished or written by an older version, so rows with missing or invalid values are skipped. Each sign
(such as overfitting) is a function that takes a curve and returns the evidence, or None; the name of the function is
the kind of the finding. All thresholds are in one table, each with its reason.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

from kotha.artifacts.run_folder import figure, reference_losses
from kotha.training.reporting.report import Record

Row = dict[str, Any]
Symptoms = dict[str, float | int | str]  # evidence: the values for the templates in advice.json

MEASURED = ("tokens", "seconds", "loss_nats", "learning_rate", "gradient_norm", "tokens_per_second", "memory_bytes")
# The training loss at an evaluation is the median of at most this many logged steps since the previous evaluation,
# because single batches are noisy.
_NEAR = 20


@dataclass(frozen=True)
class Evaluation:
    """An evaluation on validation text, with the training loss of the steps before it."""

    step: int
    loss: float
    training: float | None  # median training loss of the steps before it; None if none was logged
    tokens: float | None  # number of training tokens up to that step
    bits_per_byte: float | None
    bits_per_character: float | None


@dataclass(frozen=True)
class Curve:
    """Training and validation loss over the steps, and the settings that explain them."""

    steps: list[int]  # logged steps with a finite loss
    losses: list[float]  # training loss at each of these steps
    lost: int | None  # first step whose training or validation loss was NaN or infinite
    evaluations: list[Evaluation]
    references: dict[str, float]  # baseline losses by name: "uniform", "unigram", "3-gram" …
    learning_rate: float  # peak; 0 if none was logged
    vocab_size: float  # 0 if unknown
    epochs: float | None  # epochs on the training text
    regularized: bool  # whether dropout, label smoothing or weight averaging raises the training loss
    floor: float | None  # lower bound of the loss in bits per byte, if the source of the text is known

    @property
    def best(self) -> Evaluation | None:
        """The evaluation with the lowest loss."""
        return min(self.evaluations, key=lambda each: each.loss, default=None)

    @property
    def has_ngrams(self) -> bool:
        """Whether a baseline is an n-gram model; runs of older versions recorded none."""
        return any("-gram" in name for name in self.references)

    def smoothed(self) -> list[float]:
        """The running median of the training losses, over five neighbours on each side."""
        return [median(self.losses[max(0, index - 5) : index + 6]) for index in range(len(self.losses))]


def read_curve(config: dict[str, Any], metrics: Sequence[Row], references: dict[str, float] | None = None) -> Curve:
    """Read the curve of a run; ``references`` are additional baseline losses."""
    learned, looked = _rows(metrics)
    finite = [row for row in learned if figure(row, "loss_nats") is not None]
    evaluations: list[Evaluation] = []
    for row in looked:
        since = evaluations[-1].step if evaluations else -1
        near = [each for each in finite if since < each["step"] <= row["step"]][-_NEAR:]
        loss, *bits = (figure(row, "validation", name) for name in ("loss_nats", "bits_per_byte", "bits_per_character"))
        training = median(float(each["loss_nats"]) for each in near) if near else None
        evaluations.append(Evaluation(int(row["step"]), loss or 0.0, training, _last(near, "tokens"), *bits))
    tokens, corpus = _last(learned, "tokens"), figure(config, "data", "train_tokens")
    harder = (("model", "dropout"), *(("training", name) for name in ("label_smoothing", "ema_decay", "backwards")))
    return Curve(
        steps=[int(row["step"]) for row in finite],
        losses=[float(row["loss_nats"]) for row in finite],
        lost=min(_lost(metrics), default=None),
        evaluations=evaluations,
        references=reference_losses(config) | (references or {}),
        learning_rate=max((figure(row, "learning_rate") or 0.0 for row in learned), default=0.0),
        vocab_size=figure(config, "model", "vocab_size") or 0,
        epochs=tokens / corpus if tokens is not None and corpus else None,
        regularized=any(figure(config, *keys) for keys in harder),
        floor=figure(config, "floors", "bits_per_byte"),
    )


def _rows(metrics: Sequence[Row]) -> tuple[list[Row], list[Row]]:
    """Return the rows for training steps, and those for evaluations."""
    record = Record({}, metrics, {})
    looked = [row for row in record.evaluations if figure(row, "validation", "loss_nats") is not None]
    return [row for row in record.steps if "loss_nats" in row], looked


def _lost(metrics: Sequence[Row]) -> list[int]:
    """Return the steps with a training or validation loss that is not a finite number."""
    record = Record({}, metrics, {})
    scores = [(row, row) for row in record.steps] + [(row, row["validation"]) for row in record.evaluations]
    return [int(row["step"]) for row, score in scores if "loss_nats" in score and figure(score, "loss_nats") is None]


def _last(rows: list[Row], key: str) -> float | None:
    return next((value for row in reversed(rows) if (value := figure(row, key)) is not None), None)


# -- data for plots ----------------------------------------------------------------------------------------------------


def points_of(metrics: Sequence[Row], most: int) -> list[Row]:
    """Return the metrics of a run's steps, in about ``most`` rows or fewer; a missing value is None.

    A longer run is divided into intervals. Only the rows with the lowest and the highest loss in each interval are
    returned, so outliers remain visible.
    """
    rows, _ = _rows(metrics)
    if len(rows) > most:
        length, ends = -(-len(rows) * 2 // most), dict[int, Row]()
        for start in range(0, len(rows), length):
            stretch = sorted(rows[start : start + length], key=lambda row: figure(row, "loss_nats") or 0.0)
            ends |= {row["step"]: row for row in (stretch[0], stretch[-1])}
        rows = [ends[step] for step in sorted(ends)]
    return [{"step": int(row["step"]), **{name: figure(row, name) for name in MEASURED}} for row in rows]


def evaluations_of(metrics: Sequence[Row]) -> list[Row]:
    """Return the evaluations of a run, each with the sample that the model generated."""
    names = ("loss_nats", "bits_per_byte", "bits_per_character")
    return [
        {"step": int(row["step"]), **{name: figure(row, "validation", name) for name in names}}
        | {"sample": row["sample"] if isinstance(row.get("sample"), str) else ""}
        for row in _rows(metrics)[1]
    ]


# -- signs -------------------------------------------------------------------------------------------------------------

# The threshold for each sign, with its reason.
RISE_NATS = 0.5  # rise of the training loss (median of eleven steps) above its minimum; single batches vary as much
LEARNED_SHARE = 0.5  # of the way from uniform to unigram, which takes a model a few hundred steps
GUESSES = ("uniform", "uniform over classes", "coin flip")  # baselines that guess at random
BEATEN_SHARE = 0.01  # minimum relative difference to beat a baseline; less is noise
READ_ONCE = 0.9  # epochs; below this the model has seen less text than the baseline
FLAT_SHARE = 0.005  # fraction of the total improvement; a loss this close to its best is flat: seeds vary as much
FLAT_EVALUATIONS = 3  # evaluations without improvement; one or two occur in every run
FLAT_SINCE = 2 / 3  # share of the run after which a loss must be flat, because the final decay may have only just ended
RISEN_SHARE = 0.01  # a validation loss this far above its best is a rise, not noise
FALLEN_SHARE = 0.05  # fall of the training loss that indicates overfitting if the validation loss does not fall
STILL = 2.0  # multiple of the validation noise; a training loss that falls by less is flat
LEAK_EPOCHS = 3.0  # after three epochs, training text is predicted better than new text; earlier, losses can be equal
LEAK_SHARE = 0.03  # relative difference by which the validation loss is below the training loss
LEAK_SHARE_REGULARIZED = (
    0.5  # the same if dropout or averaging raises the training loss, which they do by about a third
)
COPIED_SHARE = 0.01  # share of validation documents copied in training; the default leak check leaves none
UNKNOWN_SHARE = 0.02  # share of unknown tokens; a vocabulary that fits the text has almost none
CHARACTERS_PER_TOKEN = 1.2  # a lower value means that the vocabulary was made for another script or language
VOCABULARY_OF_WORDS = 1000  # minimum size of a vocabulary that contains words and not only characters
UNLIKE_SHARE = 0.15  # excess of the validation loss over the training loss in the first epoch; normally a few percent


def not_a_number(curve: Curve) -> Symptoms | None:
    """The loss became NaN or infinite."""
    return None if curve.lost is None else {"step": curve.lost, "rate": curve.learning_rate}


def learning_rate_too_high(curve: Curve) -> Symptoms | None:
    """The training loss rose well above its lowest value.

    The rise is not reported if the next evaluation is as good as before, because then some batches were just harder.
    """
    lowest = high = float("inf")
    rise: Symptoms | None = None
    for step, loss in zip(curve.steps, curve.smoothed(), strict=True):
        lowest = min(lowest, loss)
        if loss > lowest + RISE_NATS and (rise is None or loss > high) and not _as_good_as_ever(curve, step):
            high = loss
            rise = {"step": step, "low": lowest, "high": loss, "rate": curve.learning_rate}
    return rise


def untrained(curve: Curve) -> Symptoms | None:
    """The loss is closer to uniform guessing than to the unigram baseline."""
    loss, nothing = _reached(curve), curve.references.get("uniform")
    if loss is None or nothing is None:
        return None
    way = nothing - curve.references.get("unigram", math.inf)
    steps = max([*curve.steps, *(each.step for each in curve.evaluations)])
    learned = (nothing - loss) / (way if way > 0 else 1.0) >= LEARNED_SHARE
    return None if learned else {"loss": loss, "nothing": nothing, "steps": steps}


def no_better_than_counting(curve: Curve) -> Symptoms | None:
    """The model does not beat a counting baseline; the evidence names the weakest baseline that it does not beat."""
    loss = _reached(curve)
    counted = {nats: name for name, nats in curve.references.items() if name not in GUESSES}
    missed = [nats for nats in counted if loss and loss > nats * (1 - BEATEN_SHARE)]
    if loss is None or not missed:
        return None
    return {"loss": loss, "name": counted[max(missed)], "counted": max(missed)}


def read_too_little(curve: Curve) -> Symptoms | None:
    """The model does not beat a counting baseline and has not seen the complete training text once."""
    missed = no_better_than_counting(curve)
    if missed is None or not curve.steps or curve.epochs is None or curve.epochs >= READ_ONCE:
        return None
    return {**missed, "steps": curve.steps[-1], "share": 100 * curve.epochs}


def memorising(curve: Curve) -> Symptoms | None:
    """The training loss keeps falling while the validation loss does not."""
    turn, best = _turning_point(curve), curve.best
    if turn is None or best is None or turn.training is None:
        return None
    last = curve.evaluations[-1]
    risen = last.loss > best.loss * (1 + RISEN_SHARE)
    start = best if risen and best.training is not None else turn
    after = sum(each.step > start.step for each in curve.evaluations)
    if not after or last.training is None or start.training is None:
        return None
    fell = start.training - last.training > max(FALLEN_SHARE * start.training, STILL * _noise(curve))
    if not fell or not (risen or after >= FLAT_EVALUATIONS) or last.loss <= last.training:
        return None
    first = {"step": start.step, "training": start.training, "validation": start.loss}
    return {**first, "last_step": last.step, "last_training": last.training, "last_validation": last.loss}


def plateau(curve: Curve) -> Symptoms | None:
    """Neither the training loss nor the validation loss is still falling."""
    turn = _turning_point(curve)
    if turn is None:
        return None
    last, after = curve.evaluations[-1], sum(each.step > turn.step for each in curve.evaluations)
    still, before = STILL * _noise(curve), turn.training
    moved = before is not None and last.training is not None and before - last.training > still
    if moved or turn.step > FLAT_SINCE * last.step or after < FLAT_EVALUATIONS:
        return None
    evidence = {"step": turn.step, "last_step": last.step, "validation": turn.loss, "last": last.loss}
    return {**evidence, "rate": curve.learning_rate}


def leak(curve: Curve) -> Symptoms | None:
    """Validation text is predicted better than training text that the model has seen several times."""
    half = curve.evaluations[len(curve.evaluations) // 2 :]
    if len(half) < FLAT_EVALUATIONS or not curve.epochs or curve.epochs < LEAK_EPOCHS:
        return None
    share = LEAK_SHARE_REGULARIZED if curve.regularized else LEAK_SHARE
    if not all(each.training is not None and each.loss < each.training * (1 - share) for each in half):
        return None
    return {"validation": half[-1].loss, "training": half[-1].training or 0.0, "epochs": curve.epochs}


def leak_below_floor(curve: Curve) -> Symptoms | None:
    """The validation loss is below the entropy of the text's source."""
    best = curve.best
    if best is None or best.bits_per_byte is None or curve.floor is None or best.bits_per_byte >= curve.floor:
        return None
    return {"bits": best.bits_per_byte, "floor": curve.floor, "step": best.step}


def mismatch_tokenizer(curve: Curve) -> Symptoms | None:
    """The text is split into single characters or bytes, although the vocabulary is large."""
    best = curve.best
    if best is None or not best.bits_per_character or curve.vocab_size < VOCABULARY_OF_WORDS:
        return None
    characters = best.loss / math.log(2) / best.bits_per_character
    return {"letters": characters, "vocabulary": int(curve.vocab_size)} if characters < CHARACTERS_PER_TOKEN else None


def mismatch_validation(curve: Curve) -> Symptoms | None:
    """The validation loss is far above the training loss in the first epoch, so the texts are of different kinds."""
    total = curve.epochs and curve.evaluations and curve.evaluations[-1].tokens
    corpus = total / curve.epochs if total and curve.epochs else 0.0
    first = [each for each in curve.evaluations if each.tokens and each.training and each.tokens <= corpus][1:]
    if not first or not all(each.loss > (each.training or 0.0) * (1 + UNLIKE_SHARE) for each in first):
        return None
    return {"step": first[-1].step, "validation": first[-1].loss, "training": first[-1].training or 0.0}


# -- helpers of the signs ---------------------------------------------------------------------------------------------


def _reached(curve: Curve) -> float | None:
    """Return the best validation loss, or the last training loss if there was no evaluation."""
    if curve.best is not None:
        return curve.best.loss
    return curve.smoothed()[-1] if curve.losses else None


def _as_good_as_ever(curve: Curve, step: int) -> bool:
    """Return whether the evaluation after a step is at least as good as the best before it; False if unknown."""
    before = min((each.loss for each in curve.evaluations if each.step < step), default=None)
    after = next((each.loss for each in curve.evaluations if each.step >= step), None)
    return before is not None and after is not None and after <= before * (1 + RISEN_SHARE)


def _turning_point(curve: Curve) -> Evaluation | None:
    """Return the first evaluation that is as good as the best one, within noise."""
    best = curve.best
    if best is None:
        return None
    return next(each for each in curve.evaluations if each.loss <= best.loss + _noise(curve))


def _noise(curve: Curve) -> float:
    """Return the largest difference in validation loss that can be noise, in nats."""
    assert curve.best is not None, "no evaluation to estimate the noise from"
    start = curve.references.get("uniform", curve.evaluations[0].loss)
    return FLAT_SHARE * max(curve.best.loss, start - curve.best.loss)
