"""Read and write JSON files: output is strict JSON, and input is validated, since a file may be malicious."""

import json
import math
import stat
from pathlib import Path
from typing import Any

from kotha.errors import KothaError, reason
from kotha.i18n.message import Message

# Maximum nesting depth; Kotha's own files stay far below it.
_DEEPEST = 64


def as_json(value: Any, indent: int | None = None) -> str:
    """Serialize a value to JSON without escaping Bangla; NaN and infinity become null.

    >>> as_json({"ক": [1, float("inf")]})
    '{"ক": [1, null]}'
    """
    try:
        return json.dumps(value, ensure_ascii=False, indent=indent, allow_nan=False, default=_in_english)
    except ValueError:
        return json.dumps(_finite(value), ensure_ascii=False, indent=indent, allow_nan=False, default=_in_english)


def _in_english(value: Any) -> str:
    """Return a message as English text, for ``json.dumps``."""
    if not isinstance(value, Message):
        raise TypeError(f"{type(value).__name__} is not JSON")
    return str(value)


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _finite(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(each) for each in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def read_table(path: Path, error: type[KothaError] = KothaError, most_bytes: int = 1 << 20) -> dict[str, Any]:
    """Read the JSON object in a file; raise ``error`` for any other content and for duplicate keys."""
    try:
        status = path.stat()
        if stat.S_ISDIR(status.st_mode):
            raise error("{path} is a folder; specify a file in it", path=path)
        if not stat.S_ISREG(status.st_mode):  # reading a pipe could block forever
            raise error("{path} is corrupted: it is not a regular file", path=path)
        if (n := status.st_size) > most_bytes:
            raise error("{path} is {n:,} bytes, which is too large for a {name}", path=path, n=n, name=path.name)
        found = json.loads(path.read_bytes(), object_pairs_hook=_each_once)
    except OSError as problem:
        raise error("{path} cannot be read: {why}", path=path, why=reason(problem)) from problem
    except json.JSONDecodeError as problem:
        raise error("{path} is corrupted: it is not valid JSON ({why})", path=path, why=str(problem)) from problem
    except (ValueError, RecursionError) as problem:
        raise error("{path} is corrupted: {why}", path=path, why=reason(problem)) from problem
    if not isinstance(found, dict):
        raise error("{path} is corrupted: it is not a JSON object", path=path)
    if is_deep(found):
        raise error("{path} is corrupted: it is nested deeper than {n} levels", path=path, n=_DEEPEST)
    return found


def is_deep(value: Any) -> bool:
    """Whether a parsed JSON value is nested so deeply that recursive code could overflow the stack.

    >>> is_deep({"a": [1, 2]})
    False
    """
    level = [value]
    for _ in range(_DEEPEST):
        parts = [each.values() if isinstance(each, dict) else each for each in level if isinstance(each, dict | list)]
        level = [part for each in parts for part in each]
        if not level:
            return False
    return True


def _each_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    values: dict[str, Any] = {}
    for key, value in pairs:
        if key in values:
            raise ValueError(Message("the key {name!r} occurs twice", name=key[:200]))
        values[key] = value
    return values
