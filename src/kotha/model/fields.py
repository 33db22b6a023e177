"""The fields of a config: types checked, unknown names refused, values suggested that would work."""

import math
import sys
from collections.abc import Mapping
from dataclasses import MISSING, field, fields
from types import UnionType
from typing import Any, Literal, get_args, get_origin, get_type_hints

from kotha.errors import ConfigError, nearest

# Far above any model that this package could run; below it, arithmetic on sizes stays in 64 bits.
LARGEST_COUNT = 1 << 30
# Seeds that both numpy and torch take.
LARGEST_SEED = (1 << 63) - 1


def follows() -> Any:
    """A field that may be left out, because the others decide it: None until the config has worked it out."""
    return field(default=None, metadata={"follows": True})


def at_least(least: int, *, default: int, most: int = LARGEST_COUNT) -> Any:
    """A whole number with limits of its own; others are from 1 to ``LARGEST_COUNT``."""
    return field(default=default, metadata={"limits": (least, most)})


def is_number(value: object) -> bool:
    """Whether something is a finite number; a whole one that no float can hold is not.

    >>> is_number(3), is_number(float("nan")), is_number(10**400), is_number(True)
    (True, False, False, False)
    """
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) <= sys.float_info.max


def check_types(config: Any) -> None:
    """Refuse a field whose value is not of its type; what follows from others, or is optional, may be None."""
    hints = get_type_hints(type(config))
    for each in fields(config):
        value, (hint, *optional) = getattr(config, each.name), _alternatives(hints[each.name])
        if value is None and (optional or each.metadata.get("follows")):
            continue
        least, most = each.metadata.get("limits", (1, LARGEST_COUNT))
        said: dict[str, Any] = {"name": each.name, "value": repr(value)[:50]}
        if get_origin(hint) is Literal and value not in get_args(hint):
            raise ConfigError(
                "{name}={value} is not a valid choice{nearest}", **said, nearest=nearest(str(value), get_args(hint))
            )
        if hint is bool and not isinstance(value, bool):
            raise ConfigError("{name}={value} must be true or false", **said)
        if hint is int and not (type(value) is int and least <= value <= most):
            told = "{name}={value} must be a whole number from {least} to {most:,}"
            raise ConfigError(told, **said, least=least, most=most)
        if hint is float and not is_number(value):
            raise ConfigError("{name}={value} must be a number", **said)
        listed = isinstance(value, tuple | list) and all(isinstance(part, str) for part in value)
        if hint == tuple[str, ...] and not listed:
            raise ConfigError("{name}={value} must be a list of names", **said)


def _alternatives(hint: Any) -> tuple[Any, ...]:
    return get_args(hint) if isinstance(hint, UnionType) else (hint,)


def check_names(kind: Any, values: Mapping[str, object], whole: bool = False) -> None:
    """Refuse a key that a config has no field for, naming the nearest; if ``whole``, also a field that has no value."""
    known = [each.name for each in fields(kind)]
    for name in values:
        if name not in known:
            raise ConfigError(
                "{name!r} is not a setting of {kind}{nearest}",
                name=name,
                kind=kind.__name__,
                nearest=nearest(name, known),
            )
    missing = [each.name for each in fields(kind) if each.default is MISSING and each.name not in values]
    if whole and missing:
        raise ConfigError("{kind} is missing {names}", kind=kind.__name__, names=missing)


def indivisible(config: Any, name: str, other: str, wider: int | None = None) -> ConfigError:
    """The error of a number that another does not divide, with values that would work."""
    value, divisor = getattr(config, name), getattr(config, other)
    said = "{name}={value} is not divisible by {other}={divisor}; try {other}={better}"
    said_wider = "{name}={value} is not divisible by {other}={divisor}; try {other}={better} or {name}={wider}"
    return ConfigError(
        said if wider is None else said_wider,
        name=name,
        value=value,
        other=other,
        divisor=divisor,
        better=closest_divisor(value, divisor),
        wider=wider,
    )


def closest_divisor(number: int, wanted: int) -> int:
    """The divisor of a number that is nearest to a wanted one.

    >>> closest_divisor(500, 8)
    10
    """
    small = [divisor for divisor in range(1, math.isqrt(number) + 1) if number % divisor == 0]
    divisors = {*small, *(number // divisor for divisor in small)}
    return min(divisors, key=lambda divisor: (abs(divisor - wanted), divisor))


def roomier_width(d_model: int, n_heads: int) -> int:
    """The next width that heads divide, their own width a multiple of 8 once it is above that.

    >>> roomier_width(500, 8), roomier_width(10, 4)
    (512, 12)
    """
    d_head = -(-d_model // n_heads)
    return n_heads * (-(-d_head // 8) * 8 if d_head > 8 else d_head)
