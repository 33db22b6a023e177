"""Texts with a label each, out of a table: which field is which is guessed where nobody says it.

The label is the field that is called so, or the one with the fewest different values; the text is the longest of the
others. What was guessed is part of the answer, so that it can be said.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from kotha.errors import DataError, UsageError
from kotha.text.corpus.documents import OnProblem, field_names, read_records
from kotha.text.corpus.problems import CorpusProblem, Errors
from kotha.text.corpus.records import is_column_number

_LABEL_NAMES = ("label", "labels", "class", "category", "sentiment", "emotion", "topic", "target")
# More different values than this, or than a share of the rows, and a field is no label.
_MOST_CLASSES, _MOST_SHARE = 200, 0.5


@dataclass(frozen=True)
class LabelledTexts:
    """Texts and their labels, and the fields that they came from."""

    texts: tuple[str, ...]
    labels: tuple[str, ...]
    text_field: str = "text"
    label_field: str = "label"
    guessed: bool = False  # whether the fields were not named but found

    def __len__(self) -> int:
        return len(self.texts)

    def chosen(self, places: Sequence[int]) -> "LabelledTexts":
        """Some of them, by their places."""
        texts, labels = (tuple(all_[place] for place in places) for all_ in (self.texts, self.labels))
        return LabelledTexts(texts, labels, self.text_field, self.label_field, self.guessed)


def read_labelled(
    path: str | Path,
    text_field: str | None = None,
    label_field: str | None = None,
    *,
    errors: Errors = "stop",
    on_problem: OnProblem | None = None,
) -> LabelledTexts:
    """Read csv, tsv, jsonl or parquet; a field that is not named is guessed.

    A row without a text or a label is a problem as a broken one is: with ``errors="skip"`` it is left out.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     file = Path(folder) / "a.csv"
    ...     _ = file.write_text("id,said,mood\\n1,What a day,good\\n2,Oh no,bad\\n3,All is well,good\\n4,A pity,bad\\n")
    ...     found = read_labelled(file)
    >>> found.text_field, found.label_field, found.labels
    ('said', 'mood', ('good', 'bad', 'good', 'bad'))
    """
    named = [field for field in (text_field, label_field) if field is not None]
    if len(named) == 2 and is_column_number(named[0]) != is_column_number(named[1]):
        raise UsageError(f"fields {named[0]!r} and {named[1]!r}: give both by name or both by number")
    fields = tuple(named) if len(named) == 2 else tuple(dict.fromkeys([*named, *_known_fields(path)]))
    rows: list[tuple[str, ...]] = []
    places: list[tuple[str, int]] = []
    for source, (values, line) in read_records([path], fields, errors=errors, on_problem=on_problem):
        rows.append(tuple(value.strip() for value in values))
        places.append((source, line))
    if not rows:
        raise DataError(f"{path} holds no examples; give a table with a text and a label in each row")
    if len(named) < 2:
        text_field, label_field = _guess(path, fields, rows, text_field, label_field)
    assert text_field is not None and label_field is not None
    text, label = fields.index(text_field), fields.index(label_field)
    texts, labels = [], []
    for row, (source, line) in zip(rows, places, strict=True):
        blank = text_field if not row[text] else label_field if not row[label] else None
        if blank is None:
            texts.append(row[text])
            labels.append(row[label])
            continue
        problem = CorpusProblem(source, f"the field {blank!r} is empty", line=line)
        if on_problem is not None:
            on_problem(problem)
        if errors == "stop":
            raise DataError(f"{problem}; fill it, or leave such rows out with errors='skip'")
    if not texts:
        raise DataError(f"{path}: every row lacks its text or its label")
    return LabelledTexts(tuple(texts), tuple(labels), text_field, label_field, guessed=len(named) < 2)


def _known_fields(path: str | Path) -> list[str]:
    names = field_names(path)
    if len(names) < 2:
        raise DataError(
            f"{path} has no fields to tell a text from its label; give csv, tsv or jsonl with both in each row, or "
            "name the columns of a file without a header by their numbers"
        )
    return names


def _guess(
    path: str | Path, fields: Sequence[str], rows: Sequence[Sequence[str]], text: str | None, label: str | None
) -> tuple[str, str]:
    """Which field is the text and which the label, as far as they are not named."""
    columns = {field: [row[place] for row in rows] for place, field in enumerate(fields)}
    if label is None:
        kinds = {name: len(set(values)) for name, values in columns.items() if name != text}
        most = min(_MOST_CLASSES, max(2, int(_MOST_SHARE * len(rows))))
        called = [name for name in kinds if name.lower() in _LABEL_NAMES]
        few = sorted((count, -place, name) for place, (name, count) in enumerate(kinds.items()) if 1 < count <= most)
        if not called and not few:
            raise DataError(
                f"no field of {path} has few different values ({', '.join(f'{k}: {n:,}' for k, n in kinds.items())}), "
                "so none can be the label; name its field"
            )
        label = called[0] if called else few[0][2]
    if text is None:
        text = max((name for name in columns if name != label), key=lambda name: sum(map(len, columns[name])))
    return text, label
