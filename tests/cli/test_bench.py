"""`kotha bench` as a user types it."""

import json
import sys
from pathlib import Path

import pytest

from kotha.cli.main import main

FIGURES = {"per_second", "slowest", "fastest", "ratio"}


@pytest.mark.parametrize(
    "words",
    [
        ["train", "--preset", "mini", "--batch-size", "2"],
        ["generate", "--tokens", "3", "--batch-size", "1", "--weights", "float32"],
        ["tokenize", "TEXT"],
    ],
    ids=lambda words: words[0],
)
def test_table_and_json_carry_the_figures(
    words: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "transformers", None)
    text = tmp_path / "text.txt"
    text.write_text("নদীর ধারে একটি গ্রাম।\n\nমা ও ছেলে।\n", encoding="utf-8")
    words = [str(text) if word == "TEXT" else word for word in words]
    assert main(["bench", *words, "--rounds", "2", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["implementations"].keys() == {"kotha"}
    assert found["implementations"]["kotha"].keys() == FIGURES
    assert found["implementations"]["kotha"]["ratio"] == 1
    assert len(found["seconds"]["kotha"]) == 2
    assert any("transformers was not measured: " in remark for remark in found["remarks"]), "a remark, no error"
    assert main(["bench", *words, "--rounds", "1"]) == 0
    shown = capsys.readouterr().out
    assert "kotha" in shown and "per second" in shown
    assert "transformers was not measured" in shown
    assert ("pip install " in shown) == (words[0] != "train"), "of the train's model transformers has no twin"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["train", "--tokens", "3"], "unknown option --tokens"),
        (["train", "run"], "unexpected argument run"),
        (["generate", "--precision", "float32"], "unknown option --precision"),
        (["tokenize", "--batch-size", "2"], "unknown option --batch-size"),
        (["generate", "run", "--preset", "mini"], "give either a run or --preset, not both"),
        (["train", "--rounds", "0"], "--rounds 0 is out of range"),
        (["train", "--batch-size", "-3"], "--batch-size -3 is out of range"),
        (["train", "--preset", "pocket-bert"], "the benchmark needs a GPT"),
        (["generate", "--tokens", "100000"], "--tokens 100000 is out of range; use 1 to 240"),
    ],
)
def test_numbers_out_of_range_are_rejected(words: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", *words]) == 2
    assert message in capsys.readouterr().err
