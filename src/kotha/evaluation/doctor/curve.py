"""The curve of a training, read from the rows of a run's metrics, and the signs in it that the doctor knows.

Any part may be missing or broken, because a run may be unfinished or older; such a row is passed over. Each sign,
overfitting among them, looks at a curve and gives its evidence, or None; its function is called as its kind of finding.
Where a sign begins is in one table, with the reason.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

from kotha.artifacts.run_folder import figure, mapping
from kotha.training.reporting.report import Record

Row = dict[str, Any]
Symptoms = dict[str, float | int | str]  # evidence, by the names that the advice fills in

MEASURED = ("tokens", "seconds", "loss_nats", "learning_rate", "gradient_norm", "tokens_per_second", "memory_bytes")
# The training loss at an evaluation is the median of so many logged steps since the last: one batch says little.
_NEAR = 20


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
    learning_rate: float  # the highest that was used; 0 where none was logged
    vocab_size: float  # 0 where it is not known
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
    evaluations: list[Evaluation] = []
    for row in looked:
        since = evaluations[-1].step if evaluations else -1
        near = [each for each in finite if since < each["step"] <= row["step"]][-_NEAR:]
        loss, *bits = (figure(row, "validation", name) for name in ("loss_nats", "bits_per_byte", "bits_per_character"))
        training = median(float(each["loss_nats"]) for each in near) if near else None
        evaluations.append(Evaluation(int(row["step"]), loss or 0.0, training, _last(near, "tokens"), *bits))
    tokens, corpus = _last(learned, "tokens"), figure(config, "data", "train_tokens")
    harder = (("model", "dropout"), *(("training", name) for name in ("label_smoothing", "ema_decay", "backwards")))
    known = mapping(config, "references")
    return Curve(
        steps=[int(row["step"]) for row in finite],
        losses=[float(row["loss_nats"]) for row in finite],
        lost=next((int(row["step"]) for row in learned if figure(row, "loss_nats") is None), None),
        evaluations=evaluations,
        references={name: nats for name in known if (nats := figure(known, name)) is not None} | (references or {}),
        learning_rate=max((figure(row, "learning_rate") or 0.0 for row in learned), default=0.0),
        vocab_size=figure(config, "model", "vocab_size") or 0,
        epochs=tokens / corpus if tokens is not None and corpus else None,
        regularized=any(figure(config, *keys) for keys in harder),
        floor=figure(config, "floors", "bits_per_byte"),
    )


def _rows(metrics: Sequence[Row]) -> tuple[list[Row], list[Row]]:
    """The rows of steps, and of looks at unseen text."""
    record = Record({}, metrics, {})
    looked = [row for row in record.evaluations if figure(row, "validation", "loss_nats") is not None]
    return [row for row in record.steps if "loss_nats" in row], looked


def _last(rows: list[Row], key: str) -> float | None:
    return next((value for row in reversed(rows) if (value := figure(row, key)) is not None), None)


# -- ready to be drawn -------------------------------------------------------------------------------------------------


def points_of(metrics: Sequence[Row], most: int) -> list[Row]:
    """What was measured at the steps of a run, each figure None where a row has none; about ``most`` rows, or all.

    Of very many, of each stretch the lowest and the highest loss, so that no outlier is lost.
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
    """The looks at unseen text, with what the model wrote then."""
    names = ("loss_nats", "bits_per_byte", "bits_per_character")
    return [
        {"step": int(row["step"]), **{name: figure(row, "validation", name) for name in names}}
        | {"sample": row["sample"] if isinstance(row.get("sample"), str) else ""}
        for row in _rows(metrics)[1]
    ]


# -- signs -------------------------------------------------------------------------------------------------------------

# Where each sign begins, and why there.
RISE_NATS = 0.5  # training loss above its lowest, a median of eleven steps; single batches differ as much
LEARNED_SHARE = 0.5  # of the way from ln V to the unigram; frequencies come first, in a few hundred steps
BEATEN_SHARE = 0.01  # a reference is beaten by at least this share; less is the noise of one validation set
READ_ONCE = 0.9  # passes; who has read less than the counts have is not yet to be compared with them
FLAT_SHARE = 0.005  # validation so near its best, as a share of all gained, is flat; seeds differ as much
FLAT_EVALUATIONS = 3  # so many evaluations without gain; one or two happen to every run
FLAT_SINCE = 2 / 3  # flat from this part of the run on; later, the last decay may only just have ended
RISEN_SHARE = 0.01  # validation this much above its best is a rise, not noise
FALLEN_SHARE = 0.05  # training loss that falls this much, while validation does not, is learning by heart
STILL = 2.0  # training loss that falls by less than so many times validation's noise has stopped as well
LEAK_EPOCHS = 3.0  # text read three times is predicted better than new text; before, the two can be alike
LEAK_SHARE = 0.03  # validation this much below training, though training text was seen before
LEAK_SHARE_REGULARIZED = 0.5  # the same where dropout or averaging raises the training loss, by a third
COPIED_SHARE = 0.01  # validation documents found word for word in training; the usual leak check leaves none
UNKNOWN_SHARE = 0.02  # unknown tokens; a vocabulary that fits its text has almost none
LETTERS_PER_TOKEN = 1.2  # with little more than a letter a token, words are of another script or language
VOCABULARY_OF_WORDS = 1000  # from this size on a vocabulary holds words and not only letters
UNLIKE_SHARE = 0.15  # validation above training before any text was read twice; else a few percent


def not_a_number(curve: Curve) -> Symptoms | None:
    """A loss that was not a number."""
    return None if curve.lost is None else {"step": curve.lost, "rate": curve.learning_rate}


def learning_rate_too_high(curve: Curve) -> Symptoms | None:
    """Worse than at the start, or than it has already been: the steps jump over what they look for.

    Where unseen text was predicted as well as ever at the next evaluation, some batches were harder, and that is all.
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
    """Nearer to knowing nothing than to knowing how often each token occurs."""
    loss, nothing = _reached(curve), curve.references.get("ln V")
    if loss is None or nothing is None:
        return None
    way = nothing - curve.references.get("unigram", math.inf)
    steps = max([*curve.steps, *(each.step for each in curve.evaluations)])
    learned = (nothing - loss) / (way if way > 0 else 1.0) >= LEARNED_SHARE
    return None if learned else {"loss": loss, "nothing": nothing, "steps": steps}


def no_better_than_counting(curve: Curve) -> Symptoms | None:
    """The easiest reference that the model does not beat; "ln …" is for one who knows nothing, and comes before."""
    loss = _reached(curve)
    counted = {nats: name for name, nats in curve.references.items() if not name.startswith("ln ")}
    missed = [nats for nats in counted if loss and loss > nats * (1 - BEATEN_SHARE)]
    if loss is None or not missed:
        return None
    return {"loss": loss, "name": counted[max(missed)], "counted": max(missed)}


def read_too_little(curve: Curve) -> Symptoms | None:
    """Not beaten either, by one who has not yet read the text once."""
    missed = no_better_than_counting(curve)
    if missed is None or not curve.steps or curve.epochs is None or curve.epochs >= READ_ONCE:
        return None
    return {**missed, "steps": curve.steps[-1], "share": 100 * curve.epochs}


def memorising(curve: Curve) -> Symptoms | None:
    """Training goes on falling, validation does not."""
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
    """Neither falls any more."""
    turn = _turning_point(curve)
    if turn is None:
        return None
    last, after = curve.evaluations[-1], sum(each.step > turn.step for each in curve.evaluations)
    still, before = STILL * _noise(curve), turn.training
    moved = before is not None and last.training is not None and before - last.training > still
    if moved or turn.step > FLAT_SINCE * last.step or after < FLAT_EVALUATIONS:
        return None
    told = {"step": turn.step, "last_step": last.step, "validation": turn.loss, "last": last.loss}
    return {**told, "rate": curve.learning_rate}


def leak(curve: Curve) -> Symptoms | None:
    """New text predicted better than text that was read before."""
    half = curve.evaluations[len(curve.evaluations) // 2 :]
    if len(half) < FLAT_EVALUATIONS or not curve.epochs or curve.epochs < LEAK_EPOCHS:
        return None
    share = LEAK_SHARE_REGULARIZED if curve.regularized else LEAK_SHARE
    if not all(each.training is not None and each.loss < each.training * (1 - share) for each in half):
        return None
    return {"validation": half[-1].loss, "training": half[-1].training or 0.0, "epochs": curve.epochs}


def leak_below_floor(curve: Curve) -> Symptoms | None:
    """Better than the source of the text allows."""
    best = curve.best
    if best is None or best.bits_per_byte is None or curve.floor is None or best.bits_per_byte >= curve.floor:
        return None
    return {"bits": best.bits_per_byte, "floor": curve.floor, "step": best.step}


def mismatch_tokenizer(curve: Curve) -> Symptoms | None:
    """A large vocabulary that spells the text letter by letter, or byte by byte."""
    best = curve.best
    if best is None or not best.bits_per_character or curve.vocab_size < VOCABULARY_OF_WORDS:
        return None
    letters = best.loss / math.log(2) / best.bits_per_character
    return {"letters": letters, "vocabulary": int(curve.vocab_size)} if letters < LETTERS_PER_TOKEN else None


def mismatch_validation(curve: Curve) -> Symptoms | None:
    """Validation far above training while all training text was still new: it is text of another kind."""
    whole = curve.epochs and curve.evaluations and curve.evaluations[-1].tokens
    corpus = whole / curve.epochs if whole and curve.epochs else 0.0
    first = [each for each in curve.evaluations if each.tokens and each.training and each.tokens <= corpus][1:]
    if not first or not all(each.loss > (each.training or 0.0) * (1 + UNLIKE_SHARE) for each in first):
        return None
    return {"step": first[-1].step, "validation": first[-1].loss, "training": first[-1].training or 0.0}


# -- what the signs share ---------------------------------------------------------------------------------------------


def _reached(curve: Curve) -> float | None:
    """The loss that a model is judged by: the best on unseen text, or else that of its last steps."""
    if curve.best is not None:
        return curve.best.loss
    return curve.smoothed()[-1] if curve.losses else None


def _as_good_as_ever(curve: Curve, step: int) -> bool:
    """Whether the evaluation that follows a step is no worse than the best before it; False where that is unknown."""
    before = min((each.loss for each in curve.evaluations if each.step < step), default=None)
    after = next((each.loss for each in curve.evaluations if each.step >= step), None)
    return before is not None and after is not None and after <= before * (1 + RISEN_SHARE)


def _turning_point(curve: Curve) -> Evaluation | None:
    """The first evaluation that was, but for noise, as good as the best."""
    best = curve.best
    if best is None:
        return None
    return next(each for each in curve.evaluations if each.loss <= best.loss + _noise(curve))


def _noise(curve: Curve) -> float:
    """Nats by which validation may differ and mean nothing."""
    assert curve.best is not None, "asked for the noise of no evaluation"
    start = curve.references.get("ln V", curve.evaluations[0].loss)
    return FLAT_SHARE * max(curve.best.loss, start - curve.best.loss)
