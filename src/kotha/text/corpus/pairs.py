"""A table of translations: which field is the source and which the target is guessed where nobody says it.

Fields that are called so are taken; else the two that hold the most letters, in the order of the table. A csv or tsv
file whose first row reads like sentences has no header, and its columns are taken by number. What was guessed is part
of the answer, so that it can be said.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from kotha.i18n.message import Message
from kotha.text.choices import Errors
from kotha.text.corpus.columns import Columns, ColumnTable, Named, read_two_columns
from kotha.text.corpus.problems import OnProblem
from kotha.text.corpus.sources import kind_of

_SOURCE_NAMES = ("source", "src", "source_text", "input")
_TARGET_NAMES = ("target", "tgt", "target_text", "output", "translation", "reference")
_CALLED = (Message("source"), Message("target"))
# A name with more words than this is no name of a column but a sentence.
_MOST_WORDS = 3


@dataclass(frozen=True)
class TextPairs(ColumnTable):
    """Sources and their targets, and the fields that they came from."""

    columns = ("sources", "targets")

    sources: tuple[str, ...]
    targets: tuple[str, ...]
    source_field: str = "source"
    target_field: str = "target"
    guessed: bool = False  # whether the fields were not named but found

    @property
    def reversed(self) -> "TextPairs":
        """The other direction."""
        return TextPairs(self.targets, self.sources, self.target_field, self.source_field, self.guessed)


def read_text_pairs(
    path: str | Path,
    source_field: str | None = None,
    target_field: str | None = None,
    *,
    errors: Errors = "stop",
    on_problem: OnProblem | None = None,
) -> TextPairs:
    """Read csv, tsv, jsonl or parquet; a field that is not named is guessed.

    A row without a source or a target is a problem as a broken one is: with ``errors="skip"`` it is left out.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     file = Path(folder) / "a.tsv"
    ...     _ = file.write_text("id\\ten\\tbn\\n1\\tI eat\\tআমি খাই\\n2\\tYou go\\tতুমি যাও\\n", encoding="utf-8")
    ...     found = read_text_pairs(file)
    >>> found.source_field, found.target_field, found.targets
    ('en', 'bn', ('আমি খাই', 'তুমি যাও'))
    """
    named = (source_field, target_field)
    among = partial(_fields, path, named)
    how: Any = {"among": among, "errors": errors, "on_problem": on_problem}
    sources, targets, fields = read_two_columns(path, named, _CALLED, _guess, **how)
    return TextPairs(tuple(sources), tuple(targets), *fields, guessed=None in named)


def _fields(path: str | Path, named: Named, names: list[str]) -> list[str]:
    """The columns to guess among: no more than have to be read."""
    has_header = all(len(name.split()) <= _MOST_WORDS for name in names)
    if not has_header and kind_of(str(path))[0] in ("csv", "tsv"):
        return [str(number) for number in range(1, len(names) + 1)]
    known = _called(names, _SOURCE_NAMES), _called(names, _TARGET_NAMES)
    return [name for name in known if name] if all(known) and named == (None, None) else names


def _guess(columns: Columns, named: Named) -> tuple[str, str]:
    """Which field is the source and which the target, as far as they are not named."""
    free = [name for name in columns if name not in named]
    source = named[0] or _called(free, _SOURCE_NAMES)
    target = named[1] or _called([name for name in free if name != source], _TARGET_NAMES)
    rest = sorted(set(free) - {source, target}, key=lambda name: (-sum(map(len, columns[name])), free.index(name)))
    longest = iter(sorted(rest[: (source is None) + (target is None)], key=free.index))
    return source or next(longest), target or next(longest)


def _called(names: Sequence[str], known: Sequence[str]) -> str | None:
    """The one of the names that is best known, if one is."""
    return min(
        (name for name in names if name.lower() in known), key=lambda name: known.index(name.lower()), default=None
    )
