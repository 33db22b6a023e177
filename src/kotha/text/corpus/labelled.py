"""Texts with a label each, out of a table: which field is which is guessed where nobody says it.

The label is the field that is called so, or the one with the fewest different values; the text is the longest of the
others. What was guessed is part of the answer, so that it can be said.
"""

import unicodedata
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from kotha.errors import DataError
from kotha.i18n.message import Message
from kotha.text.choices import Errors
from kotha.text.corpus.columns import Columns, ColumnTable, Named, read_two_columns
from kotha.text.corpus.problems import OnProblem

_CALLED = (Message("text"), Message("label"))
_LABEL_NAMES = ("label", "labels", "class", "category", "sentiment", "emotion", "topic", "target")
# More different values than this, or than a share of the rows, and a field is no label.
_MOST_CLASSES, _MOST_SHARE = 200, 0.5


@dataclass(frozen=True)
class LabelledTexts(ColumnTable):
    """Texts and their labels, and the fields that they came from."""

    columns = ("texts", "labels")

    texts: tuple[str, ...]
    labels: tuple[str, ...]
    text_field: str = "text"
    label_field: str = "label"
    guessed: bool = False  # whether the fields were not named but found


def read_labelled(
    path: str | Path,
    text_field: str | None = None,
    label_field: str | None = None,
    *,
    errors: Errors = "stop",
    on_problem: OnProblem | None = None,
) -> LabelledTexts:
    """Read csv, tsv, jsonl or parquet; a field that is not named is guessed.

    A row without a text or a label is a problem as a broken one is: with ``errors="skip"`` it is left out. Labels that
    differ only in how their letters are put together are one (Unicode's NFC).

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     file = Path(folder) / "a.csv"
    ...     _ = file.write_text("id,said,mood\\n1,What a day,good\\n2,Oh no,bad\\n3,All is well,good\\n4,A pity,bad\\n")
    ...     found = read_labelled(file)
    >>> found.text_field, found.label_field, found.labels
    ('said', 'mood', ('good', 'bad', 'good', 'bad'))
    """
    named = (text_field, label_field)
    guess = partial(_guess, path)
    texts, labels, fields = read_two_columns(path, named, _CALLED, guess, errors=errors, on_problem=on_problem)
    labels = [unicodedata.normalize("NFC", label) for label in labels]
    return LabelledTexts(tuple(texts), tuple(labels), *fields, guessed=None in named)


def _guess(path: str | Path, columns: Columns, named: Named) -> tuple[str, str]:
    """Which field is the text and which the label, as far as they are not named."""
    text, label = named
    n_rows = len(next(iter(columns.values())))
    if label is None:
        kinds = {name: len(set(values)) for name, values in columns.items() if name != text}
        most = min(_MOST_CLASSES, max(2, int(_MOST_SHARE * n_rows)))
        called = [name for name in kinds if name.lower() in _LABEL_NAMES]
        few = sorted((count, -place, name) for place, (name, count) in enumerate(kinds.items()) if 1 < count <= most)
        if not called and not few:
            raise DataError(
                "no field of {path} has few enough distinct values to be the label ({counts}); name the label field",
                path=path,
                counts=[Message("{name}: {n:,}", name=name, n=n) for name, n in kinds.items()],
            )
        label = called[0] if called else few[0][2]
    if text is None:
        text = max((name for name in columns if name != label), key=lambda name: sum(map(len, columns[name])))
    return text, label
