"""Files of answers: drawn sheets, a key, progress, a signature and what it proves, a class in one table."""

import csv
import io
import json
from pathlib import Path
from typing import Any

import pytest

from kotha.cli.main import main
from kotha.course.exercises.choice import QuestionChoice
from kotha.course.exercises.record import AnswerFile, digest, is_sound, parse, read, save
from kotha.course.exercises.score import as_csv, read_class
from kotha.course.exercises.tutor import answer_of
from kotha.errors import DataError

PAGE_FILE = Path(__file__).parents[3] / "web/tests/data/score.json"
KEY = b"0123456789abcdef-of-the-teacher"


def type_in(monkeypatch: pytest.MonkeyPatch, *lines: str) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("".join(f"{line}\n" for line in lines)))


@pytest.fixture
def key(tmp_path: Path) -> Path:
    path = tmp_path / "class.key"
    path.write_bytes(KEY)
    return path


def answers(**choice: Any) -> dict[str, str]:
    """What to type for full marks, question by question."""
    questions = QuestionChoice(**choice).prepare()
    return {each.id: answer_of(each) or " ".join(str(words) for words in each.worked) for each in questions}


def test_no_two_students_have_the_same_sheet() -> None:
    typed = [json.dumps(answers(wanted=wanted, seed=seed)) for wanted in ("1", "9") for seed in range(30)]
    assert len(set(typed)) == len(typed)
    assert answers(seed=3) == answers(seed=3) != answers()
    assert answers(seed=3, wanted="12a") != answers(wanted="12a"), "the flowchart is shuffled anew too"


def test_the_key_answers_the_sheet(capsys: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    assert main(["inside", "exercise", "--seed", "31", "--key", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)["questions"]
    typed = [each["answer"] or " ".join(each["worked"]) for each in told]
    type_in(monkeypatch, *typed)
    assert main(["inside", "exercise", "--seed", "31", "--json"]) == 0
    summary = json.loads(capsys.readouterr().out)
    assert (summary["points"], summary["possible"], summary["right"]) == (280, 260, 45)
    assert main(["inside", "exercise", "2", "--seed", "31", "--key", "--language", "bn"]) == 0
    assert "উত্তর:\n" in capsys.readouterr().out
    assert main(["inside", "exercise", "2", "--seed", "31", "--paper"]) == 0
    paper = capsys.readouterr().out
    assert "Compute Q × Kᵀ" in paper and "Answer" not in paper


def test_progress_is_kept_and_gone_on_with(capsys: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    right, file = answers(wanted="9", seed=8), str(tmp_path / "rahima.json")
    words = ["inside", "exercise", "9", "--seed", "8", "--progress", file, "--name", "রহিমা", "--json"]
    type_in(monkeypatch, right["9a-1"], "1")
    assert main(words) == 0
    first = json.loads(capsys.readouterr().out)
    assert (first["graded"], first["right"], first["ended_early"]) == (2, 1, True)
    type_in(monkeypatch, *[right[name] for name in list(right)[2:]])
    assert main(["inside", "exercise", "--progress", file, "--json"]) == 0
    second = json.loads(capsys.readouterr().out)
    assert (second["graded"], second["right"], second["ended_early"]) == (7, 6, False)
    record = parse(read(Path(file)))
    assert (record.name, record.choice.seed, len(record.answers)) == ("রহিমা", 8, 7)


@pytest.mark.parametrize(
    ("words", "wording"),
    [
        (["9", "--seed", "9"], "has other questions (workshop, seed 8, 9)"),
        (["--name", "করিম"], "is রহিমা's, not করিম's"),
        (["--key-file", "{short}"], "a key needs 16 or more"),
    ],
)
def test_another_s_progress_is_not_gone_on_with(capsys: Any, tmp_path: Path, words: list[str], wording: str) -> None:
    file, short = tmp_path / "rahima.json", tmp_path / "short"
    short.write_bytes(b"1234")
    save(AnswerFile("রহিমা", "en", QuestionChoice(wanted="9", seed=8)), file)
    words = [word.format(short=short) for word in words]
    assert main(["inside", "exercise", *words, "--progress", str(file)]) == 2
    assert wording in capsys.readouterr().err


def test_flags_that_do_not_go_together(capsys: Any, tmp_path: Path) -> None:
    assert main(["inside", "exercise", "--key", "--progress", str(tmp_path / "x.json")]) == 2
    assert "--key and --paper ask nothing" in capsys.readouterr().err
    assert main(["inside", "exercise", "--name", "x"]) == 2
    assert "name one with --progress" in capsys.readouterr().err
    assert main(["inside", "exercise", "7", "--set", "assessment"]) == 2
    assert "use all or 1 to 6" in capsys.readouterr().err


def signed(tmp_path: Path, name: str, seed: int, typed: dict[str, str], key: bytes = KEY) -> Path:
    told = {
        "kind": "kotha-exercise",
        "version": 1,
        "name": name,
        "language": "en",
        "choice": vars(QuestionChoice(wanted="9", seed=seed)),
        "answers": [{"question": number, "tries": [answer], "hints": 0} for number, answer in typed.items()],
    }
    file = tmp_path / f"{name}.json"
    save(parse({**told, "signed": False}), file, key)
    return file


def test_a_signature_shows_what_was_changed(tmp_path: Path) -> None:
    right = answers(wanted="9", seed=1)
    file = signed(tmp_path, "mina", 1, {**right, "9b": "1"})
    (row,) = read_class([file], KEY)
    assert (row.state, row.right, row.asked) == ("signed", 6, 7)
    assert read_class([file])[0].state == "not checked"
    assert read_class([file], b"another key, long enough")[0].state == "changed"
    told = json.loads(file.read_text(encoding="utf-8"))
    for change in ({"name": "raju"}, {"choice": {**told["choice"], "seed": 2}}, {"signed": False}):
        assert not is_sound({**told, **change}, KEY if change != {"signed": False} else b"")
    told["answers"][3]["tries"] = [right["9b"]]
    file.write_text(json.dumps(told), encoding="utf-8")
    (row,) = read_class([file], KEY)
    assert (row.state, row.right) == ("changed", 7), "points follow the answers; the signature tells"
    told["signed"] = False
    file.write_text(json.dumps({**told, "digest": digest(told)}), encoding="utf-8")
    assert read_class([file], KEY)[0].state == "unsigned", "without the key one can only write an unsigned file"


def test_a_signed_file_that_was_changed_is_not_gone_on_with(capsys: Any, tmp_path: Path, key: Path) -> None:
    file = signed(tmp_path, "mina", 1, {"9b": "1"})
    told = json.loads(file.read_text(encoding="utf-8"))
    file.write_text(json.dumps({**told, "answers": []}), encoding="utf-8")
    assert main(["inside", "exercise", "--progress", str(file), "--key-file", str(key)]) == 2
    assert "was changed after it was saved" in capsys.readouterr().err
    assert main(["inside", "exercise", "--progress", str(file)]) == 2
    assert "is signed; name the key" in capsys.readouterr().err


def test_a_class_in_one_table(capsys: Any, tmp_path: Path, key: Path) -> None:
    right = answers(wanted="9", seed=1)
    files = [
        signed(tmp_path, "mina", 1, right),
        signed(tmp_path, "raju", 1, right),
        signed(tmp_path, "=cmd()", 2, {"9b": "65536"}),
        PAGE_FILE,
        tmp_path / "broken.json",
    ]
    files[-1].write_text("{", encoding="utf-8")
    rows = {row.name: row for row in read_class(files, KEY)}
    assert rows["mina"].percent == 100 and rows["raju"].note == "the same sheet and answers as mina"
    assert rows["রহিমা"].points == 30 and rows[""].state == "unreadable"
    assert rows["=cmd()"].note == "6 questions not reached" and rows["=cmd()"].points == 3
    assert rows["raju"].noted("bn") == "প্রশ্ন আর উত্তর হুবহু mina-এর মতো"
    assert rows["=cmd()"].noted("bn") == "৬টি প্রশ্নে পৌঁছানো হয়নি"
    names = [str(file) for file in files]
    table = tmp_path / "class.csv"
    assert main(["inside", "score", *names, "--key-file", str(key), "--csv", str(table)]) == 0
    said = capsys.readouterr().out
    assert "signature fits" in said and "25 / 25" in said and "could not be read" in said and "not who did" in said
    lines = list(csv.reader(io.StringIO(table.read_text(encoding="utf-8"))))
    assert lines[0][:3] == ["name", "sheet", "points"] and "9b" in lines[0] and len(lines) == 6
    assert "'=cmd()" in {line[0] for line in lines}, "no name runs as a formula"
    assert main(["inside", "score", *names, "--json", "--language", "bn"]) == 0
    assert {row["name"] for row in json.loads(capsys.readouterr().out)} == set(rows)
    assert main(["inside", "score", str(files[0]), "--language", "bn"]) == 0
    assert "চাবি ছাড়া যাচাই হয়নি" in capsys.readouterr().out
    assert as_csv([]).startswith("name,sheet")


@pytest.mark.parametrize(
    ("change", "wording"),
    [
        ({"kind": "x"}, "no score file of the tutor"),
        ({"version": 2}, "version 2"),
        ({"answers": [{"question": "9b", "tries": ["1", "2", "3"], "hints": 0}]}, "3 tries"),
        ({"answers": [{"question": "9b", "tries": [], "hints": 0}] * 2}, "a question twice"),
        ({"choice": {"seed": "x"}}, "which questions were asked"),
        ({"choice": 3}, "not whole"),
    ],
)
def test_what_is_no_file_of_answers_is_refused(change: dict[str, Any], wording: str) -> None:
    told = AnswerFile("x", "en", QuestionChoice(wanted="9")).to_dict()
    with pytest.raises(DataError, match=wording):
        parse({**told, **change})
    strange = {**told, "answers": [{"question": "1Q", "tries": ["1"], "hints": 0}]}
    with pytest.raises(DataError, match="not asked: 1Q"):
        parse(strange).outcomes()
