"""Validation of config fields: types, limits and unknown names, with suggestions in the errors."""

import math
import sys
from collections.abc import Mapping
from dataclasses import MISSING, field, fields
from types import UnionType
from typing import Any, Literal, get_args, get_origin, get_type_hints

from kotha.errors import ConfigError, nearest

# Far larger than in any model that this package can run, but small enough that products of sizes fit into 64 bits.
LARGEST_COUNT = 1 << 30
# The largest seed that both numpy and torch accept.
LARGEST_SEED = (1 << 63) - 1


def derived() -> Any:
    """A derived field: None until the config computes it from the others."""
    return field(default=None, metadata={"derived": True})


def at_least(least: int, *, default: int, most: int = LARGEST_COUNT) -> Any:
    """An integer field with its own limits; the default limits are 1 and ``LARGEST_COUNT``."""
    return field(default=default, metadata={"limits": (least, most)})


def is_number(value: object) -> bool:
    """Return whether a value is a finite number that fits into a float.

    >>> is_number(3), is_number(float("nan")), is_number(10**400), is_number(True)
    (True, False, False, False)
    """
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) <= sys.float_info.max


def check_types(config: Any) -> None:
    """Raise an error for a field whose value has the wrong type; derived and optional fields may be None."""
    hints = get_type_hints(type(config))
    for each in fields(config):
        value, (hint, *optional) = getattr(config, each.name), _alternatives(hints[each.name])
        if value is None and (optional or each.metadata.get("derived")):
            continue
        least, most = each.metadata.get("limits", (1, LARGEST_COUNT))
        details: dict[str, Any] = {"name": each.name, "value": repr(value)[:50]}
        if get_origin(hint) is Literal and value not in get_args(hint):
            raise ConfigError(
                "{name}={value} is not a valid choice{nearest}", **details, nearest=nearest(str(value), get_args(hint))
            )
        if hint is bool and not isinstance(value, bool):
            raise ConfigError("{name}={value} must be true or false", **details)
        if hint is int and not (type(value) is int and least <= value <= most):
            message = "{name}={value} must be an integer from {least} to {most:,}"
            raise ConfigError(message, **details, least=least, most=most)
        if hint is float and not is_number(value):
            raise ConfigError("{name}={value} must be a number", **details)
        is_list_of_names = isinstance(value, tuple | list) and all(isinstance(part, str) for part in value)
        if hint == tuple[str, ...] and not is_list_of_names:
            raise ConfigError("{name}={value} must be a list of names", **details)


def _alternatives(hint: Any) -> tuple[Any, ...]:
    return get_args(hint) if isinstance(hint, UnionType) else (hint,)


def check_names(kind: Any, values: Mapping[str, object], complete: bool = False) -> None:
    """Raise an error for an unknown key that suggests the nearest known one.

    If ``complete`` is set, a missing field raises an error too.
    """
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
    if complete and missing:
        raise ConfigError("{kind} is missing {names}", kind=kind.__name__, names=missing)


def indivisible(config: Any, name: str, other: str, wider: int | None = None) -> ConfigError:
    """Return the error for a number that is not divisible by another, with values that would work."""
    value, divisor = getattr(config, name), getattr(config, other)
    message = "{name}={value} is not divisible by {other}={divisor}; try {other}={better}"
    message_wider = "{name}={value} is not divisible by {other}={divisor}; try {other}={better} or {name}={wider}"
    return ConfigError(
        message if wider is None else message_wider,
        name=name,
        value=value,
        other=other,
        divisor=divisor,
        better=closest_divisor(value, divisor),
        wider=wider,
    )


def closest_divisor(number: int, wanted: int) -> int:
    """Return the divisor of a number that is closest to a target.

    >>> closest_divisor(500, 8)
    10
    """
    small = [divisor for divisor in range(1, math.isqrt(number) + 1) if number % divisor == 0]
    divisors = {*small, *(number // divisor for divisor in small)}
    return min(divisors, key=lambda divisor: (abs(divisor - wanted), divisor))


def roomier_width(d_model: int, n_heads: int) -> int:
    """Return the next larger width divisible by n_heads; head widths above 8 are rounded up to a multiple of 8.

    >>> roomier_width(500, 8), roomier_width(10, 4)
    (512, 12)
    """
    d_head = -(-d_model // n_heads)
    return n_heads * (-(-d_head // 8) * 8 if d_head > 8 else d_head)
