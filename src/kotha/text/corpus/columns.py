"""Two columns of a table that belong together: named, or guessed where nobody names them.

A text and its label, a sentence and its translation: both are read here, whole and in order. A row that lacks one of
its two values is a problem as a broken one is. Which columns are likely is for the caller to say.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from kotha.errors import DataError, UsageError
from kotha.i18n.message import Message, Option
from kotha.text.corpus.documents import OnProblem, field_names, read_records
from kotha.text.corpus.problems import CorpusProblem, Errors, empty_field

Named = tuple[str | None, str | None]
Columns = dict[str, list[str]]
Guess = Callable[[Columns, Named], tuple[str, str]]  # of all columns, those of which nobody named one or both
"""Raises a DataError where no column fits."""


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
    rows: list[tuple[str, ...]] = []
    places: list[tuple[str, int]] = []
    for source, (values, line) in read_records([path], tuple(given), errors=errors, on_problem=on_problem):
        rows.append(tuple(value.strip() for value in values))
        places.append((source, line))
    if not rows:
        raise DataError(
            "{path} holds no examples; give a table with a {first} and a {second} in each row",
            path=path,
            first=called[0],
            second=called[1],
        )
    if first is None or second is None:
        first, second = guess({field: [row[place] for row in rows] for place, field in enumerate(given)}, named)
    at = given.index(first), given.index(second)
    whole: list[tuple[str, str]] = []
    for row, (source, line) in zip(rows, places, strict=True):
        values = row[at[0]], row[at[1]]
        if all(values):
            whole.append(values)
            continue
        empty = first if not values[0] else second
        problem = CorpusProblem(source, empty_field(empty), line=line, field=empty)
        if on_problem is not None:
            on_problem(problem)
        if errors == "stop":
            skip = Option("errors", "skip")
            raise DataError("{problem}; fill it, or leave such rows out with {skip}", problem=problem, skip=skip)
    if not whole:
        raise DataError(
            "{path}: every row lacks its {first} or its {second}", path=path, first=called[0], second=called[1]
        )
    firsts, seconds = zip(*whole, strict=True)
    return TwoColumns(firsts, seconds, (first, second), guessed=None in named)


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
