"""Rules for short and long trainings: what suits a text, a width and a number of tokens.

All come from what was measured here (docs/dev/experiments.md, "What the defaults stand on"), and hold between and a
little beyond the measured points. The designer asks them, and through it ``train``, ``plan`` and ``demo``. A run is
*short* when it has too few steps to gain from anything that holds it back: no dropout, few passes, a long decay.
"""

import math

from kotha.i18n.message import Message
from kotha.training.config import TrainConfig

# Bytes of text from which a vocabulary pays.
_VOCABULARIES = ((0, 1024), (200_000, 2048), (600_000, 4096), (2_500_000, 8192), (400_000_000, 16_384))
# Tokens a step. Where the text and not the time is short, steps may be smaller: there is time for more of them.
_FEWEST, _FEWEST_OF_LITTLE_TEXT, _MOST = 1024, 256, 16_384
_WANTED_STEPS = 500
# Rates at a width, how fast they fall with it, and the width below which they no longer grow.
_WIDTH, _RATE, _MUON_RATE, _POWER, _LEAST_WIDTH = 512, 1e-3, 3e-3, 1.5, 96
_SHORT_STEPS, _SHORT_DECAY = 2000, 0.6
_SHORT_EPOCHS, _EPOCHS = 8, 20
_LONGEST_WARMUP = 50
# A run that would take this much longer than its time is shortened, one that could do so many more steps lengthened.
_LATE = 0.15
# Of the time, what a run that is lengthened beyond its plan leaves for its end.
_SPARE = 0.05
EVALUATIONS = 8


def choose_vocabulary(n_bytes: int) -> int:
    """Pieces for a text of a size.

    >>> choose_vocabulary(32_000_000)
    8192
    """
    return max(size for least, size in _VOCABULARIES if n_bytes >= least)


def is_short(tokens: float) -> bool:
    """Is a run that could see so many tokens a short one?"""
    return tokens / _WANTED_STEPS < 4 * _FEWEST


def most_epochs(short: bool) -> int:
    """Passes over a text that still gained."""
    return _SHORT_EPOCHS if short else _EPOCHS


def context_for(tokens: float) -> int:
    """Tokens in a sequence for a run that sees so many: long ones are for those who have learned the short ones."""
    return 128 if tokens < 2e6 else 256 if tokens < 2e7 else 512


def batch_for(tokens: float, context_length: int, little_text: bool = False) -> int:
    """Sequences in a step for a run that sees so many tokens: small in a short run, so that there are more steps.

    >>> batch_for(500_000, 128), batch_for(290_000, 128, little_text=True), batch_for(1e8, 512)
    (8, 4, 32)
    """
    fewest = _FEWEST_OF_LITTLE_TEXT if little_text else _FEWEST
    per_step = min(_MOST, max(fewest, tokens / _WANTED_STEPS))
    return 1 << max(0, round(per_step / context_length).bit_length() - 1)


def rates_for(width: int) -> dict[str, float]:
    """Largest learning rates of AdamW and Muon: small models bear rates that large ones do not.

    >>> rates_for(512)
    {'learning_rate': 0.001, 'muon_learning_rate': 0.003}
    """
    scale = (_WIDTH / max(width, _LEAST_WIDTH)) ** _POWER
    rates = {"learning_rate": _RATE, "muon_learning_rate": _MUON_RATE}
    return {name: float(f"{rate * scale:.2g}") for name, rate in rates.items()}


def restraint_for(epochs: float, short: bool) -> dict[str, float]:
    """Dropout and weight decay: none and little for a short run or few passes, as measured for many."""
    dropout, decay = (0.0, 0.1) if short or epochs <= 2 else (0.1, 0.2) if epochs <= 8 else (0.3, 0.5)
    return {"dropout": dropout, "weight_decay": decay}


def pace_of(steps: int, warmup_steps: int = _LONGEST_WARMUP) -> dict[str, int]:
    """How often to look and how long to warm up in so many steps."""
    return {
        "steps": steps,
        "evaluate_every": max(1, -(-steps // EVALUATIONS)),
        "warmup_steps": min(warmup_steps, steps // 10),
    }


def times(epochs: float) -> Message:
    """How many times through a text; a small part of it is not none of it.

    >>> [str(times(epochs)) for epochs in (0.0231, 0.5, 3.14, 20)]
    ['0.023', '0.5', '3.1', '20.0']
    """
    return Message("{n:.2g}" if epochs < 1 else "{n:.1f}", n=epochs)


def decay_for(steps: int) -> dict[str, int]:
    """How long the learning rate falls at the end (WSD): most of a short run, else what the recipe has."""
    return {"decay_steps": max(1, int(_SHORT_DECAY * steps))} if steps < _SHORT_STEPS else {}


def fit_to_time(
    planned: TrainConfig,
    steps: int,
    done: int,
    spent: float,
    pace: float,
    seconds: float,
    most_steps: int | None = None,
) -> TrainConfig:
    """What was planned, with as many steps as end in time; with the same ``steps`` as now where that is no matter.

    ``done`` steps took ``spent`` seconds, and each further one will take ``pace`` with all that goes with it. A machine
    that was busy when it was timed can do more than was planned, up to ``most_steps``, while the learning rate is still
    at its height (WSD): then nothing that was done would have been done otherwise. In its second half a run is left as
    it is.

    >>> plan = TrainConfig(steps=800, evaluate_every=100, decay_steps=480, schedule="stable")
    >>> fit_to_time(plan, 800, 100, spent=30.0, pace=0.3, seconds=120.0).steps
    400
    >>> fit_to_time(plan, 400, 150, spent=40.0, pace=0.1, seconds=120.0).steps
    800
    >>> fit_to_time(plan, 800, 100, spent=5.0, pace=0.05, seconds=120.0, most_steps=5000).steps
    2280
    """
    decay = _scaled(planned, steps).get("decay_steps", steps // 5)
    at_its_height = planned.schedule == "stable" and done <= steps - decay
    most = max(planned.steps, most_steps or 0) if at_its_height else planned.steps
    left = int((seconds - spent) / pace)
    affordable = min(planned.steps, max(done + 1, EVALUATIONS, done + left))
    if done + left > planned.steps:
        affordable = max(affordable, min(most, done + int(((1 - _SPARE) * seconds - spent) / pace)))
    late = spent + pace * (steps - done) > (1 + _LATE) * seconds and 2 * done <= steps
    early = affordable > (1 + _LATE) * steps and 2 * done <= planned.steps
    return planned.change(**_scaled(planned, affordable if late or early else steps))


def _scaled(planned: TrainConfig, steps: int) -> dict[str, int]:
    """A plan's steps, and what goes by them."""
    share = steps / planned.steps
    decay = {} if planned.decay_steps is None else {"decay_steps": math.ceil(share * planned.decay_steps)}
    return {"steps": steps, "evaluate_every": math.ceil(share * planned.evaluate_every), **decay}
