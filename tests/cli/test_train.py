"""`kotha train` as a user types it."""

import json
import signal
import subprocess
import sys
import time
from contextlib import nullcontext
from pathlib import Path

import pytest
from rich.console import Console

from kotha.artifacts import model_folder as bundle
from kotha.cli.language import use_language
from kotha.cli.main import main
from kotha.cli.training_display import progress_line


def listen_to_ctrl_c() -> None:
    """Restore the Ctrl-C handler, because children of a background shell ignore Ctrl-C."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


SMALL = ["--preset", "mini", "--recipe", "classic", "--set", "batch_size=2", "--set", "precision=float32"]


def test_train_and_resume(capsys, data: Path, tmp_path: Path) -> None:
    out = ["--out", str(tmp_path / "run")]
    arguments = ["train", str(data), *out, *SMALL, "--set", "evaluate_every=5", "--steps", "5"]
    assert main([*arguments, "--json"]) == 0
    summary = json.loads(capsys.readouterr().out)
    keys = {"steps", "tokens", "best_step", "loss_nats", "bits_per_byte", "tokens_per_second", "peak_memory_bytes"}
    assert keys <= summary.keys()
    assert summary["steps"] == 5
    assert main(arguments) == 1
    assert "contains a run; resume it with --resume" in capsys.readouterr().err
    assert main(["train", str(data), *out, "--resume"]) == 0
    assert "resuming from step 5" in capsys.readouterr().err
    assert main(["train", str(data), *out, "--resume", "--steps", "8", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["steps"] == 8
    assert json.loads((tmp_path / "run" / "config.json").read_text())["training"]["steps"] == 8


def test_invalid_data_is_rejected_before_timing(capsys, data: Path, tmp_path: Path) -> None:
    """No held-out text, too little text, and a folder that already contains a run."""
    tokenizer, lines, pair = data / "tokenizer.json", tmp_path / "lines.txt", tmp_path / "two.txt"
    lines.write_text("আমি ভাত খাই\n", encoding="utf-8")
    pair.write_text("আমি ভাত খাই।\n\nনদীর ধারে একটি গ্রাম।\n", encoding="utf-8")
    assert main(["prepare", str(lines), "--tokenizer", str(tokenizer), "--out", str(tmp_path / "one")]) == 0
    assert "no document is held out" in capsys.readouterr().err
    assert main(["prepare", str(pair), "--tokenizer", str(tokenizer), "--out", str(tmp_path / "two")]) == 0
    assert "no document is held out" not in capsys.readouterr().err, "one of two documents is held out"
    lines.write_text("আমি ভাত খাই।\nতুমি মাছ খাও।\n", encoding="utf-8")
    assert main(["prepare", str(lines), "--tokenizer", str(tokenizer), "--out", str(tmp_path / "end")]) == 0
    assert "one document makes up most of the text, so its end is held out" in capsys.readouterr().err
    used = tmp_path / "used"
    used.mkdir()
    (used / "config.json").write_text("{}")
    result = {tmp_path / "one": "has no validation text", tmp_path / "two": "bytes to train on", data: "contains a run"}
    for folder, reason in result.items():
        out = used if folder == data else tmp_path / "run"
        assert main(["train", str(folder), "--minutes", "1", "--out", str(out)]) == 1
        output = capsys.readouterr().err
        assert reason in output
        assert "measuring" not in output
    assert main(["train", str(tmp_path / "one"), "--resume", "--out", str(used)]) == 1
    assert "has no validation text" in capsys.readouterr().err


def test_the_summary_of_a_run(capsys, data: Path, tmp_path: Path) -> None:
    out = tmp_path / "run"
    arguments = [*SMALL, "--steps", "6", "--set", "evaluate_every=2", "--tensorboard"]
    assert main(["train", str(data), "--out", str(out), *arguments]) == 0
    assert f"Report: {out / 'report.html'}" in capsys.readouterr().out
    config = json.loads((out / "config.json").read_text(encoding="utf-8"))
    assert config["task"] == "next-token"
    assert config["references"]["uniform"] > config["references"]["unigram"] > 0
    assert config["predicted"]["memory_bytes"]["total"] > 0
    assert config["machine"]["precision"] == "float32"
    rows = [json.loads(line) for line in (out / "metrics.jsonl").read_text(encoding="utf-8").splitlines()]
    steps = [row for row in rows if "loss_nats" in row]
    assert len(steps) == 6
    assert all(row["memory_bytes"] > 0 and 0 < (row["peak_share"] or 1) <= 1 for row in steps)
    evaluations = [row for row in rows if "validation" in row]
    assert len(evaluations) == 3
    best = min(row["validation"]["loss_nats"] for row in evaluations)
    assert json.loads((out / "best.json").read_text())["loss_nats"] == best
    assert any((out / "tensorboard").iterdir())
    page = (out / "report.html").read_text(encoding="utf-8")
    assert "unigram" in page
    loaded = bundle.load(out / "best")
    assert loaded.tokenizer is not None
    assert loaded.tokenizer.fingerprint == config["data"]["tokenizer"]


def test_a_run_for_some_time(data: Path, tmp_path: Path) -> None:
    assert main(["train", str(data), "--out", str(tmp_path / "run"), *SMALL, "--minutes", "0.01"]) == 0
    training = json.loads((tmp_path / "run" / "config.json").read_text())["training"]
    assert training["steps"] >= 8
    assert training["warmup_steps"] <= training["steps"] // 10


def test_a_bert_learns_from_the_same_command(capsys, data: Path, tmp_path: Path) -> None:
    stories, tokenizer = data.parent / "s.jsonl", tmp_path / "tok"
    assert main(["tokenizer", "train", str(stories), "--kind", "wordpiece", "--out", str(tokenizer)]) == 0
    made = ["prepare", str(stories), "--tokenizer", str(tokenizer), "--out", str(tmp_path / "data")]
    assert main(made) == 0
    settings = ["--steps", "2", "--set", "batch_size=2", "--set", "precision=float32", "--set", "evaluate_tokens=256"]
    arguments = ["train", str(tmp_path / "data"), "--out", str(tmp_path / "run"), "--preset", "pocket-bert", *settings]
    capsys.readouterr()
    assert main([*arguments, "--json"]) == 0
    summary = json.loads(capsys.readouterr().out)
    assert summary["words_nats"] > 0
    assert summary["pairs_nats"] > 0


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
        (["--set", "steps"], 2, "expected NAME=VALUE"),
        (["--set", "steps=soon"], 2, "steps='soon' has the wrong type; expected int"),
        (["--recipe", "moden"], 1, "did you mean 'modern'?"),
        (["--preset", "pocket-bert"], 1, "train a tokenizer of kind 'wordpiece'"),
        (["--preset", "pocket-seq2seq"], 1, "a seq2seq model is trained on pairs of texts"),
        (["--minutes", "0"], 2, "--minutes 0.0 must be above 0"),
        (["--minutes", "1", "--steps", "5"], 2, "minutes and steps both set the length of the run"),
        (["--config", "nowhere.toml"], 2, "nowhere.toml"),
        (["--config", "/dev/zero"], 1, "/dev/zero is larger than 1,048,576 bytes"),
        (["--set", "steps=" + "9" * 5000], 2, "has the wrong type; expected int"),
        (["--resume"], 1, "not found; specify the folder of a training run"),
    ],
)
def test_usage_errors(capsys, data: Path, tmp_path: Path, arguments, code: int, wording: str) -> None:
    assert main(["train", str(data), "--out", str(tmp_path / "run"), *arguments]) == code
    assert wording in capsys.readouterr().err
    assert not (tmp_path / "run").exists(), "an error leaves no folder that blocks the next attempt"


def test_ctrl_c_saves_and_says_how_to_resume(data: Path, tmp_path: Path) -> None:
    out = tmp_path / "run"
    command = [sys.executable, "-m", "kotha", "train", str(data), "--out", str(out)]
    settings = [*SMALL, "--steps", "100000", "--set", "evaluate_every=100000"]
    pipes: dict = {"stderr": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    process = subprocess.Popen([*command, *settings], preexec_fn=listen_to_ctrl_c, **pipes)
    while not (out / "metrics.jsonl").exists():
        assert process.poll() is None, process.communicate()
        time.sleep(0.1)
    process.send_signal(2)
    _, err = process.communicate()
    assert process.returncode == 130, err
    assert "Traceback" not in err
    assert "kotha: saving after this step (SIGINT) …" in err
    assert err.splitlines()[-1].endswith(f"resume with: kotha train {data} --out {out} --resume")
    summary = json.loads((out / "summary.json").read_text())
    assert summary["stopped"] is True
    assert summary["steps"] > 0


def asked_to_stop(monkeypatch: pytest.MonkeyPatch) -> None:
    """A scheduler stops a training run at its second step."""

    def show(event: dict) -> None:
        if event["step"] == 2 and "stopping" not in event:
            signal.raise_signal(signal.SIGTERM)

    monkeypatch.setattr("kotha.cli.train.training_display", lambda **_: nullcontext({"on_event": show}))


@pytest.mark.parametrize(
    ("language", "wording"),
    [("en", "stopped before its first evaluation"), ("bn", "প্রথমবার মাপার আগেই থামানো হয়েছে")],
)
def test_a_run_without_evaluations_says_so(capsys, data, tmp_path, monkeypatch, language, wording) -> None:
    asked_to_stop(monkeypatch)
    where = ["train", str(data), "--out", str(tmp_path / "run"), *SMALL, "--steps", "100"]
    assert main([*where, "--set", "evaluate_every=100", "--language", language]) != 0
    out = capsys.readouterr().out
    assert wording in out
    assert "inf" not in out and "None" not in out and "loss nats" not in out
    assert main(["generate", str(tmp_path / "run"), "মা", "--tokens", "3"]) == 0  # its last weights
    monkeypatch.undo()
    assert main([*where[:-1], "4", "--set", "evaluate_every=4", "--resume"]) == 0
    assert json.loads((tmp_path / "run" / "best.json").read_text())["step"] == 4


def test_missing_scores_are_null(capsys, data: Path, tmp_path: Path, monkeypatch) -> None:
    asked_to_stop(monkeypatch)
    where = ["train", str(data), "--out", str(tmp_path / "run"), *SMALL, "--steps", "100"]
    assert main([*where, "--set", "evaluate_every=100", "--json"]) != 0
    summary = json.loads(capsys.readouterr().out, parse_constant=pytest.fail)
    assert (summary["steps"], summary["best_step"], summary["loss_nats"]) == (2, None, None)


def test_sizes_of_the_model_can_be_set(capsys, data: Path, tmp_path: Path) -> None:
    words = ["--set", "n_layers=1", "d_model=32", "n_heads=2", "--set", "d_ff=64"]  # one or several per flag
    short = ["--steps", "2", "--set", "batch_size=2", "context_length=16", "evaluate_every=2"]
    assert main(["train", str(data), "--out", str(tmp_path / "run"), "--preset", "bangla-modern", *words, *short]) == 0
    model = json.loads((tmp_path / "run" / "config.json").read_text(encoding="utf-8"))["model"]
    assert (model["n_layers"], model["d_model"], model["d_ff"], model["d_head"]) == (1, 32, 64, 16)
    assert model["context_length"] == 16  # trained with this context, so it must not be evaluated with a longer one


def test_a_model_beyond_this_machine_is_rejected_before_it_is_built(capsys, data: Path, tmp_path: Path) -> None:
    sizes = ["--set", "d_model=1000000000", "n_heads=8"]
    command = ["train", str(data), "--preset", "pocket", *sizes, "--steps", "5", "--out", str(tmp_path / "run")]
    assert main(command) == 1
    output = capsys.readouterr().err
    assert "TB of memory, but only" in output and "smaller sizes: d_model" in output
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(("language", "left"), [("en", "left"), ("bn", "বাকি")])
def test_the_progress_line_stays_on_one_line(language: str, left: str) -> None:
    event = {"step": 1532, "steps": 5551, "tokens": 784_384, "tokens_per_second": 8889.0, "loss_nats": 3.756}
    event |= {"peak_share": 0.06, "memory_bytes": 493_000_000}
    with use_language(["train", "--language", language]):
        line = progress_line(event, "trial 10  ")
    assert all(word in line.plain for word in ("3.756", "493", "3:51", left, "6%"))
    assert len(Console(width=30).render_lines(line)) == 1
