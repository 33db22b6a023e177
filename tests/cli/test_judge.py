"""``kotha judge``: judging in the terminal, resuming, a page, collected files, JSON."""

import io
import json
from pathlib import Path
from typing import Any

import pytest
import torch

from kotha.artifacts import model_folder as bundle
from kotha.cli.main import MISUSED, OK, main
from kotha.model.config import GPTConfig
from kotha.model.gpt import GPT
from kotha.text.tokenizer.trainers import train


@pytest.fixture
def models(tmp_path: Path) -> list[str]:
    tokenizer = train(["নদীর ধারে মা থাকে। পাঁচটি আম।"], "char", level="akshara")
    config = GPTConfig(vocab_size=tokenizer.vocab_size, context_length=16, n_layers=1, d_model=8, n_heads=1)
    folders = []
    for seed in range(2):
        torch.manual_seed(seed)
        folders.append(str(bundle.save(tmp_path / f"model-{seed}", GPT(config), tokenizer)))
    return folders


def call(capsys: Any, monkeypatch: Any, *words: object, said: str = "") -> tuple[int, str, str]:
    monkeypatch.setattr("sys.stdin", io.StringIO(said))
    code = main(["judge", *map(str, words)])
    found = capsys.readouterr()
    return code, found.out, found.err


def test_from_prompts_to_the_ranking(models: list[str], tmp_path: Path, capsys: Any, monkeypatch: Any) -> None:
    prompts, out = tmp_path / "prompts.txt", tmp_path / "judging"
    prompts.write_text("নদীর\n\nমা\nআম\nনদীর\n", encoding="utf-8")
    how = ["--out", out, "--judge", "মিনা"]
    code, shown, err = call(capsys, monkeypatch, *models, "--prompts", prompts, *how, "--tokens", 6, said="কী?\n১\nq\n")
    assert code == OK, err
    assert "[1 of 3]" in shown and "1: " in shown and "2: " in shown
    asked = shown.split("model")[0]
    assert not any(Path(name).name in asked for name in models), "blind"
    assert f"2 pairs left to judge; resume with: kotha judge --out {out} --judge" in err
    code, shown, _ = call(capsys, monkeypatch, *how, said="0\n2\n")
    assert code == OK and "[2 of 3]" in shown and "[3 of 3]" in shown and "interval" in shown

    page = tmp_path / "judge.html"
    code, _, err = call(capsys, monkeypatch, "--out", out, "--page", page)
    assert code == OK and "3 pairs in" in err and "<script" in page.read_text(encoding="utf-8")
    mine = json.loads(next((out / "judgements").glob("*.json")).read_text(encoding="utf-8"))
    returned = tmp_path / "returned.json"
    returned.write_text(json.dumps({**mine, "judge": "রহিম"}), encoding="utf-8")
    code, shown, err = call(capsys, monkeypatch, "--out", out, "--collect", returned, "--json")
    result = json.loads(shown)
    assert code == OK and "3 judgements by রহিম" in err
    assert result["judges"] == {"মিনা": 3, "রহিম": 3} and result["agreement"]["share"] == 1
    assert {each["model"] for each in result["standings"]} == set(models)
    assert result["standings"][0]["low"] < result["standings"][0]["strength"] < result["standings"][0]["high"]


def test_usage_errors_come_before_generation(models: list[str], tmp_path: Path, capsys: Any, monkeypatch: Any) -> None:
    empty = tmp_path / "empty.txt"
    empty.write_text("\n")
    out = ["--out", tmp_path / "judging"]
    for words, said in (
        ([models[0], models[0], "--prompts", empty, *out], "specify two or more different models"),
        ([*models, *out], "prompts are required"),
        ([*models, "--prompts", empty, *out], "has no prompts"),
        (out, "is not a judging session"),
        ([*models, "--prompts", empty, "--out", tmp_path], "already exists; resume it without naming models"),
    ):
        code, _, err = call(capsys, monkeypatch, *words)
        assert code != OK and said in err
    assert not (tmp_path / "judging").exists()
    assert main(["judge", *models]) == MISUSED, "it needs a folder"
