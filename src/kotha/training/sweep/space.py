"""The search space of a hyperparameter sweep: settings and their ranges, written as text.

``learning_rate=1e-4..1e-2:log`` is a range on a logarithmic scale, ``n_layers=2..6`` is a range of integers, and
``dropout=0,0.1,0.2`` is a list of values. ``size=2x96,4x192`` sets layers and width together, with a matching number of
heads and feed-forward width (``plan/design.py``), because values drawn separately are rarely compatible.

By default, the search stays near the default recipe: learning rates within a factor, and batch and model size one step
up or down.
"""

import math
import re
import tomllib
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, fields
from typing import Any, get_args, get_type_hints

from kotha.errors import UsageError, nearest
from kotha.model.config import ModelConfig
from kotha.model.fields import is_number
from kotha.training.config import TrainConfig
from kotha.training.plan.design import RUNGS, shape
from kotha.training.request import RunSetup

SIZE = "size"
Value = str | int | float | bool | None
# Settings that affect the duration or the evaluation of a trial; trials that differ in them cannot be compared.
_MEASURES = (
    *("steps", "seed", "evaluate_every", "evaluate_tokens", "patience", "checkpoint_every"),
    *("keep_checkpoints", "teachers", "vocab_size", "micro_batch_size"),
)
_RATE_FACTOR = 4.0
_DECAYS = (0.01, 1.0)
_DROPOUTS = (0.0, 0.1, 0.2, 0.3)
_SIZE_FORM = re.compile(r"([1-9]\d{0,3})x([1-9]\d{0,5})")
# The share of a range that counts as its end, on each side.
_NEAR_AN_END = 0.05


@dataclass(frozen=True)
class SearchDimension:
    """A searched setting: one of ``choices`` or, if there are none, a value between ``low`` and ``high``."""

    name: str
    choices: tuple[Value, ...] = ()
    low: float = 0.0
    high: float = 0.0
    log: bool = False  # sampled uniformly on a logarithmic scale
    whole: bool = False  # integers only

    @property
    def words(self) -> str:
        """The setting and its range in the syntax of ``read_search``.

        >>> SearchDimension("learning_rate", low=1e-4, high=0.01, log=True).words
        'learning_rate=0.0001..0.01:log'
        """
        return f"{self.name}={self.range}"

    @property
    def range(self) -> str:
        """The range as text."""
        if self.choices:
            return ",".join(map(in_words, self.choices))
        return f"{in_words(self.low)}..{in_words(self.high)}{':log' if self.log else ''}"

    def draw(self, trial: Any) -> Value:
        """Draw a value in an Optuna trial."""
        if self.choices:
            return rounded(trial.suggest_categorical(self.name, self.choices))
        suggest = trial.suggest_int if self.whole else trial.suggest_float
        return rounded(suggest(self.name, self.low, self.high, log=self.log))

    def holds(self, value: Value) -> bool:
        """Return whether a value lies within the range."""
        if self.choices:
            return value in self.choices
        return isinstance(value, int | float) and self.low <= value <= self.high

    def at_an_end(self, value: Value) -> bool:
        """Return whether a value is so close to an end of the range that a better value may lie beyond it.

        >>> rates = SearchDimension("learning_rate", low=1e-4, high=1e-2, log=True)
        >>> rates.at_an_end(0.0098), rates.at_an_end(0.001)
        (True, False)
        """
        if self.choices or not isinstance(value, int | float) or not self.holds(value):
            return False
        low, high, here = (math.log(each) if self.log else each for each in (self.low, self.high, value))
        return not _NEAR_AN_END <= (here - low) / (high - low) <= 1 - _NEAR_AN_END


def in_words(value: Value) -> str:
    """Format a value for ``read_search`` and ``--set``.

    >>> in_words(0.0001), in_words(None), in_words(True), in_words("muon")
    ('0.0001', 'none', 'true', 'muon')
    """
    if value is None or isinstance(value, bool):
        return str(value).lower()
    return f"{value:.12g}" if isinstance(value, float) else str(value)


def rounded(value: Value) -> Value:
    """Round a value to 4 significant digits, as it is used in training.

    >>> rounded(0.00883987453425), rounded(64)
    (0.00884, 64)
    """
    return float(f"{value:.4g}") if isinstance(value, float) else value


def short(value: Value) -> str:
    """Format a value as short text."""
    return f"{value:.3g}" if isinstance(value, float) else in_words(value)


def read_search(
    words: Sequence[str], model: ModelConfig, fixed: Mapping[str, Any] | None = None
) -> list[SearchDimension]:
    """Parse search ranges; settings in ``fixed`` already have a value and cannot be searched.

    >>> from kotha.model.presets import preset
    >>> [each.words for each in read_search(["n_layers=2..6", "dropout=0,0.1"], preset("mini"))]
    ['n_layers=2..6', 'dropout=0,0.1']
    """
    found = [_read(text, model) for text in words]
    names = [each.name for each in found]
    for each in found:
        if names.count(each.name) > 1:
            raise UsageError("{name} appears twice in the search; list all of its values in one place", name=each.name)
        if each.name in (fixed or {}):
            raise UsageError("{name} is both set and searched; remove one of them", name=each.name)
    sizes = {"n_layers", "d_model", "n_heads", "d_ff"}.intersection(names)
    if SIZE in names and sizes:
        raise UsageError(
            "size sets layers and width, but {name} is also searched; remove one of them", name=sorted(sizes)[0]
        )
    return found


def _read(text: str, model: ModelConfig) -> SearchDimension:
    name, _, rest = text.partition("=")
    ends, colon, how = rest.partition(":")
    is_range = ".." in ends
    if not name or "=" not in text or (is_range and colon and how != "log"):
        raise UsageError(
            "{word!r} is not a search range; write NAME=FROM..TO, NAME=FROM..TO:log or NAME=A,B,C", word=text
        )
    if name in _MEASURES:
        raise UsageError(
            "{name} determines how trials are timed or evaluated, so it cannot be searched; set it for all trials",
            name=name,
        )
    hints = {**get_type_hints(type(model)), **get_type_hints(TrainConfig)}
    known = [each.name for each in (*fields(model), *fields(TrainConfig)) if each.name not in _MEASURES] + [SIZE]
    if name not in known:
        raise UsageError("unknown setting {name!r}{nearest}", name=name, nearest=nearest(name, known))
    kinds = get_args(hints.get(name)) or (hints.get(name),)
    found = _between(name, ends, bool(colon), kinds) if is_range else _among(name, rest, kinds)
    if name in get_type_hints(TrainConfig):  # reject values that would make every trial fail
        for value in found.choices or (found.low, found.high):
            TrainConfig().change(**{name: value})
    return found


def _between(name: str, ends: str, log: bool, kinds: tuple[Any, ...]) -> SearchDimension:
    whole = int in kinds and float not in kinds
    if not whole and float not in kinds:
        raise UsageError("the values of {name} are not numbers; list them, as in {name}=A,B", name=name)
    low, high = (_number(part, int if whole else float) for part in ends.split("..", 1))
    if low is None or high is None or not low < high or (log and low <= 0):
        no_range = (
            "{name}={ends} is not a range; write two numbers, the smaller one first; with :log, both must be above 0"
        )
        raise UsageError(no_range, name=name, ends=ends)
    return SearchDimension(name, low=low, high=high, log=log, whole=whole)


def _number(text: str, kind: type[int] | type[float]) -> float | None:
    with suppress(ValueError):
        value = kind(text)
        return value if is_number(value) else None
    return None


def _among(name: str, rest: str, kinds: tuple[Any, ...]) -> SearchDimension:
    values = tuple(dict.fromkeys(_value(part, float in kinds) for part in rest.split(",") if part))
    if len(values) < 2:
        few = "{name}={rest} leaves nothing to search; write two or more values, or a range as FROM..TO"
        raise UsageError(few, name=name, rest=rest)
    for value in values:
        if name == SIZE and not _SIZE_FORM.fullmatch(str(value)):
            raise UsageError("size={value} is not of the form layers x width; write it as size=2x96,4x192", value=value)
    return SearchDimension(name, choices=values)


def _value(text: str, is_fraction: bool) -> Value:
    value: Any = None if text == "none" else text
    with suppress(ValueError, RecursionError):
        value = tomllib.loads(f"value = {text}")["value"]
    if is_fraction and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    return value if value is None or isinstance(value, str | int | float | bool) else text


# -- default search ----------------------------------------------------------------------------------------------------


def usual_search(choice: RunSetup, fixed: Mapping[str, Any], sizes_open: bool) -> list[SearchDimension]:
    """Return the search space around the default recipe, without the ``fixed`` settings."""
    settings, batch = choice.settings, choice.settings.batch_size
    ends = {"weight_decay": _DECAYS}
    for name in ("learning_rate", *(["muon_learning_rate"] if settings.optimizer == "muon" else [])):
        rate = getattr(settings, name)
        ends[name] = float(f"{rate / _RATE_FACTOR:.3g}"), float(f"{rate * _RATE_FACTOR:.3g}")
    few: dict[str, tuple[Value, ...]] = {
        "dropout": _DROPOUTS,
        "batch_size": tuple(sorted({max(1, batch // 2), batch, 2 * batch})),
    }
    # The model's size and its neighbours in the list of standard sizes; empty if it is not a standard size.
    rungs = [f"{layers}x{width}" for layers, width in RUNGS]
    if sizes_open and (here := size_of(choice.model)) in rungs:
        index = rungs.index(here)
        few[SIZE] = tuple(rungs[max(0, index - 1) : index + 2])
    between = [SearchDimension(name, low=low, high=high, log=True) for name, (low, high) in sorted(ends.items())]
    among = [SearchDimension(name, choices=choices) for name, choices in few.items()]
    return [each for each in (*between, *among) if each.name not in fixed]


def size_of(model: ModelConfig) -> str:
    """Format the layers and width of a model."""
    return f"{model.n_layers}x{model.d_model}"


def default_of(name: str, choice: RunSetup) -> Value:
    """Return the value of a setting that is not searched."""
    if name == SIZE:
        return size_of(choice.model)
    value: Value = getattr(choice.settings, name, None)
    return choice.model.to_dict().get(name) if value is None else value


def as_changes(values: Mapping[str, Value]) -> dict[str, Any]:
    """Convert drawn values to settings and sizes of a training run.

    >>> as_changes({"dropout": 0.1, "size": "2x96"})
    {'dropout': 0.1, 'n_layers': 2, 'd_model': 96, 'n_heads': 3, 'd_ff': 256}
    """
    changes = {name: value for name, value in values.items() if name != SIZE}
    if SIZE in values and (form := _SIZE_FORM.fullmatch(str(values[SIZE]))):
        model = shape(int(form[1]), int(form[2]), vocab_size=1024)
        changes |= {name: getattr(model, name) for name in ("n_layers", "d_model", "n_heads", "d_ff")}
    return changes
