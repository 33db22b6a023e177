"""Answer files: random sheets, the answer key, saved progress, and the table for a class."""

import csv
import io
import json
from pathlib import Path
from typing import Any

import pytest

from kotha.cli.main import main
from kotha.course.exercises.answer_file import AnswerFile, GivenAnswer, read, read_class
from kotha.course.exercises.selection import QuestionChoice
from kotha.course.exercises.tutor import answer_of
from kotha.errors import DataError


def type_in(monkeypatch: pytest.MonkeyPatch, *lines: str) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("".join(f"{line}\n" for line in lines)))


def answers(**choice: Any) -> dict[str, str]:
    """Return the lines to type for full marks, question by question."""
    questions = QuestionChoice(**choice).prepare()
    return {each.id: answer_of(each) or " ".join(str(words) for words in each.worked) for each in questions}


def test_no_two_students_have_the_same_sheet() -> None:
    typed = [json.dumps(answers(questions=wanted, seed=seed)) for wanted in ("1", "9") for seed in range(30)]
    assert len(set(typed)) == len(typed)
    assert answers(seed=3) == answers(seed=3) != answers()
    assert answers(seed=3, questions="12a") != answers(questions="12a"), "the flowchart has another order"


def test_the_key_answers_the_sheet(capsys: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    assert main(["inside", "exercise", "--seed", "31", "--key", "--json"]) == 0
    output = json.loads(capsys.readouterr().out)["questions"]
    typed = [each["answer"] or " ".join(each["worked"]) for each in output]
    type_in(monkeypatch, *typed)
    assert main(["inside", "exercise", "--seed", "31", "--json"]) == 0
    summary = json.loads(capsys.readouterr().out)
    assert (summary["points"], summary["possible"], summary["right"]) == (280, 260, 45)
    assert main(["inside", "exercise", "2", "--seed", "31", "--key", "--language", "bn"]) == 0
    assert "উত্তর:\n" in capsys.readouterr().out
    assert main(["inside", "exercise", "2", "--seed", "31", "--paper"]) == 0
    paper = capsys.readouterr().out
    assert "Compute Q × Kᵀ" in paper and "Answer" not in paper


def test_progress_is_saved_and_resumed(capsys: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    right, file = answers(questions="9", seed=8), str(tmp_path / "rahima.json")
    words = ["inside", "exercise", "9", "--seed", "8", "--progress", file, "--name", "রহিমা", "--json"]
    type_in(monkeypatch, right["9a-1"], "1")
    assert main(words) == 0
    first = json.loads(capsys.readouterr().out)
    assert (first["graded"], first["right"], first["ended_early"]) == (2, 1, True)
    type_in(monkeypatch, *[right[name] for name in list(right)[2:]])
    assert main(["inside", "exercise", "--progress", file, "--json"]) == 0
    second = json.loads(capsys.readouterr().out)
    assert (second["graded"], second["right"], second["ended_early"]) == (7, 6, False)
    record = read(Path(file))
    assert (record.name, record.choice.seed, len(record.answers)) == ("রহিমা", 8, 7)


@pytest.mark.parametrize(
    ("words", "wording"),
    [
        (["9", "--seed", "9"], "contains other questions (workshop, seed 8, 9)"),
        (["--name", "করিম"], "belongs to রহিমা, not to করিম"),
    ],
)
def test_progress_of_another_student_is_not_resumed(
    capsys: Any, tmp_path: Path, words: list[str], wording: str
) -> None:
    file = tmp_path / "rahima.json"
    AnswerFile("রহিমা", "en", QuestionChoice(questions="9", seed=8)).save(file)
    assert main(["inside", "exercise", *words, "--progress", str(file)]) == 2
    assert wording in capsys.readouterr().err


def test_flags_that_do_not_go_together(capsys: Any, tmp_path: Path) -> None:
    assert main(["inside", "exercise", "--key", "--progress", str(tmp_path / "x.json")]) == 2
    assert "--key and --paper do not ask questions" in capsys.readouterr().err
    assert main(["inside", "exercise", "--name", "x"]) == 2
    assert "specify one with --progress" in capsys.readouterr().err
    assert main(["inside", "exercise", "7", "--set", "assessment"]) == 2
    assert "use all, or a number from 1 to 6" in capsys.readouterr().err


def handed_in(folder: Path, name: str, seed: int, typed: dict[str, str]) -> Path:
    given = tuple(GivenAnswer(number, (answer,), 0) for number, answer in typed.items())
    AnswerFile(name, "en", QuestionChoice(questions="9", seed=seed), given).save(file := folder / f"{name}.json")
    return file


def test_a_class_in_one_table(capsys: Any, tmp_path: Path) -> None:
    right = answers(questions="9", seed=1)
    files = [
        handed_in(tmp_path, "mina", 1, right),
        handed_in(tmp_path, "raju", 1, right),
        handed_in(tmp_path, "=cmd()", 2, {"9b": "65536"}),
        handed_in(tmp_path, "রহিমা", 1, {**right, "9b": "1"}),
        tmp_path / "broken.json",
    ]
    files[-1].write_text("{", encoding="utf-8")
    rows = {row.name: row for row in read_class(files)}
    assert rows["mina"].percent == 100 and rows["raju"].note == "the same sheet and answers as mina"
    assert (rows["রহিমা"].right, rows["রহিমা"].asked, rows["রহিমা"].note) == (6, 7, "")
    assert rows["=cmd()"].note == "6 questions not reached" and rows["=cmd()"].points == 3
    names = [str(file) for file in files]
    table = tmp_path / "class.csv"
    assert main(["inside", "score", *names, "--csv", str(table)]) == 0
    output, remarks = capsys.readouterr()
    assert "25 / 25" in output and "is corrupted" in output and "who typed them" in output + remarks
    lines = list(csv.reader(io.StringIO(table.read_text(encoding="utf-8"))))
    assert lines[0][:3] == ["name", "sheet", "points"] and "9b" in lines[0] and len(lines) == 6
    assert "'=cmd()" in {line[0] for line in lines}, "names are not evaluated as formulas"
    assert main(["inside", "score", *names, "--json", "--language", "bn"]) == 0
    assert {row["name"] for row in json.loads(capsys.readouterr().out)} == set(rows)
    assert main(["inside", "score", *names, "--language", "bn"]) == 0
    output = capsys.readouterr().out
    assert "প্রশ্ন আর উত্তর হুবহু mina-এর মতো" in output and "৬টি প্রশ্নে পৌঁছানো হয়নি" in output
    assert main(["inside", "score", names[-1]]) == 1
    assert "is corrupted" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("change", "wording"),
    [
        ({"kind": "x"}, "not an answer file"),
        ({"version": 2}, "version 2"),
        ({"answers": [{"question": "9b", "tries": ["1", "2", "3"], "hints": 0}]}, "3 tries"),
        ({"answers": [{"question": "9b", "tries": [], "hints": 0}] * 2}, "contains the same question twice"),
        ({"answers": [{"question": "1Q", "tries": ["1"], "hints": 0}]}, "not asked: 1Q"),
        ({"choice": {"seed": "x"}}, "which questions were asked"),
        ({"choice": 3}, "incomplete or invalid"),
    ],
)
def test_an_invalid_answer_file_is_rejected(tmp_path: Path, change: dict[str, Any], wording: str) -> None:
    file = handed_in(tmp_path, "x", 1, {})
    file.write_text(json.dumps({**json.loads(file.read_text(encoding="utf-8")), **change}), encoding="utf-8")
    with pytest.raises(DataError, match=wording):
        read_class([file])
