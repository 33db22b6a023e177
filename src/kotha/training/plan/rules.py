"""Rules for short and long training runs: settings by text size, model width and number of tokens.

All rules were derived from measurements (docs/dev/experiments.md, "What the defaults stand on"), and are valid between
the measured points and slightly beyond. ``design.py`` applies them, and therefore ``train``, ``plan`` and ``demo``. A
run is *short* if it has too few steps to benefit from regularisation. Short runs have no dropout, few epochs and a long
decay.
"""

import math

from kotha.i18n.message import Message
from kotha.training.config import TrainConfig

# Bytes of text from which each vocabulary size is better than the next smaller one.
_VOCABULARIES = ((0, 1024), (200_000, 2048), (600_000, 4096), (2_500_000, 8192), (400_000_000, 16_384))
# Tokens per step. If the text limits the run rather than the time, more and smaller steps are possible.
_FEWEST, _FEWEST_OF_LITTLE_TEXT, _MOST = 1024, 256, 16_384
_WANTED_STEPS = 500
# The width for these learning rates, the power of the width by which they fall, and the width below which they are
# constant.
_WIDTH, _RATE, _MUON_RATE, _POWER, _LEAST_WIDTH = 512, 1e-3, 3e-3, 1.5, 96
_SHORT_STEPS, _SHORT_DECAY = 2000, 0.6
_SHORT_EPOCHS, _EPOCHS = 8, 20
_LONGEST_WARMUP = 50
# A run is shortened if it would exceed its time by this share, and extended if there is time for this share of extra
# steps.
_LATE, _EARLY = 0.05, 0.03
# The share of the time that an extended run reserves for its last evaluation and for saving.
_SPARE = 0.05
EVALUATIONS = 8
# Seconds between two evaluations, at least.
_EVALUATION_INTERVAL = 10


def choose_vocabulary(n_bytes: int) -> int:
    """Return the vocabulary size for a text of ``n_bytes``.

    >>> choose_vocabulary(32_000_000)
    8192
    """
    return max(size for least, size in _VOCABULARIES if n_bytes >= least)


def is_short(tokens: float) -> bool:
    """Return whether a run with this number of tokens is short."""
    return tokens / _WANTED_STEPS < 4 * _FEWEST


def most_epochs(short: bool) -> int:
    """Return the number of passes over a text up to which models still improved."""
    return _SHORT_EPOCHS if short else _EPOCHS


def context_for(tokens: float) -> int:
    """Return the context length for a run with this number of tokens."""
    return 128 if tokens < 2e6 else 256 if tokens < 2e7 else 512


def batch_for(tokens: float, context_length: int, little_text: bool = False) -> int:
    """Return the sequences per step for a run with this number of tokens: few in a short run, for more steps.

    >>> batch_for(500_000, 128), batch_for(290_000, 128, little_text=True), batch_for(1e8, 512)
    (8, 4, 32)
    """
    fewest = _FEWEST_OF_LITTLE_TEXT if little_text else _FEWEST
    per_step = min(_MOST, max(fewest, tokens / _WANTED_STEPS))
    return 1 << max(0, round(per_step / context_length).bit_length() - 1)


def rates_for(width: int) -> dict[str, float]:
    """Return the peak learning rates of AdamW and Muon for a width; small models tolerate higher rates.

    >>> rates_for(512)
    {'learning_rate': 0.001, 'muon_learning_rate': 0.003}
    """
    scale = (_WIDTH / max(width, _LEAST_WIDTH)) ** _POWER
    rates = {"learning_rate": _RATE, "muon_learning_rate": _MUON_RATE}
    return {name: float(f"{rate * scale:.2g}") for name, rate in rates.items()}


def regularisation_for(epochs: float, short: bool) -> dict[str, float]:
    """Return dropout and weight decay: low for short runs and few passes, higher for many passes."""
    dropout, decay = (0.0, 0.1) if short or epochs <= 2 else (0.1, 0.2) if epochs <= 8 else (0.3, 0.5)
    return {"dropout": dropout, "weight_decay": decay}


def pace_of(steps: int, warmup_steps: int = _LONGEST_WARMUP, evaluations: int = EVALUATIONS) -> dict[str, int]:
    """Return ``steps``, ``evaluate_every`` and ``warmup_steps`` for a number of steps."""
    return {
        "steps": steps,
        "evaluate_every": max(1, -(-steps // evaluations)),
        "warmup_steps": min(warmup_steps, steps // 10),
    }


def evaluations_in(seconds: float) -> int:
    """Return the number of evaluations in a run: fewer in a short one, where they would take a large share of the time.

    >>> evaluations_in(25), evaluations_in(600)
    (2, 8)
    """
    return max(2, min(EVALUATIONS, int(seconds / _EVALUATION_INTERVAL)))


def times(epochs: float) -> Message:
    """Format a number of passes over a text, which is never rounded down to zero.

    >>> [str(times(epochs)) for epochs in (0.0231, 0.5, 3.14, 20)]
    ['0.023', '0.5', '3.1', '20.0']
    """
    return Message("{n:.2g}" if epochs < 1 else "{n:.1f}", n=epochs)


def decay_for(steps: int) -> dict[str, int]:
    """Return the number of steps in the final decay (WSD): most of a short run, otherwise the recipe's value."""
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
    """Return the planned settings with as many steps as fit in the time; ``steps`` is kept if it is close enough.

    ``done`` steps took ``spent`` seconds, and each further step, including evaluations and saving, will take ``pace``.
    If the machine was busy when it was timed, the run can be extended beyond the planned steps, up to ``most_steps``. A
    run is extended only before the learning rate begins to decay (WSD), because until then its steps equal those of a
    longer run. A run is not changed in its second half.

    >>> plan = TrainConfig(steps=800, evaluate_every=100, decay_steps=480, schedule="stable")
    >>> fit_to_time(plan, 800, 100, spent=30.0, pace=0.3, seconds=120.0).steps
    400
    >>> fit_to_time(plan, 400, 150, spent=40.0, pace=0.1, seconds=120.0).steps
    800
    >>> fit_to_time(plan, 800, 100, spent=5.0, pace=0.05, seconds=120.0, most_steps=5000).steps
    2280
    """
    decay = _scaled(planned, steps).get("decay_steps", steps // 5)
    before_decay = planned.schedule == "stable" and done <= steps - decay
    most = max(planned.steps, most_steps or 0) if before_decay else planned.steps
    left = int((seconds - spent) / pace)
    affordable = min(planned.steps, max(done + 1, EVALUATIONS, done + left))
    if done + left > planned.steps:
        affordable = max(affordable, min(most, done + int(((1 - _SPARE) * seconds - spent) / pace)))
    late = spent + pace * (steps - done) > (1 + _LATE) * seconds and 2 * done <= steps
    early = min(affordable, done + left) > (1 + _EARLY) * steps and 2 * done <= planned.steps
    return planned.change(**_scaled(planned, affordable if late or early else steps))


def _scaled(planned: TrainConfig, steps: int) -> dict[str, int]:
    """Return the planned settings that depend on the number of steps, scaled to ``steps``."""
    share = steps / planned.steps
    decay = {} if planned.decay_steps is None else {"decay_steps": math.ceil(share * planned.decay_steps)}
    return {"steps": steps, "evaluate_every": math.ceil(share * planned.evaluate_every), **decay}
