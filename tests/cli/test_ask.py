"""``kotha index`` and ``kotha ask`` at the terminal."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

import kotha
from kotha.cli.main import main

STORY = "পদ্মা নদীর তীরে রাজশাহী শহর। সেখানে আম ফলে।"


@pytest.fixture
def index(tmp_path: Path) -> Path:
    (tmp_path / "a.md").write_text(STORY, encoding="utf-8")
    assert main(["index", str(tmp_path / "a.md"), "--out", str(tmp_path / "index"), "--json"]) == 0
    return tmp_path / "index"


def test_a_question_is_answered_with_its_source(index: Path, capsys: pytest.CaptureFixture[str]) -> None:
    capsys.readouterr()
    assert main(["ask", "পদ্মার তীরে কোন শহর?", "--index", str(index), "--json"]) == 0
    output = json.loads(capsys.readouterr().out)
    assert "no chat model was given" in output["remark"]
    assert output["found"] and output["answer"] == "পদ্মা নদীর তীরে রাজশাহী শহর। [1]"
    [passage] = output["passages"]
    assert passage["text"] == STORY and passage["source"].endswith("a.md") and 0 < passage["score"] <= 1
    assert main(["ask", "মঙ্গল গ্রহ?", "--index", str(index)]) == 0
    shown = capsys.readouterr()
    assert shown.out.strip() == "not found in these documents"
    assert "no passage contains any word of the question" in shown.err


def test_passages_alone_need_no_model(index: Path, capsys: pytest.CaptureFixture[str]) -> None:
    capsys.readouterr()
    assert main(["ask", "--retrieve-only", "--index", str(index), "রাজশাহীর আম"]) == 0
    assert STORY in capsys.readouterr().out
    code = f"""
import sys
from kotha.cli.main import main
assert main(["ask", "আম", "--index", {str(index)!r}]) == 0
assert "torch" not in sys.modules
"""
    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["ask", "আম", "--index", "nowhere"], "no index at nowhere"),
        (["ask", "--index", "nowhere"], "ask needs a QUESTION"),
        (["ask", " ", "--index", "INDEX"], "the question is empty"),
        (["ask", "আম", "--by", "meaning", "--index", "INDEX"], "has no vectors"),
        (["index", "nothing.md", "--out", "INDEX"], "nothing.md does not exist"),
        (["index", "a.md", "--out", "a.md"], "is not an index, or is damaged"),
    ],
)
def test_usage_errors_are_one_line(index: Path, words: list[str], message: str, capsys, monkeypatch) -> None:
    monkeypatch.chdir(index.parent)
    capsys.readouterr()
    assert main([word.replace("INDEX", str(index)) for word in words]) in (1, 2)
    error = capsys.readouterr().err
    assert message in error and error.count("\n") == 1


def test_a_base_model_adds_search_by_meaning_but_no_written_answer(data: Path, tmp_path: Path, capsys) -> None:
    run, index = tmp_path / "run", tmp_path / "index"
    small = {"n_layers": 2, "d_model": 32, "n_heads": 2, "context_length": 32}
    kotha.train(data, preset="char", steps=2, out=run, batch_size=2, **small)
    stories = str(data.parent / "s.jsonl")
    assert main(["index", stories, "--out", str(index), "--model", str(run)]) == 0
    capsys.readouterr()
    assert main(["ask", str(run), "নদীর ধারে কে থাকে?", "--index", str(index), "--json"]) == 0
    output = json.loads(capsys.readouterr().out)
    assert all("meaning" in passage or "words" in passage for passage in output["passages"])
    assert "no chat model was given" in output["remark"] or not output["found"]
    assert main(["ask", str(run), "নদী", "--by", "meaning", "--retrieve-only", "--index", str(index)]) == 0
