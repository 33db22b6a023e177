"""`kotha sweep` as a user types it: real training runs, several processes, kills, and errors."""

import json
import os
import shlex
import signal
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import torch
from tests.report.shown import Shown

from kotha.cli.main import main

torch.set_num_threads(1)  # as in the worker processes, because the order of summation changes the result

SMALL = ["--preset", "mini", "--recipe", "classic", "--set", "batch_size=2", "precision=float32", "warmup_steps=0"]
SEARCH = ["--search", "learning_rate=1e-4..1e-2:log", "dropout=0,0.1"]


def words(data: Path, out: Path, trials: int, steps: int, *more: str) -> list[str]:
    return ["sweep", str(data), "--out", str(out), "--trials", str(trials), "--steps", str(steps), *SMALL, *more]


def swept(capsys: Any, arguments: list[str]) -> dict[str, Any]:
    capsys.readouterr()
    assert main([*arguments, "--json"]) == 0
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


def reached(found: dict[str, Any]) -> list[tuple[Any, Any]]:
    return [(each["values"], each["value"]) for each in found["trials"]]


def started(arguments: list[str]) -> "subprocess.Popen[bytes]":
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-m", "kotha", *arguments]
    return subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def wait_for(happens: Any, process: "subprocess.Popen[bytes]", seconds: float = 120) -> None:
    until = time.monotonic() + seconds
    while not happens():
        assert process.poll() is None, "the process ended too early"
        assert time.monotonic() < until
        time.sleep(0.05)


def open_files() -> list[str]:
    """The files that this process has open, if the operating system reports them."""
    folder = Path("/proc/self/fd")
    return [str(each.readlink()) for each in folder.iterdir() if each.is_symlink()] if folder.is_dir() else []


def states(out: Path) -> list[str]:
    with closing(sqlite3.connect(out / "study.db", timeout=30)) as database:
        return [state for (state,) in database.execute("select state from trials order by number")]


def stop_hearts(out: Path, seconds: int) -> None:
    """Move the last heartbeat of every running trial into the past."""
    with closing(sqlite3.connect(out / "study.db", timeout=30)) as database, database:
        database.execute("update trial_heartbeats set heartbeat = datetime('now', ?)", (f"-{seconds} seconds",))


def test_a_sweep_reports_importances_and_the_best_command(capsys, data: Path, tmp_path) -> None:
    out, page = tmp_path / "sweep", tmp_path / "found.html"
    arguments = words(data, out, 5, 8, "--set", "evaluate_every=1", *SEARCH)
    found = swept(capsys, [*arguments, "--html", str(page)])
    trials = found["trials"]
    assert [each["folder"] for each in trials] == [f"trial-{place:04d}" for place in range(5)]
    assert trials[0]["is_default"] and trials[0]["values"] == {"learning_rate": 6e-4, "dropout": 0.0}
    assert all(1e-4 <= each["values"]["learning_rate"] <= 1e-2 for each in trials)
    whole = [each for each in trials if each["state"] == "complete"]
    assert len(whole) >= 4, "no trial is stopped before four have finished"
    assert found["best"]["value"] == min(each["value"] for each in whole) <= found["default"]["value"]
    assert sum(found["importance"].values()) == pytest.approx(1)
    for each in trials:
        about = json.loads((out / each["folder"] / "config.json").read_text())["training"]
        assert about["learning_rate"] == each["values"]["learning_rate"], (
            "the reported settings are those of the training run"
        )
        assert (out / each["folder"] / "best" / "model.safetensors").is_file()
        assert len(each["curve"]) == 8 or each["state"] == "pruned"
    html = page.read_text(encoding="utf-8")
    assert "Importance of settings" in html and "<svg" in html and "kotha train" in html
    line = shlex.split(found["command"])
    line[line.index("--out") + 1] = str(tmp_path / "again")
    assert main([*line[1:], "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["bits_per_byte"] == found["best"]["value"], "bit for bit"


def test_the_same_command_resumes_and_another_is_rejected(capsys, data: Path, tmp_path) -> None:
    out = tmp_path / "sweep"
    first = swept(capsys, words(data, out, 2, 3, *SEARCH))
    assert [part for part, _ in first["default"]["curve"]] == [3, 5, 8], "there are enough evaluations for a curve"
    assert swept(capsys, words(data, out, 2, 3, *SEARCH)) == first, "all trials are done"
    assert not any(str(out) in each for each in open_files()), "the database is closed"
    more = swept(capsys, words(data, out, 3, 3))
    assert more["trials"][:2] == first["trials"] and len(more["trials"]) == 3
    assert more["searched"] == first["searched"], "the search is saved in the study"
    for other, reason in {
        ("--steps", "4"): "was started with changes=",
        ("--search", "dropout=0,0.3"): "was started with search='learning_rate=0.0001..0.01:log dropout=0,0.1'",
        ("--recipe", "course"): "was started with recipe='classic'",
    }.items():
        arguments = words(data, out, 4, 3)
        if other[0] in arguments:
            arguments[arguments.index(other[0]) + 1] = other[1]
        else:
            arguments += other
        assert main(arguments) == 2
        refused = capsys.readouterr().err
        assert (
            reason in refused and "start another study with --out …, or with --study … in a shared database" in refused
        ), "and how another is begun"
        assert main([*arguments, "--language", "bn"]) == 2
        assert "নতুন সুইপ শুরু করুন: --out … দিয়ে অন্য ফোল্ডারে" in capsys.readouterr().err
    twin = swept(capsys, words(data, tmp_path / "twin", 3, 3, *SEARCH))
    assert reached(twin) == reached(more), "sampled by the seed, and trained the same"
    differs = swept(capsys, words(data, tmp_path / "other", 2, 3, "--seed", "1", *SEARCH))
    assert reached(differs)[0] == reached(first)[0] and reached(differs)[1] != reached(first)[1]


@pytest.mark.extended
def test_a_killed_sweep_resumes_from_the_checkpoint_of_its_trial(capsys, data: Path, tmp_path) -> None:
    out, steps = tmp_path / "killed", 60
    first, arguments = (words(data, out, n, steps, *SEARCH, "--set", "evaluate_every=5") for n in (1, 2))
    process = started(arguments)
    wait_for(lambda: any((out / "trial-0000" / "checkpoints").glob("step-*")), process)
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert states(out) == ["RUNNING"]
    stop_hearts(out, 10)
    assert [each["state"] for each in swept(capsys, first)["trials"]] == ["running"], "not yet"
    stop_hearts(out, 90)
    found = swept(capsys, arguments)
    assert states(out) == ["FAIL", "COMPLETE", "COMPLETE"]
    assert [each["name"] for each in found["trials"]] == ["trial 0", "trial 2"]
    assert [part for part, _ in found["default"]["curve"]] == list(range(1, 9)), (
        "the curve includes the evaluations before the kill"
    )
    rows = [json.loads(line) for line in (out / "trial-0000" / "metrics.jsonl").read_text().splitlines()]
    assert [row["step"] for row in rows if "loss_nats" in row] == list(range(1, steps + 1)), "no step twice"
    whole = swept(capsys, words(data, tmp_path / "whole", 1, steps, "--set", "evaluate_every=5", *SEARCH))
    assert found["default"]["value"] == whole["default"]["value"], "the same as without a kill"


@pytest.mark.slow
def test_two_processes_share_a_study_and_its_number_of_trials(capsys, data: Path, tmp_path) -> None:
    """Trials take much longer than the startup of this process, so the other process cannot run all of them."""
    pytest.importorskip("optuna")  # imported before the trials start
    out = tmp_path / "shared"
    arguments = words(data, out, 6, 400, "--prune", "none", *SEARCH)
    other = started(arguments)
    wait_for(lambda: (out / "trial-0000").is_dir(), other)
    assert main([*arguments, "--json"]) == 0
    assert 0 < capsys.readouterr().err.count(" reached ") < 6, "each ran some trials"
    assert other.wait(timeout=120) == 0
    found = swept(capsys, arguments)
    assert states(out) == ["COMPLETE"] * 6
    assert len({each["folder"] for each in found["trials"]}) == 6


@pytest.mark.slow
def test_ctrl_c_saves_and_the_trial_is_resumed(capsys, data: Path, tmp_path) -> None:
    from tests.cli.test_train import listen_to_ctrl_c

    out = tmp_path / "stopped"
    arguments = words(data, out, 1, 4000, "--set", "evaluate_every=5", *SEARCH)
    process = subprocess.Popen(
        [sys.executable, "-m", "kotha", *arguments], stderr=subprocess.PIPE, preexec_fn=listen_to_ctrl_c
    )
    wait_for(lambda: any((out / "trial-0000" / "checkpoints").glob("step-*")), process)
    process.send_signal(signal.SIGINT)
    _, result = process.communicate(timeout=60)
    assert process.returncode == 130
    assert b"stopped and saved; run the same command again to resume" in result
    assert states(out) == ["FAIL", "WAITING"]
    assert json.loads((out / "trial-0000" / "summary.json").read_text())["stopped"]


@pytest.mark.parametrize("prune", ["median", pytest.param("hyperband", marks=pytest.mark.slow)])
def test_weak_trials_are_stopped_early_and_kept(capsys, data: Path, tmp_path, prune) -> None:
    arguments = words(data, tmp_path / "sweep", 10, 8, "--set", "evaluate_every=1", "--prune", prune, "--search")
    assert main([*arguments, "learning_rate=1e-9..1e-2:log", "--json"]) == 0
    output = capsys.readouterr()
    found = json.loads(output.out)
    behind = [each for each in found["trials"] if each["state"] == "pruned"]
    assert behind and found["best"]["state"] == "complete"
    assert all(2 <= len(each["curve"]) < 8 and each["value"] > found["best"]["value"] for each in behind)
    assert output.err.count(" fell behind and was stopped") == len(behind)
    stopped = tmp_path / "sweep" / behind[0]["folder"]
    assert main(["train", str(data), "--out", str(stopped), "--resume", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["steps"] == 8


def test_invalid_trials_are_skipped(capsys, data: Path, tmp_path) -> None:
    """A number of heads that does not divide the width, and a default outside the search range."""
    search = ["--search", "n_heads=3,2", "learning_rate=1e-3,1e-2"]
    assert main([*words(data, tmp_path / "sweep", 6, 3, *search), "--json"]) == 0
    output = capsys.readouterr()
    found = json.loads(output.out)
    assert found["default"]["values"] == {"n_heads": 2, "learning_rate": 6e-4}
    refused = [each for each in found["trials"] if each["problem"]]
    assert refused and all(each["values"]["n_heads"] == 3 and each["value"] is None for each in refused)
    assert output.err.count("failed: d_model=8 is not divisible by n_heads=3") == len(refused)
    assert found["best"]["values"]["n_heads"] == 2
    assert main(words(data, tmp_path / "worse", 2, 3, "--set", "n_heads=3", "--search", "dropout=0,0.1")) == 1
    assert "is not divisible by n_heads=3" in capsys.readouterr().err, "an error of the default trial ends the sweep"


def test_sizes_are_searched_at_equal_time(data: Path) -> None:
    from dataclasses import asdict

    from kotha.text.shards import Dataset
    from kotha.training.request import TrainRequest
    from kotha.training.sweep.search import SweepRequest, describe_sweep, read_sweep

    dataset, request = Dataset(data), SweepRequest(TrainRequest(minutes=0.3))
    sweep = describe_sweep(dataset, request)
    assert [each.name for each in sweep.searched][-1] == "size"
    assert sweep.defaults["size"] in sweep.searched[-1].choices
    asked = sweep.request({"size": "2x96"})
    assert (asked.minutes, asked.changes["d_model"], asked.changes["n_heads"]) == (0.3, 96, 3)
    assert {"context_length", "evaluate_tokens"} <= asked.changes.keys(), "all are evaluated the same way"
    assert read_sweep(json.loads(json.dumps(asdict(sweep))), dataset, request) == sweep


@pytest.mark.parametrize(
    ("more", "code", "reason"),
    [
        (["--search", "learning_rat=0..1"], 2, "did you mean 'learning_rate'?"),
        (["--search", "dropout=0.2..0.1"], 2, "is not a range"),
        (["--storage", "sqlite:////nowhere/at/all.db"], 1, "cannot be used: unable to open database file"),
        (
            ["--storage", "postgresql://me:secret@localhost:1/db"],
            1,
            "cannot be used: Failed to import DB access module",
        ),
        (["--storage", "nonsense"], 1, "the database nonsense cannot be used"),
        (["--minutes", "1"], 2, "use only one of them"),
    ],
)
def test_usage_errors_are_one_line(capsys, data: Path, tmp_path, more, code: int, reason: str) -> None:
    arguments = words(data, tmp_path / "sweep", 1, 3, *more)
    assert main(arguments) == code
    output = capsys.readouterr().err
    assert reason in output and output.count("\n") == 1
    assert "secret" not in output
    assert not (tmp_path / "sweep").exists(), "no folder is left behind"


def test_without_optuna_the_error_says_how_to_install_it(capsys, data: Path, tmp_path, monkeypatch) -> None:
    monkeypatch.setitem(sys.modules, "optuna", None)
    assert main(words(data, tmp_path / "sweep", 1, 3)) == 1
    assert "a sweep needs Optuna; install it with: " in capsys.readouterr().err
    assert not (tmp_path / "sweep").exists()


def test_a_file_that_is_not_a_database_is_rejected_and_kept(capsys, data: Path, tmp_path) -> None:
    notes = tmp_path / "notes.db"
    notes.write_text("my notes, which are dear to me\n" * 100)
    assert main(words(data, tmp_path / "sweep", 1, 3, "--storage", f"sqlite:///{notes}")) == 1
    assert "file is not a database" in capsys.readouterr().err
    assert notes.read_text() == "my notes, which are dear to me\n" * 100


def test_output_in_bangla(capsys, data: Path, tmp_path) -> None:
    assert main([*words(data, tmp_path / "sweep", 2, 3, *SEARCH), "--language", "bn"]) == 0
    output = capsys.readouterr()
    assert "ট্রায়াল" in output.err and "trial" not in output.err
    assert "কোন সেটিং কতটা গুরুত্বপূর্ণ" in output.out
    assert "kotha train" in output.out


def test_a_best_value_at_the_end_of_its_range_is_reported(capsys, data: Path, tmp_path) -> None:
    """The default, which is the only trial, is at the lower end of the range."""
    arguments = words(data, tmp_path / "sweep", 1, 3, "--search", "learning_rate=6e-4..1e-2:log")
    assert swept(capsys, arguments)["at_an_end"] == ["learning_rate"]
    page = tmp_path / "found.html"
    assert main([*arguments, "--html", str(page)]) == 0
    result = Shown(page.read_text(encoding="utf-8")).words()
    assert any(each.startswith("the best learning_rate is 0.0006, close to an end") for each in result), (
        "a name keeps its letters"
    )
    output = capsys.readouterr().out
    assert "the best learning_rate is 0.0006, close to an end of 0.0006..0.01:log; extend the range" in output
    assert (
        "the importance of settings cannot be estimated yet; this takes 4 completed trials with different results"
        in output
    )


def test_the_default_folder_is_next_to_the_data(capsys, data: Path, tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "own").symlink_to(data)
    arguments = ["sweep", "own", "--trials", "1", "--steps", "3", *SMALL, *SEARCH]
    first = swept(capsys, arguments)
    assert (tmp_path / "own-sweep" / "study.db").is_file()
    assert swept(capsys, arguments)["trials"] == first["trials"]


@pytest.mark.parametrize("search", ["banana=1..2", "learning_rate=5..1", "dropout=0..x", "learning_rate=0..1:log"])
def test_an_invalid_search_is_rejected_in_both_languages(capsys, data: Path, tmp_path, monkeypatch, search) -> None:
    monkeypatch.setattr("kotha.training.sweep.search.choose_settings", lambda *_: pytest.fail("it was timed before"))
    arguments = ["sweep", str(data), "--out", str(tmp_path / "sweep"), "--search", search]
    assert main(arguments) == 2
    english = capsys.readouterr().err
    assert english.count("context_length") == (search.startswith("banana"))
    assert main([*arguments, "--language", "bn"]) == 2
    assert not {*capsys.readouterr().err.split()} & {"is", "not", "no", "begins"}
    assert not (tmp_path / "sweep").exists()


def test_zero_trials_are_rejected(capsys, data: Path, tmp_path) -> None:
    assert main(words(data, tmp_path / "sweep", 0, 3)) == 2
    assert "--trials 0 must be 1 or more" in capsys.readouterr().err
    assert not (tmp_path / "sweep").exists()
