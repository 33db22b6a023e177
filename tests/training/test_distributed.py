"""Several processes: the same losses as with one process, and a run that changes its number of processes."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from tests.launching import Launcher
from tests.prepared import prepared_by_commands

from kotha.artifacts.run_folder import CONFIG, LAUNCH, RunFolder
from kotha.errors import CheckpointError, ConfigError
from kotha.training.checkpoint import OnDisk, checkpoint_path, list_checkpoints, load_checkpoint, newest_complete
from kotha.training.distributed import Ranks, is_restart, ranks_here

STEPS = 12
SETTINGS = [
    *("--preset", "char", "--steps", str(STEPS), "--set", "batch_size=4", "--set", "precision=float32"),
    *("--set", "micro_batch_size=2", "n_layers=1", "d_model=32", "n_heads=2", "context_length=16"),
    *("--set", "evaluate_every=6", "--set", "evaluate_tokens=256", "--set", "ema_decay=0.9"),
    *("--set", "dropout=0.0", "--set", "warmup_steps=2", "--set", "keep_checkpoints=9"),
]
OPTIMIZERS = {"adamw": ["--recipe", "classic"], "muon": ["--recipe", "modern"]}


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return prepared_by_commands(tmp_path_factory.mktemp("data"), vocab_size=601)


def command(processes: int, *arguments: str) -> list[str]:
    launch = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(processes), "--max-restarts", "2"]
    return [sys.executable, *(launch if processes > 1 else []), "-m", "kotha", "train", *arguments]


def environment() -> dict[str, str]:
    return {**os.environ, "OMP_NUM_THREADS": "1"}


def losses(run: Path) -> list[float]:
    rows = map(json.loads, (run / "metrics.jsonl").read_text(encoding="utf-8").splitlines())
    return [row["loss_nats"] for row in rows if "loss_nats" in row]


def final_weights(run: Path) -> dict[str, torch.Tensor]:
    return load_checkpoint(checkpoint_path(run / "checkpoints", STEPS)).tensors["model"]


def assert_alike(run: Path, reference: Path) -> None:
    found, expected = losses(run), losses(reference)
    assert len(found) == len(expected) == STEPS
    assert max(abs(a - b) for a, b in zip(found, expected, strict=True)) <= 1e-5
    scores = [json.loads((folder / "summary.json").read_text())["loss_nats"] for folder in (run, reference)]
    assert scores[0] == pytest.approx(scores[1], abs=1e-5)


@pytest.fixture(scope="module")
def alone(launcher: Launcher, data: Path, tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """The single-process run with an optimizer, trained once."""
    folder = tmp_path_factory.mktemp("alone")

    def run(optimizer: str) -> Path:
        if not (folder / optimizer).exists():
            arguments = ["train", str(data), "--out", str(folder / optimizer), *SETTINGS, *OPTIMIZERS[optimizer]]
            launcher.run(arguments, folder / "log")
        return folder / optimizer

    return run


@pytest.mark.parametrize(
    ("optimizer", "shard"),
    [
        ("adamw", False),
        ("muon", True),
        pytest.param("muon", False, marks=pytest.mark.slow),
        pytest.param("adamw", True, marks=pytest.mark.slow),
    ],
)
def test_two_processes_learn_what_one_learns_and_runs_move_between_them(
    launcher: Launcher, alone, data: Path, tmp_path: Path, optimizer: str, shard: bool
) -> None:
    reference = alone(optimizer)
    more = ["--shard"] if shard else []
    settings = [*SETTINGS, *OPTIMIZERS[optimizer]]
    start = ["train", str(data), "--out"]
    launcher.run([*start, str(tmp_path / "two"), *settings, *more], tmp_path / "log", processes=2)
    assert_alike(tmp_path / "two", reference)
    files = {path.name for path in checkpoint_path(tmp_path / "two" / "checkpoints", 6).iterdir()}
    assert ("model-00001-of-00002.safetensors" if shard else "model.safetensors") in files
    for name, weights in final_weights(tmp_path / "two").items():
        assert torch.allclose(weights, final_weights(reference)[name], atol=1e-4), name

    moved = {"two-one": (tmp_path / "two", 1), "one-two": (reference, 2)}
    for name, (source, processes) in moved.items():
        path = tmp_path / name
        shutil.copytree(source, path)
        shutil.rmtree(checkpoint_path(path / "checkpoints", STEPS))
        launcher.run([*start, str(path), "--resume", *more], tmp_path / "log", processes)
        assert_alike(path, reference)


@pytest.mark.slow  # takes half a minute; tests/cli/test_kills.py always kills one process
def test_a_killed_process_is_restarted_and_the_run_completes(alone, data: Path, tmp_path: Path) -> None:
    optimizer, reference = "adamw", alone("adamw")
    run = tmp_path / "run"
    settings = [*SETTINGS, *OPTIMIZERS[optimizer], "--checkpoint-every", "4"]
    arguments = command(2, str(data), "--out", str(run), *settings)
    with (tmp_path / "log").open("w") as log:
        launcher = subprocess.Popen(arguments, stdout=log, stderr=log, env=environment())
        while not (run / "metrics.jsonl").is_file() or len(losses(run)) < 6:
            assert launcher.poll() is None, (tmp_path / "log").read_text()
            time.sleep(0.02)
        workers = Path(f"/proc/{launcher.pid}/task/{launcher.pid}/children").read_text().split()
        assert len(workers) == 2
        os.kill(int(workers[-1]), signal.SIGKILL)
        assert launcher.wait(timeout=300) == 0, (tmp_path / "log").read_text()
    assert "resuming from step" in (tmp_path / "log").read_text(), "the run ended before it was killed"
    assert_alike(run, reference)


# -- several machines -------------------------------------------------------------------------------------------------


def machines(folder: Path, *names: str) -> list[Path]:
    """One disk per machine, with its existing contents."""
    for name in names:
        (folder / name).mkdir(exist_ok=True)
    return [folder / name for name in names]


def kept(disk: Path, step: int) -> list[str]:
    return sorted(path.name for path in checkpoint_path(disk / "run/checkpoints", step).glob("model*"))


def forget_end(*disks: Path) -> None:
    for disk in disks:
        shutil.rmtree(checkpoint_path(disk / "run/checkpoints", STEPS))


def test_without_a_shared_disk_machines_keep_their_rows_and_any_number_resumes(
    launcher: Launcher, alone, data: Path, tmp_path: Path
) -> None:
    reference, log = alone("adamw"), tmp_path / "log"
    first, second, third, fourth = machines(tmp_path, "a", "b", "c", "d")
    start = ["train", str(data), "--out", "run"]
    settings = [*SETTINGS, *OPTIMIZERS["adamw"]]
    launcher.run([*start, *settings, "--shard"], log, disks=[first, second])
    for rank, disk in enumerate((first, second)):
        assert kept(disk, 6) == [f"model-{rank:05d}-of-00002.safetensors"]
        assert_alike(disk / "run", reference)
    forget_end(first, second)

    gathered = tmp_path / "gathered"  # copied into one folder, from which a single process resumes
    shutil.copytree(first, gathered)
    missing = "is missing; if the file is on another machine, copy the run folder from there"
    with pytest.raises(CheckpointError, match=missing):
        load_checkpoint(checkpoint_path(gathered / "run/checkpoints", 6))
    shutil.copytree(second / "run/checkpoints", gathered / "run/checkpoints", dirs_exist_ok=True)
    launcher.run([*start, "--resume"], log, disks=[gathered])
    assert_alike(gathered / "run", reference)

    disks = [third, second, first, fourth]  # in a different order, with two new disks
    launcher.run([*start, "--resume", "--shard"], log, disks=disks)
    for disk in disks:
        assert_alike(disk / "run", reference)
        assert len(kept(disk, STEPS)) == 1 and len(kept(disk, 6)) == 2


def test_without_a_shared_disk_a_machine_without_files_receives_them(
    launcher: Launcher, alone, data: Path, tmp_path: Path
) -> None:
    reference, log = alone("adamw"), tmp_path / "log"
    first, second, new = machines(tmp_path, "a", "b", "new")
    start = ["train", str(data), "--out", "run", *SETTINGS, *OPTIMIZERS["adamw"]]
    launcher.run(start, log, disks=[first, second], TORCHELASTIC_RUN_ID="song")
    assert kept(first, 6) == kept(second, 6) == ["model.safetensors"]
    forget_end(first, second)
    shutil.copytree(first, tmp_path / "copy")
    (checkpoint_path(second / "run/checkpoints", 6) / "model.safetensors").write_bytes(b"broken")
    for some in ([new, first], [second, tmp_path / "copy"]):
        # Without --resume: a second launch with the same run id resumes.
        launcher.run(start, log, disks=some, TORCHELASTIC_RUN_ID="song")
        assert "resuming from step 6 of 12, in 2 processes" in (tmp_path / "log-0").read_text()
        for disk in some:
            assert_alike(disk / "run", reference)
            assert kept(disk, 6) == ["model.safetensors"]
            load_checkpoint(checkpoint_path(disk / "run/checkpoints", 6))


def test_machines_with_a_shared_disk_write_once(launcher: Launcher, alone, data: Path, tmp_path: Path) -> None:
    start = ["train", str(data), "--out", "run", *SETTINGS, *OPTIMIZERS["adamw"], "--shard"]
    launcher.run(start, tmp_path / "log", disks=[tmp_path, tmp_path])
    assert_alike(tmp_path / "run", alone("adamw"))
    assert len(kept(tmp_path, 6)) == 2
    assert not list(tmp_path.glob(".kotha-*"))


@pytest.mark.parametrize(
    ("number", "code", "message"),
    [
        (signal.SIGTERM, 0, "another machine received a stop signal, so all processes saved a checkpoint at step "),
        (signal.SIGKILL, -signal.SIGKILL, "another process of this training run exited or cannot be reached ("),
    ],
)
def test_when_a_machine_leaves_the_others_fail_with_a_message_and_torchrun_restarts_them(
    launcher: Launcher, data: Path, tmp_path: Path, number: signal.Signals, code: int, message: str
) -> None:
    first, second = machines(tmp_path, "a", "b")
    words = ["train", str(data), "--out", "run", *SETTINGS, *OPTIMIZERS["adamw"]]
    words[words.index("--steps") + 1] = "100000"
    logs = [tmp_path / "log-0", tmp_path / "log-1"]
    processes, end = launcher.begin(words, logs, disks=[first, second]), time.monotonic() + 60
    while not (first / "run/metrics.jsonl").is_file() or len(losses(first / "run")) < 3:
        assert time.monotonic() < end, logs[0].read_text()
        time.sleep(0.02)
    os.kill(processes[1], number)
    assert [launcher.wait(each) for each in processes] == [1, code]
    assert message in logs[0].read_text() and "Traceback" not in logs[0].read_text()
    if code == 0:
        steps = [list_checkpoints(disk / "run/checkpoints")[-1] for disk in (first, second)]
        assert steps[0] == steps[1] and f"{steps[0]:,};" in logs[0].read_text()


def test_a_run_resumes_after_a_restart_or_with_the_same_launch(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path)
    assert not is_restart(folder, Ranks(restarts=1)), "there is no run to resume"
    assert not is_restart(folder, Ranks(launch="song"))
    folder.write(CONFIG, {LAUNCH: "song"})
    assert is_restart(folder, Ranks(restarts=1)) and is_restart(folder, Ranks(launch="song"))
    assert not is_restart(folder, Ranks(launch="dance")) and not is_restart(folder, Ranks())
    folder.write(CONFIG, {})
    assert not is_restart(folder, Ranks())


def test_torchruns_default_run_id_is_ignored(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TORCHELASTIC_RUN_ID", "none")
    assert ranks_here().launch is None
    monkeypatch.setenv("TORCHELASTIC_RUN_ID", "song")
    assert ranks_here().launch == "song" and ranks_here().writes and not ranks_here().several_file_systems


def test_a_checkpoint_is_complete_if_its_files_are_on_any_disks() -> None:
    three, six = ({f"{step}/model-0": "aa", f"{step}/model-1": "bb"} for step in (3, 6))
    first = OnDisk({"3/model-0": "aa", "6/model-0": "aa"}, {3: three, 6: six})
    second = OnDisk({"3/model-1": "bb", "6/model-1": "other"}, {3: three})
    assert newest_complete([first, second]) == (3, 0)
    assert newest_complete([OnDisk(), second]) is None


def test_a_batch_that_cannot_be_divided_is_rejected() -> None:
    assert Ranks(1, 2).share(8) == (4, 4)
    with pytest.raises(
        ConfigError, match="batch_size=3 cannot be divided evenly among 2 processes; use a multiple of 2, such as"
    ):
        Ranks(0, 2).share(3)


@pytest.mark.parametrize("n_rows", [1, 2, 5, 8])
def test_every_row_belongs_to_one_process(n_rows: int) -> None:
    kept = [Ranks(rank, 3, shard=True).rows(n_rows) for rank in range(3)]
    assert [row for begin, end in kept for row in range(begin, end)] == list(range(n_rows))
    cut = torch.arange(n_rows).chunk(3)  # how FSDP divides rows
    assert [end - begin for begin, end in kept][: len(cut)] == [len(part) for part in cut]
