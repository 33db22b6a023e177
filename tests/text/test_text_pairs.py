"""Tables of text pairs: guessed and named fields, both directions, rows with a missing value."""

from pathlib import Path

import pytest

from kotha.errors import CorpusError, KothaError, UsageError
from kotha.text.corpus.pairs import read_text_pairs
from kotha.text.corpus.problems import CorpusProblem

ROWS = [("I eat rice", "আমি ভাত খাই"), ('She said "go"', "সে বলল যাও"), ("The river is wide", "নদী চওড়া")]


def write(file: Path, text: str) -> Path:
    file.write_text(text, encoding="utf-8")
    return file


def as_tsv(*header: str) -> str:
    return "\n".join(["\t".join(header), *("\t".join((str(n), *row)) for n, row in enumerate(ROWS))])


@pytest.mark.parametrize("ending", ["csv", "tsv", "jsonl"])
def test_fields_are_guessed_in_the_order_of_the_table(tmp_path: Path, ending: str) -> None:
    text = as_tsv("id", "en", "bn")
    if ending == "csv":
        text = "id,en,bn\n" + "".join(f'{n},"{a.replace(chr(34), chr(34) * 2)}",{b}\n' for n, (a, b) in enumerate(ROWS))
    elif ending == "jsonl":
        lines = (f'{{"id": {n}, "en": "{a.replace(chr(34), "")}", "bn": "{b}"}}' for n, (a, b) in enumerate(ROWS))
        text = "\n".join(lines)
    found = read_text_pairs(write(tmp_path / f"a.{ending}", text))
    assert (found.source_field, found.target_field, found.guessed) == ("en", "bn", True)
    assert found.targets == tuple(target for _, target in ROWS)
    back = found.reversed
    assert (back.source_field, back.sources, back.targets) == ("bn", found.targets, found.sources)
    assert back.chosen([2]).sources == ("নদী চওড়া",)


def test_fields_with_known_names_come_first(tmp_path: Path) -> None:
    found = read_text_pairs(write(tmp_path / "a.tsv", as_tsv("id", "target", "source")))
    assert (found.source_field, found.sources[0]) == ("source", "আমি ভাত খাই")


def test_a_file_without_a_header_loses_no_pair(tmp_path: Path) -> None:
    text = "I eat rice every day\tআমি রোজ ভাত খাই\nYou go home\tতুমি বাড়ি যাও\n"
    found = read_text_pairs(write(tmp_path / "a.tsv", text))
    assert (found.source_field, found.target_field, len(found)) == ("1", "2", 2)
    assert read_text_pairs(tmp_path / "a.tsv", "2", "1").sources[1] == "তুমি বাড়ি যাও"


def test_named_fields_are_used_and_missing_ones_guessed(tmp_path: Path) -> None:
    file = write(tmp_path / "a.tsv", as_tsv("id", "en", "bn"))
    assert read_text_pairs(file, "bn", "en").sources[0] == "আমি ভাত খাই"
    assert read_text_pairs(file, "bn").target_field == "en"
    assert not read_text_pairs(file, "bn", "en").guessed
    with pytest.raises(UsageError, match="source and target cannot both be the field 'en'"):
        read_text_pairs(file, "en", "en")
    with pytest.raises(CorpusError, match="no field 'de' among id, en, bn"):
        read_text_pairs(file, "en", "de")


def test_rows_without_a_value_raise_or_are_skipped(tmp_path: Path) -> None:
    file = write(tmp_path / "a.tsv", "en\tbn\none\tএক\ntwo\t \n\nthree\tতিন\n")
    with pytest.raises(CorpusError, match=r"a\.tsv, line 3: the field 'bn' is empty; fix the input"):
        read_text_pairs(file)
    heard: list[CorpusProblem] = []
    found = read_text_pairs(file, errors="skip", on_problem=heard.append)
    assert found.sources == ("one", "three") and [each.line for each in heard] == [3]


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("a.tsv", "", r"a\.tsv: the file is empty; fix the input"),
        ("a.tsv", "en\none\n", "has no separate fields for source and target"),
        ("a.txt", "only a text", "has no separate fields for source and target"),
        ("a.jsonl", '{"text": "একটি"}', "has no separate fields for source and target"),
        ("a.tsv", "en\tbn\n", "contains no examples"),
        ("a.tsv", "en\tbn\none\n", "the row has 1 cells, but the first row has 2"),
        ("a.tsv", "en\tbn\n\tএক\n", "the field 'en' is empty"),
    ],
)
def test_invalid_tables_of_pairs_are_rejected(tmp_path: Path, name: str, text: str, message: str) -> None:
    with pytest.raises(KothaError, match=message):
        read_text_pairs(write(tmp_path / name, text))
