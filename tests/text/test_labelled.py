"""Labelled texts: guessed and named fields, rows without a value."""

from pathlib import Path

import pytest

from kotha.errors import CorpusError, DataError
from kotha.text.corpus.labelled import read_labelled
from kotha.text.corpus.problems import CorpusProblem

ROWS = [("নদীর ধারে একটি গ্রাম", "ক"), ("শহরের পথে অনেক মানুষ", "খ"), ("মাঠে ধান", "ক"), ("বাজারে মাছ আছে", "খ")]


def write(file: Path, text: str) -> Path:
    file.write_text(text, encoding="utf-8")
    return file


@pytest.mark.parametrize("ending", ["csv", "tsv", "jsonl"])
def test_fields_are_guessed_and_reported(tmp_path: Path, ending: str) -> None:
    if ending == "jsonl":
        lines = [
            f'{{"n": {n}, "site": "x", "body": "{text}", "kind": "{kind}"}}' for n, (text, kind) in enumerate(ROWS)
        ]
    else:
        mark = "," if ending == "csv" else "\t"
        lines = [mark.join(("n", "site", "body", "kind"))]
        lines += [mark.join((str(n), "x", *row)) for n, row in enumerate(ROWS)]
    found = read_labelled(write(tmp_path / f"a.{ending}", "\n".join(lines)))
    assert (found.text_field, found.label_field, found.guessed) == ("body", "kind", True)
    assert list(zip(found.texts, found.labels, strict=True)) == ROWS


def test_a_field_called_label_is_the_label(tmp_path: Path) -> None:
    rows = "".join(
        f'{{"text": "{text}", "label": {n % 3}, "source": "x{n % 2}"}}\n' for n, (text, _) in enumerate(ROWS)
    )
    found = read_labelled(write(tmp_path / "a.jsonl", rows))
    assert (found.label_field, found.labels) == ("label", ("0", "1", "2", "0")), "numbers are names too"


def test_named_fields_are_used_and_missing_ones_guessed(tmp_path: Path) -> None:
    file = write(tmp_path / "a.csv", "a,b,c\nx,long text,1\ny,other text,2\nx,more text,1\ny,text,2\n")
    assert read_labelled(file, "b", "a").labels == ("x", "y", "x", "y")
    assert read_labelled(file, label_field="c").text_field == "b"
    bare = write(tmp_path / "b.csv", "x,one\ny,two\n")
    assert read_labelled(bare, "2", "1").texts == ("one", "two")
    with pytest.raises(
        CorpusError, match=r"no field '[12]' among .*; if the file has no header, use the column number"
    ):
        read_labelled(file, "2", "a")
    with pytest.raises(CorpusError, match="b2"):
        read_labelled(file, "b2", "a")


def test_rows_without_a_label_raise_or_are_skipped(tmp_path: Path) -> None:
    file = write(tmp_path / "a.csv", "said,mood\none,x\ntwo,\nthree,y\n")
    with pytest.raises(CorpusError, match=r"a\.csv, line 3: the field 'mood' is empty; fix the input"):
        read_labelled(file, "said", "mood")
    heard: list[CorpusProblem] = []
    found = read_labelled(file, "said", "mood", errors="skip", on_problem=heard.append)
    assert found.texts == ("one", "three") and [each.line for each in heard] == [3]


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("a.txt", "only a text", "has no separate fields for text and label"),
        ("a.csv", "text\none\n", "has no separate fields for text and label"),
        ("a.csv", "text,id\n" + "".join(f"t{n},{n}\n" for n in range(9)), "name the label field"),
        ("a.csv", "text,label\n", "contains no examples"),
    ],
)
def test_invalid_tables_of_labels_are_rejected(tmp_path: Path, name: str, text: str, message: str) -> None:
    with pytest.raises(DataError, match=message):
        read_labelled(write(tmp_path / name, text))


def test_labels_are_compared_in_nfc(tmp_path: Path) -> None:
    whole, apart = "\u09dfব", "\u09af\u09bcব"  # য় as one code point, and as য with a nukta
    rows = "".join(f"text {number},{label}\n" for number, label in enumerate((whole, apart, "খ", whole)))
    found = read_labelled(write(tmp_path / "a.csv", "text,label\n" + rows))
    assert found.labels == (apart, apart, "খ", apart)
