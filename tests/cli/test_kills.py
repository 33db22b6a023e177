"""A training that is killed again and again, in the middle of saves too, ends as if nothing had happened."""

import json
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch

from kotha.cli.main import main
from kotha.train.checkpoint import checkpoint_path, load_checkpoint

SETTINGS = [
    *("--preset", "char", "--recipe", "modern", "--checkpoint-every", "3"),
    *("--set", "batch_size=2", "--set", "precision=float32", "--set", "dropout=0.1"),
    *("--set", "evaluate_every=40", "--set", "evaluate_tokens=256", "--set", "warmup_steps=2"),
]


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("data")
    stories, tokenizer = str(folder / "s.jsonl"), str(folder / "tok")
    assert main(["corpus", "stories", "--documents", "60", "--out", stories]) == 0
    assert main(["tokenizer", "train", stories, "--vocab-size", "2000", "--out", tokenizer]) == 0
    assert main(["prepare", stories, "--tokenizer", tokenizer, "--out", str(folder / "data")]) == 0
    return folder / "data"


def command(data: Path, run: Path) -> list[str]:
    return [sys.executable, "-m", "kotha", "train", str(data), "--out", str(run)]


def steps_done(run: Path) -> int:
    file = run / "metrics.jsonl"
    return len(file.read_bytes().splitlines()) if file.is_file() else 0


def half_written(run: Path) -> list[Path]:
    return [*(run / "checkpoints").glob(".step-*"), *run.glob(".best.*")]


def start_and_kill(arguments: list[str], run: Path, in_a_save: bool, delay: float) -> bool:
    """Start a training, let it learn a little, and kill it; True if something was left half-written."""
    before = steps_done(run)
    process = subprocess.Popen(arguments, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    while steps_done(run) == before:  # the metrics of steps to be done again are dropped first, so this sees a change
        assert process.poll() is None, process.communicate()
        time.sleep(0.002)
    if in_a_save:
        while not half_written(run) and process.poll() is None:
            pass
    else:
        time.sleep(delay)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    assert process.returncode == -signal.SIGKILL, "it ended before it could be killed; make it longer"
    return bool(half_written(run))


@pytest.mark.parametrize(("kills", "steps"), [(3, 60), pytest.param(20, 240, marks=pytest.mark.slow)])
def test_killed_at_random_moments_it_ends_bit_for_bit_the_same(data, tmp_path: Path, kills: int, steps: int) -> None:
    run, untouched, moments = tmp_path / "run", tmp_path / "untouched", random.Random(kills)
    settings = [*SETTINGS, "--steps", str(steps)]
    subprocess.run([*command(data, untouched), *settings], check=True, capture_output=True)
    broken = 0
    for number in range(kills):
        arguments = [*command(data, run), *(["--resume"] if (run / "config.json").exists() else settings)]
        broken += start_and_kill(arguments, run, in_a_save=number % 3 == 1, delay=moments.uniform(0, 0.05))
    assert broken >= kills // 4, "too few were killed in the middle of a save"
    subprocess.run([*command(data, run), "--resume"], check=True, capture_output=True)

    ended, expected = (load_checkpoint(checkpoint_path(path / "checkpoints", steps)) for path in (run, untouched))
    for kind, tensors in expected.tensors.items():
        for name, tensor in tensors.items():
            assert torch.equal(ended.tensors[kind][name], tensor), (kind, name)
    assert not half_written(run), "what the kills left behind is cleared away"
    summaries = [json.loads((path / "summary.json").read_text()) for path in (run, untouched)]
    assert summaries[0]["loss_nats"] == summaries[1]["loss_nats"]
    weights = [(path / "best" / "model.safetensors").read_bytes() for path in (run, untouched)]
    assert weights[0] == weights[1]
