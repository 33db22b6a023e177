"""Read two related columns of a table, such as text and label or sentence and translation.

All rows are read in order. A row that lacks one of the two values is reported like an invalid row. If a column is not
named, a function supplied by the caller guesses it.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar, Self

from kotha.errors import DataError, UsageError
from kotha.i18n.message import Message
from kotha.text.choices import Errors
from kotha.text.corpus.documents import field_names, read_records
from kotha.text.corpus.problems import OnProblem, ProblemReporter, empty_field

Named = tuple[str | None, str | None]
Columns = dict[str, list[str]]
Guess = Callable[[Columns, Named], tuple[str, str]]
"""Completes the named fields from the columns; raises a DataError if no column fits."""


@dataclass(frozen=True)
class ColumnTable:
    """Tuples of equal length, whose names are in ``columns``."""

    columns: ClassVar[tuple[str, ...]]

    def __len__(self) -> int:
        return len(getattr(self, self.columns[0]))

    def chosen(self, indexes: Sequence[int]) -> Self:
        """Return the rows at these indices."""
        return replace(self, **{name: tuple(getattr(self, name)[row] for row in indexes) for name in self.columns})


def read_two_columns(
    path: str | Path,
    named: Named,
    called: tuple[Message, Message],
    guess: Guess,
    *,
    among: Callable[[list[str]], list[str]] = list,
    errors: Errors = "stop",
    on_problem: OnProblem | None = None,
) -> tuple[list[str], list[str], tuple[str, str]]:
    """Return the values and fields of two columns of csv, tsv, jsonl or parquet; ``called`` names both in messages.

    ``among`` selects the fields to guess from. With ``errors="skip"``, rows without one of the values are skipped.
    """
    values = {"path": path, "first": called[0], "second": called[1]}
    given = [field for field in named if field is not None]
    if len(set(given)) < len(given):
        raise UsageError(
            "{first} and {second} cannot both be the field {field!r}; choose two different fields",
            field=given[0],
            **values,
        )
    if len(given) < 2:
        names = field_names(path)
        if len(names) < 2:
            raise DataError(
                "{path} has no separate fields for {first} and {second}; use csv, tsv or jsonl with both in each "
                "row, or column numbers if the file has no header",
                **values,
            )
        given = list(dict.fromkeys([*given, *among(names)]))
    rows = [
        (source, line, dict(zip(given, map(str.strip, cells), strict=True)))
        for source, (cells, line) in read_records([path], tuple(given), errors=errors, on_problem=on_problem)
    ]
    fields = given[0], given[1]
    if rows and None in named:
        fields = guess({field: [row[field] for _, _, row in rows] for field in given}, named)
    pairs: list[tuple[str, str]] = []
    for source, line, row in rows:
        empty = next((field for field in fields if not row[field]), None)
        if empty is None:
            pairs.append((row[fields[0]], row[fields[1]]))
        else:
            ProblemReporter(source, errors, on_problem).report(empty_field(empty), line=line, field=empty)
    if not pairs:
        raise DataError("{path} contains no examples; use a table with a {first} and a {second} in each row", **values)
    return [first for first, _ in pairs], [second for _, second in pairs], fields
