"""Read text pairs (translations) from a table; source and target fields that are not named are guessed.

Fields with common names (such as ``source``) are used; if there are none, the two fields with the most characters are
used, in table order. If the first row of a csv or tsv file looks like sentences, the file is read without a header, and
its columns are numbered. The result states the fields and whether they were guessed.
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
# A header cell with more words than this is a sentence, not a column name.
_MOST_WORDS = 3


@dataclass(frozen=True)
class TextPairs(ColumnTable):
    """Sources, their targets, and the fields they were read from."""

    columns = ("sources", "targets")

    sources: tuple[str, ...]
    targets: tuple[str, ...]
    source_field: str = "source"
    target_field: str = "target"
    guessed: bool = False  # whether a field was guessed

    @property
    def reversed(self) -> "TextPairs":
        """Return the pairs with source and target swapped."""
        return TextPairs(self.targets, self.sources, self.target_field, self.source_field, self.guessed)


def read_text_pairs(
    path: str | Path,
    source_field: str | None = None,
    target_field: str | None = None,
    *,
    errors: Errors = "stop",
    on_problem: OnProblem | None = None,
) -> TextPairs:
    """Read text pairs from csv, tsv, jsonl or parquet; fields that are not named are guessed.

    A row without a source or a target raises an error, or is skipped if ``errors="skip"``.

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
    options: Any = {"among": among, "errors": errors, "on_problem": on_problem}
    sources, targets, fields = read_two_columns(path, named, _CALLED, _guess, **options)
    return TextPairs(tuple(sources), tuple(targets), *fields, guessed=None in named)


def _fields(path: str | Path, named: Named, names: list[str]) -> list[str]:
    """Return the columns needed to guess the fields."""
    has_header = all(len(name.split()) <= _MOST_WORDS for name in names)
    if not has_header and kind_of(str(path))[0] in ("csv", "tsv"):
        return [str(number) for number in range(1, len(names) + 1)]
    known = _best_known(names, _SOURCE_NAMES), _best_known(names, _TARGET_NAMES)
    return [name for name in known if name] if all(known) and named == (None, None) else names


def _guess(columns: Columns, named: Named) -> tuple[str, str]:
    """Return the source and target fields; those not named are guessed."""
    free = [name for name in columns if name not in named]
    source = named[0] or _best_known(free, _SOURCE_NAMES)
    target = named[1] or _best_known([name for name in free if name != source], _TARGET_NAMES)
    rest = sorted(set(free) - {source, target}, key=lambda name: (-sum(map(len, columns[name])), free.index(name)))
    longest = iter(sorted(rest[: (source is None) + (target is None)], key=free.index))
    return source or next(longest), target or next(longest)


def _best_known(names: Sequence[str], known: Sequence[str]) -> str | None:
    """Return the name that comes first in ``known``, or None."""
    return min(
        (name for name in names if name.lower() in known), key=lambda name: known.index(name.lower()), default=None
    )
