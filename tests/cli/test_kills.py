"""A training run that is killed repeatedly, even during saves, ends with the same result as an uninterrupted run.

All runs are separate processes, because changes to torch by other tests in this process could affect rounding.
"""

import json
import random
import signal
from pathlib import Path

import pytest
import torch
from tests.launching import Launcher

from kotha.training.checkpoint import checkpoint_path, load_checkpoint

SETTINGS = [
    *("--preset", "char", "--recipe", "modern", "--checkpoint-every", "3"),
    *("--set", "batch_size=2", "micro_batch_size=2", "precision=float32", "dropout=0.1"),
    *("--set", "n_layers=1", "d_model=32", "n_heads=2", "context_length=16"),
    *("--set", "evaluate_every=40", "--set", "evaluate_tokens=256", "--set", "warmup_steps=2"),
]


def command(data: Path, run: Path) -> list[str]:
    return ["train", str(data), "--out", str(run)]


def half_written(run: Path) -> list[Path]:
    return [*(run / "checkpoints").glob(".step-*"), *run.glob(".best.*")]


def start_and_kill(launcher: Launcher, arguments: list[str], run: Path, touches: int) -> bool:
    """Kill a training run at a given moment; return whether it left partial files."""
    log = run.with_name("log")
    code = launcher.wait(launcher.start_to_die(arguments, log, run, touches))
    assert code == -signal.SIGKILL, f"it ended before it could be killed: {log.read_text()}"
    return bool(half_written(run))


@pytest.mark.parametrize(("kills", "steps"), [(3, 60), pytest.param(20, 240, marks=pytest.mark.slow)])
def test_a_repeatedly_killed_run_ends_with_the_same_weights(launcher, data, tmp_path, kills, steps) -> None:
    run, untouched, moments = tmp_path / "run", tmp_path / "untouched", random.Random(kills)
    settings = [*SETTINGS, "--steps", str(steps)]
    launcher.run([*command(data, untouched), *settings], tmp_path / "log")
    broken = 0
    for _ in range(kills):
        arguments = [*command(data, run), *(["--resume"] if (run / "config.json").exists() else settings)]
        broken += start_and_kill(launcher, arguments, run, touches=moments.randrange(40, 120))
    assert broken >= kills // 4, "too few kills happened during a save"
    launcher.run([*command(data, run), "--resume"], tmp_path / "log")

    ended, expected = (load_checkpoint(checkpoint_path(path / "checkpoints", steps)) for path in (run, untouched))
    for kind, tensors in expected.tensors.items():
        for name, tensor in tensors.items():
            assert torch.equal(ended.tensors[kind][name], tensor), (kind, name)
    assert not half_written(run), "partial files of the kills are removed"
    summaries = [json.loads((path / "summary.json").read_text()) for path in (run, untouched)]
    assert summaries[0]["loss_nats"] == summaries[1]["loss_nats"]
    weights = [(path / "best" / "model.safetensors").read_bytes() for path in (run, untouched)]
    assert weights[0] == weights[1]
