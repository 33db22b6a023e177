"""Several processes: the same losses as one, and a run that moves between any number of them."""

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

from kotha.errors import ConfigError
from kotha.train.checkpoint import checkpoint_path, load_checkpoint
from kotha.train.distributed import Ranks

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
    """The run of one process with an optimizer, made once."""
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


@pytest.mark.slow  # half a minute; tests/cli/test_kills.py kills one process each time
def test_a_killed_process_is_started_again_and_the_run_ends_right(alone, data: Path, tmp_path: Path) -> None:
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
    assert "going on from step" in (tmp_path / "log").read_text(), "the run ended before it was killed"
    assert_alike(run, reference)


def test_a_batch_that_cannot_be_shared_is_refused() -> None:
    assert Ranks(1, 2).share(8) == (4, 4)
    with pytest.raises(ConfigError, match="batch_size=3 cannot be shared by 2 processes; use a multiple of 2, such as"):
        Ranks(0, 2).share(3)


@pytest.mark.parametrize("n_rows", [1, 2, 5, 8])
def test_every_row_has_one_keeper(n_rows: int) -> None:
    kept = [Ranks(rank, 3, shard=True).rows(n_rows) for rank in range(3)]
    assert [row for begin, end in kept for row in range(begin, end)] == list(range(n_rows))
    cut = torch.arange(n_rows).chunk(3)  # how FSDP cuts
    assert [end - begin for begin, end in kept][: len(cut)] == [len(part) for part in cut]
