"""Benchmarks that stand on the package's inner parts still run, on sizes that take seconds."""

import json
import os
import subprocess
import sys
from pathlib import Path

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


def test_training_speed_is_measured(tmp_path: Path) -> None:
    command = [sys.executable, str(BENCHMARKS / "train_speed.py"), "--only", "tiny", "--steps", "8"]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    subprocess.run([*command, "--out", str(tmp_path)], check=True, capture_output=True, env=environment)
    (row,) = json.loads((tmp_path / "train_speed.json").read_text(encoding="utf-8"))["figures"]
    assert row["case"] == "tiny" and row["tokens_per_second"] > 0 and row["loss_nats"] > 0
