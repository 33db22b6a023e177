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
from kotha.text.corpus.documents import OnProblem, field_names, read_records
from kotha.text.corpus.problems import Complaints, Errors, empty_field

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


@dataclass(frozen=True)
class TwoColumns:
    """The values of two columns, as many in one as in the other."""

    first: tuple[str, ...]
    second: tuple[str, ...]
    fields: tuple[str, str]
    guessed: bool  # whether the fields were not named but found


def read_two_columns(
    path: str | Path,
    named: Named,
    called: tuple[Message, Message],
    guess: Guess,
    *,
    fields: Sequence[str] | None = None,
    errors: Errors = "stop",
    on_problem: OnProblem | None = None,
) -> TwoColumns:
    """Read csv, tsv, jsonl or parquet; messages speak of the two as ``called``.

    ``fields`` are those to guess among, if that is already known. With ``errors="skip"`` rows without one of the two
    are left out.
    """
    first, second = named
    if first is not None and first == second:
        raise UsageError(
            "{first} and {second} cannot both be the field {field!r}; name two",
            first=called[0],
            second=called[1],
            field=first,
        )
    given = [field for field in named if field is not None]
    if len(given) < 2:
        given = list(dict.fromkeys([*given, *(fields or known_fields(path, called))]))
    rows = [
        (source, line, [value.strip() for value in values])
        for source, (values, line) in read_records([path], tuple(given), errors=errors, on_problem=on_problem)
    ]
    if not rows:
        raise DataError(
            "{path} holds no examples; give a table with a {first} and a {second} in each row",
            path=path,
            first=called[0],
            second=called[1],
        )
    if first is None or second is None:
        first, second = guess({field: [row[place] for _, _, row in rows] for place, field in enumerate(given)}, named)
    firsts: list[str] = []
    seconds: list[str] = []
    for source, line, row in rows:
        left, right = row[given.index(first)], row[given.index(second)]
        if left and right:
            firsts.append(left)
            seconds.append(right)
        else:
            empty = second if left else first
            Complaints(source, errors, on_problem).report(empty_field(empty), line=line, field=empty)
    if not firsts:
        raise DataError(
            "{path}: every row lacks its {first} or its {second}", path=path, first=called[0], second=called[1]
        )
    return TwoColumns(tuple(firsts), tuple(seconds), (first, second), guessed=None in named)


def known_fields(path: str | Path, called: tuple[Message, Message]) -> list[str]:
    """The names that the columns of a table have: two or more."""
    names = field_names(path)
    if len(names) < 2:
        raise DataError(
            "{path} has no fields to tell a {first} from its {second}; give csv, tsv or jsonl with both in "
            "each row, or name the columns of a file without a header by their numbers",
            path=path,
            first=called[0],
            second=called[1],
        )
    return names
