"""A sheet from the user's own matrices, read from a JSON file or a CSV file with named blocks.

JSON: ``{"tokens": ["ক", "খ"], "X": [[…], …], "W_Q": …, "W_K": …, "W_V": …, "mask": "causal"}``; tokens and mask are
optional. CSV: a line with the name of a matrix, its rows, an empty line, and so on; ``tokens`` is a block with one row.
Files are untrusted, so everything in them is validated before it is used.
"""

import csv
import io
from pathlib import Path
from typing import Any

import numpy as np

from kotha.course.worksheet.builtin_sheets import WEIGHTS
from kotha.course.worksheet.operations import Array
from kotha.course.worksheet.sheet import Labels, Sheet, head_steps, token_names
from kotha.errors import DataError
from kotha.i18n.message import Option
from kotha.i18n.numbers import ascii_digits
from kotha.model.fields import is_number
from kotha.storage.json_files import read_table

_MATRICES = ("X", *WEIGHTS)
_KNOWN = ("tokens", *_MATRICES, "mask")
_MOST_BYTES = 1 << 18
_MOST_TOKENS, _MOST_WIDTH = 24, 64
_LARGEST = 1e6
_LONGEST = 40  # characters of a token


def sheet_of_file(path: Path) -> Sheet:
    """Return the sheet for the matrices in a file."""
    ending = path.suffix.lower()
    if ending not in (".csv", ".json"):
        raise DataError("{path} must be a .json or .csv file with X, W_Q, W_K and W_V", path=path)
    return sheet_of(_read_csv(path) if ending == ".csv" else read_table(path, DataError, _MOST_BYTES))


def sheet_of(data: dict[str, Any]) -> Sheet:
    """Return the sheet for the given tokens, X, W_Q, W_K and W_V.

    >>> one = [[1.0, 0.0], [0.0, 1.0]]
    >>> sheet_of({"X": one, "W_Q": one, "W_K": one, "W_V": one}).steps["weights"].values.round(2).tolist()
    [[1.0, 0.0], [0.33, 0.67]]
    """
    unknown = next((key for key in data if key not in _KNOWN), None)
    if unknown is not None:
        raise DataError("unknown key {name!r}; use {known}", name=unknown[:_LONGEST], known=_KNOWN)
    given = {name: _matrix(name, data.get(name)) for name in _MATRICES}
    n_tokens, width = given["X"].shape
    for name in WEIGHTS:
        if len(given[name]) != width:
            raise DataError(
                "{name} has {rows} rows but X has {columns} columns; the two must be equal, and each row of "
                "X is one line, such as 1, 0, 0.5",
                name=name,
                rows=len(given[name]),
                columns=width,
            )
    query, key = (given[name].shape[1] for name in ("W_Q", "W_K"))
    if query != key:
        raise DataError(
            "W_Q has {query} columns but W_K has {key}; queries and keys must have the same width", query=query, key=key
        )
    tokens = _tokens(data.get("tokens"), n_tokens)
    mask = data.get("mask", "causal")
    if mask not in ("causal", "none"):
        raise DataError("{mask} is not supported; use causal or none", mask=Option("mask", str(mask)[:_LONGEST]))
    if mask == "causal":
        given["mask"] = np.tri(n_tokens)
    return Sheet(head_steps(given, tokens), tokens, tokens, text=" ".join(map(str, tokens)), called="own")


def _matrix(name: str, rows: Any) -> Array:
    """Check the rows of a matrix and convert them to an array."""
    if not (isinstance(rows, list) and rows and all(isinstance(row, list) and row for row in rows)):
        raise DataError(
            "{name} is missing or not a matrix; give rows of numbers, such as [[1, 0.5], [0, 2]]", name=name
        )
    height, width = len(rows), len(rows[0])
    if height > (_MOST_TOKENS if name == "X" else _MOST_WIDTH) or width > _MOST_WIDTH:
        raise DataError(
            "{name} is {height} × {width}, too large to compute by hand; use at most {tokens} tokens and {columns} "
            "columns",
            name=name,
            height=height,
            width=width,
            tokens=_MOST_TOKENS,
            columns=_MOST_WIDTH,
        )
    for number, row in enumerate(rows, 1):
        if len(row) != width or not all(is_number(value) and abs(value) <= _LARGEST for value in row):
            raise DataError(
                "{name}: row {number} is {held}; each row must have {width} numbers, each at most "
                "{most:,.0f} in absolute value",
                name=name,
                number=number,
                held=str(row)[:_LONGEST],
                width=width,
                most=_LARGEST,
            )
    return np.array(rows, dtype=np.float64)


def _tokens(names: Any, count: int) -> Labels:
    """Validate the row labels; pages and terminals escape unprintable characters."""
    if names is None:
        return token_names(count)
    texts = isinstance(names, list) and all(isinstance(each, str) and 0 < len(each) <= _LONGEST for each in names)
    if not texts or len(names) != count:
        raise DataError(
            "tokens must be {count} strings of 1 to {most} characters, one for each row of X",
            count=count,
            most=_LONGEST,
        )
    return tuple(names)


def _read_csv(path: Path) -> dict[str, Any]:
    """Read the blocks in a CSV file by name."""
    if path.stat().st_size > _MOST_BYTES:
        raise DataError("{path} is too large for a worksheet ({n:,} bytes)", path=path, n=path.stat().st_size)
    try:
        lines = list(csv.reader(io.StringIO(path.read_text(encoding="utf-8-sig")), strict=True))
    except (UnicodeDecodeError, csv.Error) as problem:
        raise DataError("{path} cannot be read: {problem}", path=path, problem=str(problem)) from problem
    found: dict[str, Any] = {}
    name: str | None = None
    for number, line in enumerate(lines, 1):
        cells = [cell.strip() for cell in line]
        while cells and not cells[-1]:  # spreadsheets pad short rows
            cells.pop()
        if not cells:
            name = None
        elif name is not None:
            found[name].append(cells if name in ("tokens", "mask") else list(map(_number, cells)))
        else:
            name = cells[0]
            if len(cells) > 1 or name not in _KNOWN or name in found:
                raise DataError(
                    "line {number}: expected the name of a matrix, found {name!r}; give each of {known} once",
                    number=number,
                    name=name[:_LONGEST],
                    known=_KNOWN,
                )
            found[name] = []
    for single in found.keys() & {"tokens", "mask"}:
        flat = [cell for row in found[single] for cell in row]
        found[single] = flat if single == "tokens" else "".join(flat)
    return found


def _number(cell: str) -> float | str:
    """Parse a number in Latin or Bangla digits with either minus sign; return other text unchanged."""
    try:
        return float(ascii_digits(cell).replace("−", "-"))
    except ValueError:
        return cell
