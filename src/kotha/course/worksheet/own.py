"""The reader's own matrices as a sheet: a JSON file, or a CSV file of named blocks.

JSON: ``{"tokens": ["ক", "খ"], "X": [[…], …], "W_Q": …, "W_K": …, "W_V": …, "mask": "causal"}``; tokens and mask may be
left out. CSV: a line with a matrix's name, its rows, an empty line, and so on; ``tokens`` is a block of one row. A file
may come from anywhere, so everything in it is checked before anything is computed.
"""

import csv
import io
import unicodedata
from pathlib import Path
from typing import Any

import numpy as np

from kotha.course.worksheet.operations import Array
from kotha.course.worksheet.sheet import Head, Projection, Sheet, lay_out
from kotha.errors import DataError
from kotha.i18n.numbers import ascii_digits
from kotha.model.fields import is_number
from kotha.storage.json_files import read_table
from kotha.storage.status import is_file

_MATRICES = ("X", "W_Q", "W_K", "W_V")
_KNOWN = ("tokens", *_MATRICES, "mask")
_MOST_BYTES = 1 << 18
_MOST_TOKENS, _MOST_WIDTH = 24, 64
_LARGEST = 1e6
_LONGEST = 40
_MASKS = ("causal", "none")


def sheet_of_file(path: Path) -> Sheet:
    """The sheet of what a file gives."""
    told = _read_csv(path) if path.suffix.lower() == ".csv" else read_table(path, DataError, _MOST_BYTES)
    return sheet_of(told)


def sheet_of(told: dict[str, Any]) -> Sheet:
    """The sheet of tokens, X, W_Q, W_K and W_V.

    >>> one = [[1.0, 0.0], [0.0, 1.0]]
    >>> sheet_of({"X": one, "W_Q": one, "W_K": one, "W_V": one}).steps["weights"].values.round(2).tolist()
    [[1.0, 0.0], [0.33, 0.67]]
    """
    unknown = next((key for key in told if key not in _KNOWN), None)
    if unknown is not None:
        raise DataError(f"{unknown[:_LONGEST]!r} is no matrix of a head; give {', '.join(_KNOWN)}")
    x, w_q, w_k, w_v = (_matrix(name, told.get(name)) for name in _MATRICES)
    for name, matrix in (("W_Q", w_q), ("W_K", w_k), ("W_V", w_v)):
        if x.shape[1] == 1 < matrix.shape[0]:
            raise DataError(
                f"X has one number in each row, and {name} has {matrix.shape[0]} rows; "
                "write a whole row of X together, as in 1, 0, 0.5"
            )
        if matrix.shape[0] != x.shape[1]:
            raise DataError(f"{name} has {matrix.shape[0]} rows, X has {x.shape[1]} columns; they must be as many")
    if w_q.shape[1] != w_k.shape[1]:
        raise DataError(f"W_Q has {w_q.shape[1]} columns and W_K {w_k.shape[1]}; a query meets a key of its own width")
    tokens = _tokens(told.get("tokens"), len(x))
    mask = told.get("mask", "causal")
    if mask not in _MASKS:
        raise DataError(f"mask={str(mask)[:_LONGEST]!r} is not known; use causal or none")
    query, key, value = (Projection(matrix) for matrix in (w_q, w_k, w_v))
    head = Head(x, query, key, value, mask=np.tri(len(x)) if mask == "causal" else None)
    steps = lay_out(head, tokens, shifted=True)
    return Sheet(steps, tokens, tokens, text=" ".join(tokens), place="", layer=0, head=0)


def _matrix(name: str, rows: Any) -> Array:
    """A matrix of plain numbers, not too large; anything else is refused by name."""
    if rows is None:
        raise DataError(f"{name} is missing; give {', '.join(_MATRICES)}")
    if not (isinstance(rows, list) and rows and all(isinstance(row, list) and row for row in rows)):
        raise DataError(f"{name} is no matrix; give rows of numbers, such as [[1, 0.5], [0, 2]]")
    height, width = len(rows), len(rows[0])
    if height > (_MOST_TOKENS if name == "X" else _MOST_WIDTH) or width > _MOST_WIDTH:
        raise DataError(
            f"{name} is {height} × {width}, too large for paper; "
            f"use at most {_MOST_TOKENS} tokens and {_MOST_WIDTH} columns"
        )

    for number, row in enumerate(rows, 1):
        if len(row) != width:
            raise DataError(f"{name}: row {number} has {len(row)} numbers and row 1 has {width}; give each row as many")
        for value in row:
            if not is_number(value):
                raise DataError(f"{name}: row {number} holds {str(value)[:_LONGEST]!r}, which is no number")
            if abs(value) > _LARGEST:
                raise DataError(f"{name}: row {number} holds {value:.3g}; use numbers up to {_LARGEST:,.0f}")
    return np.array(rows, dtype=np.float64)


def _tokens(told: Any, count: int) -> tuple[str, ...]:
    """Names of the rows, short and printable."""
    if told is None:
        return tuple(f"token {number}" for number in range(1, count + 1))
    if not (isinstance(told, list) and all(isinstance(token, str) for token in told)) or len(told) != count:
        raise DataError(f"tokens must be {count} texts, one for each row of X")
    for token in told:
        hidden = any(unicodedata.category(letter)[0] == "C" and letter not in "\u200c\u200d" for letter in token)
        if not token.strip() or len(token) > _LONGEST or hidden:
            raise DataError(f"the token {token[:_LONGEST]!r} cannot be shown; use 1 to {_LONGEST} letters")
    return tuple(told)


def _read_csv(path: Path) -> dict[str, Any]:
    """The blocks of a CSV file by their names."""
    try:
        if not is_file(path):
            raise DataError(f"there is no file {path}")
        if path.stat().st_size > _MOST_BYTES:
            raise DataError(f"{path} has {path.stat().st_size:,} bytes, far more than a sheet for paper")
        text = path.read_text(encoding="utf-8-sig")
        lines = list(csv.reader(io.StringIO(text), strict=True))
    except (OSError, UnicodeDecodeError, csv.Error) as problem:
        raise DataError(f"{path} cannot be read: {problem}") from problem
    found: dict[str, Any] = {}
    name: str | None = None
    for number, line in enumerate(lines, 1):
        cells = [cell.strip() for cell in line]
        while cells and not cells[-1]:  # spreadsheets fill short rows up
            cells.pop()
        if not cells:
            name = None
        elif name is None:
            name = cells[0]
            if len(cells) > 1 or name not in _KNOWN or name in found:
                raise DataError(
                    f"line {number}: {name[:_LONGEST]!r} begins no block; give each of {', '.join(_KNOWN)} once"
                )
            found[name] = []
        else:
            found[name].append(cells if name in ("tokens", "mask") else [_number(cell, number) for cell in cells])
    for single in ("tokens", "mask"):
        if single in found:
            flat = [cell for row in found[single] for cell in row]
            found[single] = flat if single == "tokens" else "".join(flat)
    return found


def _number(cell: str, line: int) -> float:
    """A number as people type it, in either digits, with either minus."""
    try:
        return float(ascii_digits(cell).replace("−", "-"))
    except ValueError:
        raise DataError(f"line {line}: {cell[:_LONGEST]!r} is no number") from None
