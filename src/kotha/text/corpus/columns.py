"""Two columns of a table that belong together: named, or guessed where nobody names them.

A text and its label, a sentence and its translation: both are read here, whole and in order. A row that lacks one of
its two values is a problem as a broken one is. Which columns are likely is for the caller to say.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar, Self

from kotha.errors import DataError, UsageError
from kotha.i18n.message import Message
from kotha.text.choices import Errors
from kotha.text.corpus.documents import field_names, read_records
from kotha.text.corpus.problems import Complaints, OnProblem, empty_field

Named = tuple[str | None, str | None]
Columns = dict[str, list[str]]
Guess = Callable[[Columns, Named], tuple[str, str]]  # of all columns, those of which nobody named one or both
"""Raises a DataError where no column fits."""


@dataclass(frozen=True)
class ColumnTable:
    """Columns of one length: the tuples that a class names in ``columns``."""

    columns: ClassVar[tuple[str, ...]]

    def __len__(self) -> int:
        return len(getattr(self, self.columns[0]))

    def chosen(self, places: Sequence[int]) -> Self:
        """Some of the rows, by their places."""
        return replace(self, **{name: tuple(getattr(self, name)[at] for at in places) for name in self.columns})


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
    """The values of two columns of csv, tsv, jsonl or parquet, and their fields; messages call the two ``called``.

    ``among`` says which of all fields to guess among. With ``errors="skip"`` rows without one of the two are left out.
    """
    values = {"path": path, "first": called[0], "second": called[1]}
    given = [field for field in named if field is not None]
    if len(set(given)) < len(given):
        raise UsageError(
            "{first} and {second} cannot both be the field {field!r}; name two different fields",
            field=given[0],
            **values,
        )
    if len(given) < 2:
        names = field_names(path)
        if len(names) < 2:
            raise DataError(
                "{path} has no separate fields for {first} and {second}; give csv, tsv or jsonl with both in "
                "each row, or the column numbers of a file without a header",
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
            Complaints(source, errors, on_problem).report(empty_field(empty), line=line, field=empty)
    if not pairs:
        raise DataError("{path} contains no examples; give a table with a {first} and a {second} in each row", **values)
    return [first for first, _ in pairs], [second for _, second in pairs], fields
