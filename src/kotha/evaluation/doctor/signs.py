"""The signs that the doctor knows, overfitting among them: each looks at a curve and gives its evidence, or None.

Where a sign begins is in one table, with the reason.
"""

import math

from kotha.evaluation.doctor.curve import Curve, Evaluation

Symptoms = dict[str, float | int | str]  # evidence, by the names that the advice fills in


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


def lost(curve: Curve) -> Symptoms | None:
    """A loss that was not a number."""
    return None if curve.lost is None else {"step": curve.lost, "rate": curve.learning_rate or 0.0}


def rising(curve: Curve) -> Symptoms | None:
    """Worse than at the start, or than it has already been: the steps jump over what they look for.

    Where unseen text was predicted as well as ever at the next evaluation, some batches were harder, and that is all.
    """
    lowest = float("inf")
    rise: Symptoms | None = None
    for step, loss in zip(curve.steps, curve.smoothed(), strict=True):
        lowest = min(lowest, loss)
        higher = loss > lowest + RISE_NATS and (rise is None or loss > float(rise["high"]))
        if higher and not _as_good_as_ever(curve, step):
            rise = {"step": step, "low": lowest, "high": loss, "rate": curve.learning_rate or 0.0}
    return rise


def untrained(curve: Curve) -> Symptoms | None:
    """Nearer to knowing nothing than to knowing how often each token occurs."""
    loss, nothing, unigram = _reached(curve), curve.references.get("ln V"), curve.references.get("unigram")
    if loss is None or nothing is None:
        return None
    way = nothing - unigram if unigram is not None and unigram < nothing else 1.0
    share = (nothing - loss) / way
    steps = max([*curve.steps, *(each.step for each in curve.evaluations)])
    return {"loss": loss, "nothing": nothing, "steps": steps} if share < LEARNED_SHARE else None


def not_beaten(curve: Curve) -> Symptoms | None:
    """The easiest reference that the model does not beat; "ln …" is for one who knows nothing, and comes before."""
    loss = _reached(curve)
    counted = {name: nats for name, nats in curve.references.items() if not name.startswith("ln ")}
    missed = {name: nats for name, nats in counted.items() if loss and loss > nats * (1 - BEATEN_SHARE)}
    if loss is None or not missed:
        return None
    name = max(missed, key=lambda each: missed[each])
    return {"loss": loss, "name": name, "counted": missed[name]}


def read_too_little(curve: Curve) -> Symptoms | None:
    """Not beaten either, by one who has not yet read the text once."""
    missed = not_beaten(curve)
    if missed is None or not curve.steps or curve.epochs is None or curve.epochs >= READ_ONCE:
        return None
    return {**missed, "steps": curve.steps[-1], "share": 100 * curve.epochs}


def by_heart(curve: Curve) -> Symptoms | None:
    """Training goes on falling, validation does not."""
    turn = _turning_point(curve)
    if turn is None or turn.training is None:
        return None
    last, best = curve.evaluations[-1], curve.best
    assert best is not None, "a turning point without evaluations"
    risen = last.loss > best.loss * (1 + RISEN_SHARE)
    start = best if risen and best.training is not None else turn
    after = [each for each in curve.evaluations if each.step > start.step]
    if not after or last.training is None or start.training is None:
        return None
    enough = max(FALLEN_SHARE * start.training, STILL * _noise(curve))
    fell = start.training - last.training > enough
    if not fell or not (risen or len(after) >= FLAT_EVALUATIONS) or last.loss <= last.training:
        return None
    first = {"step": start.step, "training": start.training, "validation": start.loss}
    return {**first, "last_step": last.step, "last_training": last.training, "last_validation": last.loss}


def flat(curve: Curve) -> Symptoms | None:
    """Neither falls any more."""
    turn, last = _turning_point(curve), curve.evaluations[-1] if curve.evaluations else None
    if turn is None or last is None or turn.step > FLAT_SINCE * last.step:
        return None
    after = [each for each in curve.evaluations if each.step > turn.step]
    still = STILL * _noise(curve)
    moved = turn.training is not None and last.training is not None and turn.training - last.training > still
    if len(after) < FLAT_EVALUATIONS or moved:
        return None
    rate = curve.learning_rate or 0.0
    return {"step": turn.step, "last_step": last.step, "validation": turn.loss, "last": last.loss, "rate": rate}


def too_good(curve: Curve) -> Symptoms | None:
    """New text predicted better than text that was read before."""
    half = curve.evaluations[len(curve.evaluations) // 2 :]
    if len(half) < FLAT_EVALUATIONS or not curve.epochs or curve.epochs < LEAK_EPOCHS:
        return None
    share = LEAK_SHARE_REGULARIZED if curve.regularized else LEAK_SHARE
    if not all(each.training is not None and each.loss < each.training * (1 - share) for each in half):
        return None
    return {"validation": half[-1].loss, "training": half[-1].training or 0.0, "epochs": curve.epochs}


def below_floor(curve: Curve) -> Symptoms | None:
    """Better than the source of the text allows."""
    best = curve.best
    if best is None or best.bits_per_byte is None or curve.floor is None or best.bits_per_byte >= curve.floor:
        return None
    return {"bits": best.bits_per_byte, "floor": curve.floor, "step": best.step}


def foreign(curve: Curve) -> Symptoms | None:
    """A large vocabulary that spells the text letter by letter, or byte by byte."""
    best = curve.best
    if best is None or not best.bits_per_character or (curve.vocab_size or 0) < VOCABULARY_OF_WORDS:
        return None
    letters = best.loss / math.log(2) / best.bits_per_character
    if letters >= LETTERS_PER_TOKEN:
        return None
    return {"letters": letters, "vocabulary": curve.vocab_size or 0}


def unlike(curve: Curve) -> Symptoms | None:
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
