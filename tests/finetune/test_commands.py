"""``kotha finetune classify``, ``kotha classify`` and ``kotha evaluate`` on the result."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.finetune.conftest import moods, write_table

from kotha.cli.main import FAILED, MISUSED, OK, main
from kotha.cli.predict import _line
from kotha.generation.classify import Classification

Call = Callable[..., tuple[int, str, str]]
QUICKLY = ["--set", "steps=6", "batch_size=4", "evaluate_every=3"]


@pytest.fixture
def call(capsys: pytest.CaptureFixture[str]) -> Call:
    def run(*words: object) -> tuple[int, str, str]:
        code = main([str(word) for word in words])
        output = capsys.readouterr()
        return code, output.out, output.err

    return run


def test_from_a_table_to_a_prediction(call: Call, bases: dict[str, Path], table: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    code, out, err = call(
        "finetune",
        "classify",
        table,
        "--from",
        bases["gpt"],
        "--out",
        run,
        "--lora",
        2,
        "--json",
        *QUICKLY,
        "class_weights=balanced",
    )
    assert code == OK, err
    summary = json.loads(out)
    assert {"accuracy", "macro_f1", "classes", "confusion", "baselines"} <= summary.keys()
    assert "text: 'said', label: 'mood' (guessed); classes: ভালো, মন্দ, মাঝারি" in err
    assert "48 examples for training, 6 examples for validation, 6 examples for testing" in err
    assert json.loads((run / "config.json").read_text())["training"]["class_weights"] == "balanced"

    code, out, _ = call("classify", run, "আজ নদী চমৎকার", "--why", "--json")
    answer = json.loads(out)
    assert code == OK and answer["label"] == next(iter(answer["probabilities"]))
    assert "".join(each["text"] for each in answer["why"]) == answer["text"] == "আজ নদী চমৎকার"
    code, out, _ = call("classify", run, "আজ নদী চমৎকার", "কান্না")
    assert code == OK and len(out.strip().splitlines()) == 2 and "%" in out
    code, plain, _ = call("classify", bases["gpt"], "আজ নদী চমৎকার", "--adapter", run / "adapter", "--json")
    again = json.loads(plain)["probabilities"]
    assert code == OK and again == pytest.approx(answer["probabilities"], abs=1e-6), "the adapter on its base"

    code, out, _ = call("evaluate", run, write_table(tmp_path / "new.csv", moods(9, seed=8)), "--json")
    score = json.loads(out)
    assert code == OK and score["examples"] == 9 and "majority" in score["baselines"]
    code, out, err = call("evaluate", run, "--text", "আজ")
    assert code == MISUSED and "is evaluated on labelled texts; give a file that contains them" in err
    code, _, err = call("generate", run, "আজ")
    assert code == MISUSED and "does not generate text; it is a classifier" in err
    code, _, err = call("chat", run)
    assert code == MISUSED and "does not generate text" in err
    code, _, err = call("export", run, "--to", "gguf", "--out", tmp_path / "gguf")
    assert code != OK and "export to hf" in err


def test_what_is_wrong_is_said_in_one_line(call: Call, bases: dict[str, Path], table: Path, tmp_path: Path) -> None:
    code, _, err = call("finetune", "classify", table, "--out", tmp_path / "run")
    assert code == MISUSED and "give data and a model to start from, or resume with --resume" in err
    code, _, err = call("classify", bases["gpt"], "আজ")
    assert code == MISUSED and "this is a gpt model, not a classifier" in err
    code, _, err = call("classify", bases["gpt"])
    assert code == MISUSED and "classify needs TEXT" in err
    alone = write_table(tmp_path / "one.csv", [(text, "ক") for text, _ in moods(9)])
    fields = ["--text", "said", "--label", "mood"]
    code, _, err = call("finetune", "classify", alone, "--from", bases["gpt"], "--out", tmp_path / "run", *fields)
    assert code == FAILED and "all 9 examples have the label 'ক'" in err and not (tmp_path / "run").exists()


def test_only_the_most_likely_of_many_classes_are_shown() -> None:
    many = Classification("c0", {f"c{number}": 0.001 for number in range(1000)})
    assert _line("নদী", many).plain.endswith("c11 0.1%  …  নদী")
    few = Classification("a", {"a": 0.75, "b": 0.25})
    assert _line("নদী", few).plain == "a 75.0%  b 25.0%  নদী"
