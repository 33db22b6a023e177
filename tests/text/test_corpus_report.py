"""The statistics of ``inspect_corpus`` for a corpus small enough to count by hand."""

import json
from pathlib import Path

import pytest

from kotha.errors import CorpusError
from kotha.text.corpus.problems import CorpusProblem
from kotha.text.corpus.report import CorpusReport, inspect_corpus
from kotha.text.tokenizer import card
from kotha.text.tokenizer.trainers import train


def write(folder: Path, *lines: str) -> Path:
    path = folder / "a.jsonl"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def of(path: Path, **options: object) -> CorpusReport:
    return inspect_corpus([path], **options)  # type: ignore[arg-type]


def test_the_numbers_by_hand(tmp_path):
    path = write(tmp_path, '"কথা বলো"', '"কথা  বলো "', '"abc"', "{", '"মই ৰাতিপুৱা"')
    problems: list[CorpusProblem] = []
    sizes_read: list[int] = []
    report = of(path, on_problem=problems.append, on_bytes=sizes_read.append)
    assert (report.files, report.documents, report.words, report.duplicates) == (1, 4, 7, 1)
    assert report.characters == 7 + 9 + 3 + 11
    assert report.bytes == (6 * 3 + 1) + (6 * 3 + 3) + 3 + (10 * 3 + 1)
    assert (report.shortest_characters, report.median_characters, report.longest_characters) == (3, 7, 11)
    assert (report.language, report.language_share) == ("bn", 0.5)
    assert report.script_shares == {"Bengali": 22 / 25, "Latin": 3 / 25}
    assert report.problems == len(problems) == 1
    assert report.first_problems == [str(problems[0])]
    assert "line 4: not valid JSON" in report.first_problems[0]
    assert sum(sizes_read) == path.stat().st_size


def test_words_are_counted_as_in_a_tokenizer_card(tmp_path):
    text = "র‍্যাবের কর্মকর্তা, ক্ষমা — ২০২৪! মা-বাবা"  # 6: a dash counts, a hyphen does not split
    counted = card.measure("letters", train([text], "char"), [text]).words
    assert of(write(tmp_path, json.dumps(text))).words == counted == 6


def test_the_keys_of_the_report(tmp_path):
    values = json.loads(json.dumps(of(write(tmp_path, '"ক"')).to_dict()))
    assert {"documents", "bytes", "characters", "words", "duplicates", "language_share"} <= values.keys()


def test_a_corpus_without_documents_is_all_zeros(tmp_path):
    report = of(write(tmp_path, "{}"))
    assert (report.documents, report.words, report.median_characters, report.language_share) == (0, 0, 0, 0.0)
    assert report.problems == 1


def test_other_languages_go_to_the_classifier(tmp_path):
    path = write(tmp_path, '"The river runs through the village and into the sea."', '"কথা"')
    assert of(path, language="en").language_share == 0.5


def test_the_median_of_one_document_is_its_length(tmp_path):
    (tmp_path / "a.txt").write_text("ক" * 1144, encoding="utf-8")
    report = inspect_corpus([tmp_path / "a.txt"])
    assert (report.shortest_characters, report.median_characters, report.longest_characters) == (1144, 1144, 1144)


def test_the_median_of_many_lengths_is_within_half_a_percent(tmp_path):
    lengths = range(5000, 105_000, 1000)
    report = of(write(tmp_path, *(f'"{"x" * length}"' for length in lengths)))
    assert report.median_characters == pytest.approx(54_000, rel=0.005)
    assert report.longest_characters == 104_000


def test_skipped_files_are_reported_once_and_only_the_first_problems_are_kept(tmp_path):
    write(tmp_path, *["{"] * 50)
    (tmp_path / "notes.pdf").write_text("x")
    report = of(tmp_path)
    assert (report.problems, len(report.first_problems)) == (51, 20)
    assert sum("notes.pdf" in problem for problem in report.first_problems) == 1


def test_stop_stops(tmp_path):
    with pytest.raises(CorpusError, match="line 1: not valid JSON"):
        of(write(tmp_path, "{"), errors="stop")
