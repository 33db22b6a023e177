"""A run folder: what a training leaves behind, and what it goes on from.

::

    config.json      all settings, resolved: model, training, data, versions
    tokenizer.json   the tokenizer of the data
    metrics.jsonl    a line for each logged step, evaluation and sample
    checkpoints/     see checkpoint.py
    best.json        which checkpoint is the best, and its score
    summary.json     the end of the run in a few numbers
"""

import json
import math
import platform
from pathlib import Path
from typing import Any

import torch

import kotha
from kotha.errors import CheckpointError
from kotha.files import write_whole
from kotha.model.config import ModelConfig, config_from_dict
from kotha.text.shards import Dataset
from kotha.text.tokenizer import Tokenizer
from kotha.train.config import TrainConfig

CONFIG, METRICS, SUMMARY, BEST, CHECKPOINTS = "config.json", "metrics.jsonl", "summary.json", "best.json", "checkpoints"


class RunFolder:
    """The files of one run."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)

    @property
    def checkpoints(self) -> Path:
        """Where the checkpoints are."""
        return self.path / CHECKPOINTS

    def start(self, model: ModelConfig, training: TrainConfig, data: Dataset) -> None:
        """Begin a run in a folder that has none yet."""
        if (self.path / CONFIG).exists():
            raise CheckpointError(f"{self.path} holds a run; go on with --resume, or choose another --out")
        config = {
            "model": model.to_dict(),
            "training": training.to_dict(),
            "data": {"path": str(data.path), "tokenizer": data.tokenizer.fingerprint},
            "versions": {"kotha": kotha.__version__, "torch": torch.__version__, "python": platform.python_version()},
        }
        data.tokenizer.save(self.path)
        write_whole(self.path / CONFIG, json.dumps(config, indent=1, ensure_ascii=False))
        self.checkpoints.mkdir(exist_ok=True)

    def read(self) -> tuple[ModelConfig, TrainConfig]:
        """The settings of the run in this folder."""
        try:
            config = json.loads((self.path / CONFIG).read_text(encoding="utf-8"))
            return config_from_dict(config["model"]), TrainConfig().change(**config["training"])
        except FileNotFoundError as error:
            raise CheckpointError(f"{self.path} holds no run; start one without --resume") from error
        except (ValueError, KeyError, TypeError) as error:
            raise CheckpointError(f"{self.path / CONFIG} is broken: {error}") from error

    def check_data(self, data: Dataset) -> None:
        """Refuse data that another tokenizer made."""
        mine = Tokenizer.load(self.path).fingerprint
        if mine != data.tokenizer.fingerprint:
            raise CheckpointError(
                f"{self.path} was trained with tokenizer {mine}, but {data.path} was made with "
                f"{data.tokenizer.fingerprint}; resume with the data of the run"
            )

    def log(self, **row: Any) -> None:
        """Add a line to the metrics."""
        with (self.path / METRICS).open("a", encoding="utf-8") as file:
            file.write(json.dumps(_finite(row), ensure_ascii=False) + "\n")

    def forget_after(self, step: int) -> None:
        """Drop the metrics of steps that a resumed run will do again."""
        path = self.path / METRICS
        if path.is_file():
            rows = [line for line in path.read_text(encoding="utf-8").splitlines() if _step(line) <= step]
            write_whole(path, "".join(row + "\n" for row in rows))

    def metrics(self) -> list[dict[str, Any]]:
        """All logged lines; one that was cut off by a kill is left out."""
        path = self.path / METRICS
        lines = path.read_text(encoding="utf-8").splitlines() if path.is_file() else []
        return [json.loads(line) for line in lines if _step(line) >= 0]

    def write(self, name: str, value: dict[str, Any]) -> None:
        """Write ``summary.json`` or ``best.json``."""
        write_whole(self.path / name, json.dumps(_finite(value), indent=1, ensure_ascii=False))


def _step(line: str) -> int:
    try:
        return int(json.loads(line)["step"])
    except (ValueError, KeyError, TypeError):
        return -1


def _finite(row: dict[str, Any]) -> dict[str, Any]:
    """JSON has no infinity: such a number becomes null."""
    return {key: None if isinstance(value, float) and not math.isfinite(value) else value for key, value in row.items()}
