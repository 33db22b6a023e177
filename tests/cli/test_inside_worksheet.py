"""``kotha inside worksheet``, as a user types it."""

import io
import json
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

from kotha.artifacts import model_folder as bundle
from kotha.cli.main import main
from kotha.model.config import GPTConfig, Seq2SeqConfig
from kotha.model.family import build
from kotha.text.tokenizer.trainers import train

SMALL: dict[str, Any] = {"d_model": 16, "n_heads": 2, "n_layers": 2, "context_length": 24}


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    folder = tmp_path_factory.mktemp("models")
    tokenizer = train(["নদীর ধারে ছোট্ট গ্রাম", "ক্লান্ত কৃষক বাড়ি ফেরে"], "char", level="akshara")
    torch.manual_seed(0)
    found = {}
    for name, config in (("gpt", GPTConfig), ("seq2seq", Seq2SeqConfig)):
        model = build(config(**SMALL, vocab_size=tokenizer.vocab_size))
        found[name] = str(bundle.save(folder / name, model, tokenizer))
    return found


def answer(capsys: Any, *words: str) -> Any:
    assert main(["inside", "worksheet", *words, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def type_in(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO(text))


def test_the_workshops_sheet(capsys: Any) -> None:
    found = answer(capsys)
    assert found["tokens"] == ["বাংলাদেশ", "ব্যাংক", "সুদ"]
    assert found["output"][1] == pytest.approx([0.550714, 0.544853], abs=1e-6)
    assert found["masked"][0] == [pytest.approx(0.298258, abs=1e-6), None, None]
    assert main(["inside", "worksheet"]) == 0
    shown = capsys.readouterr().out
    assert "Q[1,1] = 1.0×0.1 + 0.5×0.3 + 0.2×0.2 + 0.8×0.1 = 0.37" in shown
    assert "বাংলাদেশ" in shown and "−∞" in shown


def test_a_generated_sheet_of_another_size(capsys: Any) -> None:
    found = answer(capsys, "--size", "4x6x3", "--seed", "2")
    assert (len(found["X"]), len(found["W_Q"]), len(found["output"][0])) == (4, 6, 3)
    assert found["X"] != answer(capsys, "--size", "4x6x3", "--seed", "3")["X"]


def test_a_models_sheet(capsys: Any, models: dict[str, str]) -> None:
    found = answer(capsys, "--run", models["gpt"], "--text", "ছোট্ট নদী", "--layer", "1", "--head", "1")
    assert {"Q", "K", "V", "scores", "masked", "weights", "output", "X", "W_Q", "W_K", "W_V"} <= found.keys()
    assert (found["layer"], found["head"], found["text"]) == (1, 1, "ছোট্ট নদী")
    assert len(found["weights"]) == len(found["tokens"])
    where = ["--target", "গ্রাম", "--part", "cross"]
    found = answer(capsys, "--run", models["seq2seq"], "--text", "ছোট্ট নদী", *where)
    assert found["place"] == "decoder.0.cross"
    assert len(found["weights"][0]) == len(found["key_tokens"])


def test_files(capsys: Any, models: dict[str, str], tmp_path: Path) -> None:
    page, sheet = tmp_path / "new" / "sheet.html", tmp_path / "sheet.xlsx"
    words = ["--run", models["gpt"], "--text", "ছোট্ট", "--html", str(page), "--xlsx", str(sheet)]
    assert main(["inside", "worksheet", *words]) == 0
    output = capsys.readouterr()
    assert output.out == "" and "wrote" in output.err
    assert sheet.read_bytes()[:2] == b"PK"
    assert "default-src 'none'" in page.read_text(encoding="utf-8")
    assert [file.name for file in sorted(tmp_path.iterdir())] == ["new", "sheet.xlsx"]


@pytest.mark.parametrize(
    ("words", "wording"),
    [
        (["--target", "x"], "--target: valid only for a head of a model; specify the model with --run"),
        (["--layer", "3"], "and give --text"),
        (["--part", "cross"], "and give --text"),
        (["--run", "{gpt}"], "an input text is required"),
        (["--run", "{gpt}", "--text", "ছোট্ট", "--layer", "7"], "no attention module 'blocks.7.attention'"),
        (["--run", "{gpt}", "--text", "ছোট্ট", "--head", "7"], "has no head 7"),
        (["--run", "{gpt}", "--text", "ছোট্ট", "--part", "cross"], "no attention module 'blocks.0.cross'"),
        (["--run", "{gpt}", "--text", "ছোট্ট", "--stack", "encoder"], "no attention module 'encoder.0.attention'"),
        (["--run", "{seq2seq}", "--text", "ছোট্ট"], "also needs a target"),
        (["--run", "{gpt}", "--text", "ছোট্ট", "--size", "4x6x3"], "omit --run, --text"),
        (["--size", "1x6x3"], "with each number from 2 to 12"),
    ],
)
def test_usage_errors(
    capsys: Any, models: dict[str, str], words: list[str], wording: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["inside", "worksheet", *(word.format(**models) for word in words)]) == 2
    assert wording in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("words", "wording"),
    [
        (["--preset", "vit-digits"], "the questions are about a GPT, but vit-digits is a vit; try gpt2"),
        (["13"], "unknown question '13'; use all, 1 to 12, or a part such as 7c or 10a"),
    ],
)
def test_mistakes_about_exercises_are_answered(capsys: Any, words: list[str], wording: str) -> None:
    assert main(["inside", "exercise", *words]) == 2
    assert wording in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "n_questions"),
    [(["all"], 45), ([], 45), (["7"], 4), (["৭"], 4), (["10A"], 4), (["সব", "--language", "bn"], 45)],
)
def test_exercise_is_a_command_and_all_is_every_question(
    capsys: Any, monkeypatch: pytest.MonkeyPatch, words: list[str], n_questions: int
) -> None:
    type_in(monkeypatch, "\n" * 200)
    assert main(["inside", "exercise", *words, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["questions"], found["ended_early"]) == (n_questions, False)


def test_exercises_from_a_pipe(capsys: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    type_in(monkeypatch, "1.5e-4\n2e-4\n")
    assert main(["inside", "exercise", "7c"]) == 0
    shown = capsys.readouterr().out
    assert "Right." in shown and "not precise enough" in shown and "1 of 2 answers fully correct" in shown
    assert "max_iters = 20,000 (not given in the workshop" in shown


def test_exercises_as_json_in_bangla(capsys: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    type_in(monkeypatch, "৩১৮.১\n৩১৯\n")
    assert main(["inside", "exercise", "9a", "--language", "bn", "--json"]) == 0
    output = capsys.readouterr()
    found = json.loads(output.out)
    assert (found["graded"], found["right"], found["ended_early"]) == (2, 2, True)
    assert found["answers"][0]["expected"] == [pytest.approx(318.12, abs=0.01)]
    assert "প্রতি নমুনায় গড়ে কতটি টোকেন?" in output.err


def test_all_exercises_without_input(capsys: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    type_in(monkeypatch, "")
    assert main(["inside", "exercise"]) == 0
    assert "End of input; questions not asked: 45." in capsys.readouterr().out


def test_ctrl_c_ends_the_quiz(monkeypatch: pytest.MonkeyPatch) -> None:
    class Impatient(io.StringIO):
        def readline(self, *_: Any) -> str:
            raise KeyboardInterrupt

    monkeypatch.setattr(sys, "stdin", Impatient())
    assert main(["inside", "exercise"]) == 130


def test_a_whole_block_the_notes_examples_and_positions(capsys: Any, tmp_path: Path) -> None:
    assert answer(capsys, "--sheet", "thinking")["scores"] == [[14.0, 12.0]]
    assert answer(capsys, "--sheet", "block", "--seed", "3")["X"] != answer(capsys, "--sheet", "block")["X"]
    assert answer(capsys, "--sheet", "positions")["positions"][0] == [0.0, 1.0, 0.0, 1.0]
    assert main(["inside", "worksheet", "--sheet", "bank", "--language", "bn"]) == 0
    assert "পাতা" in capsys.readouterr().out
    assert main(["inside", "worksheet", "--picture", str(tmp_path / "places.svg")]) == 0
    assert (tmp_path / "places.svg").read_text(encoding="utf-8").count("<rect") == 20 * 512 + 1


def test_custom_matrices(capsys: Any, tmp_path: Path) -> None:
    file, one = tmp_path / "own.csv", "1,0\n0,1"
    file.write_text("\n\n".join(f"{name}\n{one}" for name in ("X", "W_Q", "W_K", "W_V")), encoding="utf-8")
    assert answer(capsys, "--matrices", str(file))["tokens"] == ["token 1", "token 2"]
    assert main(["inside", "worksheet", "--matrices", str(file), "--sheet", "robot"]) != 0
    assert "cannot be combined" in capsys.readouterr().err
    file.write_text("X\n1,x\n", encoding="utf-8")
    assert main(["inside", "worksheet", "--matrices", str(file)]) != 0
    assert "X: row 1 is [1.0, 'x']" in capsys.readouterr().err
