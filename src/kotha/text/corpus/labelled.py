"""Read labelled texts from a table; fields that are not named are guessed.

The label is the field with a common name (such as ``label``), or else the field with the fewest distinct values. The
text is the longest of the other fields. The result states the fields and whether they were guessed.
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
# A field with more distinct values than this, or than this share of the rows, is not a label.
_MOST_CLASSES, _MOST_SHARE = 200, 0.5


@dataclass(frozen=True)
class LabelledTexts(ColumnTable):
    """Texts, their labels, and the fields they were read from."""

    columns = ("texts", "labels")

    texts: tuple[str, ...]
    labels: tuple[str, ...]
    text_field: str = "text"
    label_field: str = "label"
    guessed: bool = False  # whether a field was guessed


def read_labelled(
    path: str | Path,
    text_field: str | None = None,
    label_field: str | None = None,
    *,
    errors: Errors = "stop",
    on_problem: OnProblem | None = None,
) -> LabelledTexts:
    """Read labelled texts from csv, tsv, jsonl or parquet; fields that are not named are guessed.

    A row without a text or a label raises an error, or is skipped if ``errors="skip"``. Labels are normalized to NFC,
    so different encodings of a label count as one.

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
    """Return the text and label fields; those not named are guessed."""
    text, label = named
    n_rows = len(next(iter(columns.values())))
    if label is None:
        counts = {name: len(set(values)) for name, values in columns.items() if name != text}
        most = min(_MOST_CLASSES, max(2, int(_MOST_SHARE * n_rows)))
        by_name = [name for name in counts if name.lower() in _LABEL_NAMES]
        few = sorted((count, -index, name) for index, (name, count) in enumerate(counts.items()) if 1 < count <= most)
        if not by_name and not few:
            raise DataError(
                "no field of {path} has few enough distinct values to be the label ({counts}); name the label field",
                path=path,
                counts=[Message("{name}: {n:,}", name=name, n=n) for name, n in counts.items()],
            )
        label = by_name[0] if by_name else few[0][2]
    if text is None:
        text = max((name for name in columns if name != label), key=lambda name: sum(map(len, columns[name])))
    return text, label
