"""`kotha plan` and `kotha train` as a user types them."""

import json
import subprocess
import sys
import time
from pathlib import Path

import pytest

from kotha.cli.main import main
from kotha.model.presets import PRESETS


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("data")
    stories, tokenizer = str(folder / "s.jsonl"), str(folder / "tok")
    assert main(["corpus", "stories", "--documents", "60", "--out", stories]) == 0
    assert main(["tokenizer", "train", stories, "--vocab-size", "700", "--out", tokenizer]) == 0
    assert main(["prepare", stories, "--tokenizer", tokenizer, "--out", str(folder / "data")]) == 0
    return folder / "data"


SMALL = ["--preset", "mini", "--recipe", "classic", "--set", "batch_size=2", "--set", "precision=float32"]


@pytest.mark.parametrize("name", ["mini", "bangla-58m", "bert-base", "vit-base-16", "transformer-base"])
def test_plan_counts_a_preset(capsys, name: str) -> None:
    assert main(["plan", "--preset", name, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["config"] == PRESETS[name].to_dict()
    assert found["parameters"]["total"] > 0
    assert main(["plan", "--preset", name]) == 0
    assert f"{found['parameters']['total']:,}" in capsys.readouterr().out


def test_the_course_model_has_its_count(capsys) -> None:
    main(["plan", "--preset", "bangla-58m", "--json"])
    assert json.loads(capsys.readouterr().out)["parameters"]["total"] == 58_139_648


def test_an_unknown_preset_is_answered_with_the_nearest(capsys) -> None:
    assert main(["plan", "--preset", "bangla58m"]) == 1
    assert "did you mean 'bangla-58m'?" in capsys.readouterr().err


def test_train_and_resume(capsys, data: Path, tmp_path: Path) -> None:
    out = ["--out", str(tmp_path / "run")]
    arguments = ["train", str(data), *out, *SMALL, "--set", "evaluate_every=5", "--steps", "5"]
    assert main([*arguments, "--json"]) == 0
    summary = json.loads(capsys.readouterr().out)
    keys = {"steps", "tokens", "best_step", "loss_nats", "bits_per_byte", "tokens_per_second", "peak_memory_bytes"}
    assert keys <= summary.keys()
    assert summary["steps"] == 5
    assert main(arguments) == 1
    assert "holds a run; go on with --resume" in capsys.readouterr().err
    assert main(["train", str(data), *out, "--resume"]) == 0
    assert "going on from step 5" in capsys.readouterr().err


def test_settings_come_from_recipe_then_file_then_flags(capsys, data: Path, tmp_path: Path) -> None:
    (tmp_path / "more.toml").write_text("steps = 3\nlearning_rate = 1e-3\n")
    arguments = [*SMALL, "--config", str(tmp_path / "more.toml"), "--set", "gradient_clip=none", "--steps", "2"]
    assert main(["train", str(data), "--out", str(tmp_path / "run"), *arguments]) == 0
    training = json.loads((tmp_path / "run" / "config.json").read_text())["training"]
    assert (training["steps"], training["learning_rate"], training["gradient_clip"]) == (2, 1e-3, None)
    assert training["weight_decay"] == 0.1


@pytest.mark.parametrize(
    ("arguments", "code", "wording"),
    [
        (["--set", "stepz=3"], 1, "did you mean 'steps'?"),
        (["--set", "steps"], 2, "write NAME=VALUE"),
        (["--set", "steps=soon"], 1, "steps='soon' should be int"),
        (["--recipe", "moden"], 1, "did you mean 'modern'?"),
        (["--preset", "bert-base"], 1, "cannot be trained on next tokens"),
        (["--config", "nowhere.toml"], 2, "nowhere.toml"),
        (["--resume"], 1, "holds no run"),
    ],
)
def test_mistakes_are_answered(capsys, data: Path, tmp_path: Path, arguments, code: int, wording: str) -> None:
    assert main(["train", str(data), "--out", str(tmp_path / "run"), *arguments]) == code
    assert wording in capsys.readouterr().err
    assert not (tmp_path / "run").exists(), "a mistake leaves no folder that is in the way of the next try"


def test_ctrl_c_saves_and_kill_resumes(data: Path, tmp_path: Path) -> None:
    out = tmp_path / "run"
    command = [sys.executable, "-m", "kotha", "train", str(data), "--out", str(out)]
    settings = [*SMALL, "--steps", "100000", "--set", "evaluate_every=100000"]
    process = subprocess.Popen([*command, *settings], stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    while not (out / "metrics.jsonl").exists():
        assert process.poll() is None, process.communicate()
        time.sleep(0.1)
    time.sleep(0.5)
    process.send_signal(2)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 0, err
    assert "Traceback" not in err
    summary = json.loads((out / "summary.json").read_text())
    assert summary["stopped"] is True
    assert summary["steps"] > 0
