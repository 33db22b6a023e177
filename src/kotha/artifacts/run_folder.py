"""A run folder: the output of a training run, from which it can be resumed.

::

    config.json      all settings, resolved: model, training, task, data, machine, versions
    tokenizer.json   the tokenizer of the data, if the model reads text
    metrics.jsonl    one line for each logged step, evaluation and sample
    checkpoints/     see checkpoint.py
    teachers/        a run folder for each teacher that is trained before the model, if there are any
    best/            the best weights so far as a model folder (see model_folder.py)
    best.json        step and score of the best weights
    summary.json     final results
    report.html      a report of the run (see report.py)
"""

import json
import math
import platform
from contextlib import suppress
from pathlib import Path
from typing import Any

import torch

import kotha
from kotha.errors import CheckpointError, KothaError, reason
from kotha.i18n.message import Option
from kotha.model.config import ModelConfig, config_from_dict
from kotha.storage.atomic import atomic_write, filled_folder
from kotha.storage.json_files import as_json, is_deep, read_table
from kotha.storage.locks import Lock
from kotha.storage.output_paths import check_folder_place, checked_path, names_in
from kotha.storage.status import exists, is_directory, is_file, reading
from kotha.text.shards import DATASET_FILE, Dataset, identity_of
from kotha.text.tokenizer.tokenizer import FILE_NAME as TOKENIZER_FILE
from kotha.text.tokenizer.tokenizer import Tokenizer

CONFIG, METRICS, SUMMARY, CHECKPOINTS = "config.json", "metrics.jsonl", "summary.json", "checkpoints"
BEST, BEST_MODEL = "best.json", "best"
TEACHERS = "teachers"
# Config key for torchrun's launch ID.
LAUNCH = "launch"
_FORMER_NAMES = {"ln V": "uniform", "ln K": "uniform over classes", "ln 2": "coin flip"}


class RunFolder:
    """The files of one run."""

    def __init__(self, path: str | Path) -> None:
        self._lock: Lock | None = None
        self.path = checked_path(path)
        self.checkpoints, self.best_model = self.path / CHECKPOINTS, self.path / BEST_MODEL

    @property
    def exists(self) -> bool:
        """Whether a run was started in this folder."""
        return exists(self.path / CONFIG)

    def start(
        self, model: ModelConfig, training: dict[str, Any], tokenizer: Tokenizer | None = None, **about: Any
    ) -> None:
        """Start a run in a folder that has none; ``about`` holds further config entries."""
        with filled_folder(self.path):
            self.claim()
            self.check_new()
            self.checkpoints.mkdir(exist_ok=True)
            if tokenizer is not None:
                tokenizer.save(self.path)
            versions = {"kotha": kotha.__version__, "torch": torch.__version__, "python": platform.python_version()}
            self.write(CONFIG, {"model": model.to_dict(), "training": training, "versions": versions, **about})

    def check_new(self) -> None:
        """Raise CheckpointError if the folder has a run, or anything else that a run could overwrite."""
        if self.exists:
            raise CheckpointError(
                "{path} already contains a run; resume it with {resume}, or choose another folder",
                path=self.path,
                resume=Option("resume", True),
            )
        if not is_directory(self.path):
            check_folder_place(self.path, lambda _: False)
        found = names_in(self.path) if is_directory(self.path) else []
        if is_directory(self.checkpoints) and not any(self.checkpoints.iterdir()):
            found = [name for name in found if name not in (CHECKPOINTS, TOKENIZER_FILE)]  # a run killed at its start
        if found:
            raise CheckpointError(
                "{path} contains {name} but no run; choose a new or empty folder", path=self.path, name=found[0]
            )

    def claim(self) -> None:
        """Lock the folder for writing until ``release`` or the end of this process."""
        if self._lock is None and is_directory(self.path):
            self._lock = Lock(self.path)

    def release(self) -> None:
        """Release the lock."""
        if self._lock is not None:
            self._lock.release()
            self._lock = None

    __del__ = release

    def change(self, training: dict[str, Any]) -> None:
        """Change the training settings of the run."""
        self.write(CONFIG, {**self.about(), "training": training})

    def machine(self) -> dict[str, Any]:
        """The machine that the run was started on; empty for a new run."""
        return mapping(self.about(), "machine") if self.exists else {}

    def about(self) -> dict[str, Any]:
        """Return the config of the run."""
        config = self._read(CONFIG)
        if config is None and not exists(self.path):
            raise CheckpointError("{path} not found; specify the folder of a training run", path=self.path)
        if config is None:
            raise CheckpointError("no run in {path}; specify the folder of a training run", path=self.path)
        return config

    def summary(self) -> dict[str, Any] | None:
        """Return the final results, or None before the end."""
        return self._read(SUMMARY)

    def best(self) -> dict[str, Any] | None:
        """Return the step and score of the best weights so far."""
        return self._read(BEST)

    def _read(self, name: str) -> dict[str, Any] | None:
        """Return the JSON object in a file, or None if there is no such file."""
        path = self.path / name
        return read_table(path, CheckpointError) if exists(path) else None

    def read(self) -> tuple[ModelConfig, dict[str, Any]]:
        """Return the model config and the training settings."""
        config = self.about()
        try:
            return config_from_dict(config["model"]), dict(config["training"])
        except (KothaError, KeyError, TypeError, ValueError) as error:
            raise CheckpointError("{path} is corrupted: {why}", path=self.path / CONFIG, why=reason(error)) from error

    def check_data(self, data: Dataset) -> None:
        """Raise CheckpointError if this is not the data that the run was started with."""
        old, new = mapping(self.about(), "data"), describe_data(data)
        if any(old.get(name, new[name]) != new[name] for name in ("tokenizer", "train_tokens", "identity")):
            raise CheckpointError(
                "{path} was started with data other than {data}; resume it with the original data, or start "
                "a new run from its model",
                path=self.path,
                data=data.path,
            )

    def log(self, **row: Any) -> None:
        """Append a line to the metrics."""
        try:
            with (self.path / METRICS).open("a", encoding="utf-8", newline="\n") as file:
                file.write(as_json(row) + "\n")
        except OSError as error:
            raise CheckpointError(
                "{path} could not be written: {why}; free disk space, and resume from the last checkpoint "
                "with {resume}",
                path=self.path / METRICS,
                why=reason(error),
                resume=Option("resume", True),
            ) from error

    def forget_after(self, step: int) -> None:
        """Remove the metrics of later steps, which a resumed run repeats."""
        path = self.path / METRICS
        if is_file(path):
            rows = [line for line in self._lines() if 0 <= _step(line) <= step]
            atomic_write(path, "".join(row + "\n" for row in rows))

    def metrics(self) -> list[dict[str, Any]]:
        """Return all logged rows, except for an incomplete last one."""
        return [json.loads(line) for line in self._lines() if _step(line) >= 0]

    def teachers(self) -> list["RunFolder"]:
        """Return the run folders of the teachers that were started, in order."""
        found = (self.path / TEACHERS / str(number) for number in range(1, len(stages_of(self.about()))))
        return [folder for folder in map(RunFolder, found) if folder.exists]

    def metrics_with_teachers(self) -> list[dict[str, Any]]:
        """Return the rows of the teachers and of the run as one series of steps."""
        rows: list[dict[str, Any]] = []
        for folder in (*self.teachers(), self):
            done = rows[-1]["step"] if rows else 0
            rows += [{**row, "step": done + row["step"]} for row in folder.metrics()]
        return rows

    def _lines(self) -> list[str]:
        """Return the metrics lines; the last may be incomplete, and samples may contain other line separators."""
        path = self.path / METRICS
        with reading(path):
            return path.read_text(encoding="utf-8", errors="replace").split("\n") if is_file(path) else []

    def write(self, name: str, value: dict[str, Any]) -> None:
        """Write a JSON object to one of the files."""
        atomic_write(self.path / name, as_json(value, indent=1))


def run_config(path: Path) -> dict[str, Any]:
    """Return the config of a run folder; empty for a model folder."""
    return RunFolder(path).about() if exists(path / METRICS) else {}


def describe_data(data: Dataset) -> dict[str, Any]:
    """Return the description of the training data for a run's config."""
    return {
        "path": str(data.path),
        "tokenizer": data.tokenizer.fingerprint,
        "train_tokens": data["train"].info.tokens,
        "identity": data.identity,
    }


def figure(row: dict[str, Any], *keys: str) -> float | None:
    """Return the finite number at nested keys in a row, or None.

    >>> figure({"loss": {"train": 2}}, "loss", "train"), figure({"steps": 10**400}, "steps"), figure({}, "steps")
    (2.0, None, None)
    """
    value: Any = row
    for key in keys:
        value = value.get(key) if isinstance(value, dict) else None
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        number = float(value)
    except OverflowError:  # an integer with hundreds of digits
        return None
    return number if math.isfinite(number) else None


def words(row: dict[str, Any], key: str) -> str | None:
    """Return a string from a row, or None."""
    value = row.get(key)
    return value if isinstance(value, str) else None


def stages_of(config: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the stages of a run with teachers, in order; empty for an ordinary run."""
    found = config.get("stages")
    return [each for each in found if isinstance(each, dict)] if isinstance(found, list) else []


def mapping(row: dict[str, Any], key: str) -> dict[str, Any]:
    """Return a nested object from a row; empty if there is none."""
    value = row.get(key)
    return value if isinstance(value, dict) else {}


def reference_losses(config: dict[str, Any]) -> dict[str, float]:
    """Return the losses of a run's baselines in nats, by name; former names are replaced."""
    known = mapping(config, "references")
    return {_FORMER_NAMES.get(name, name): nats for name in known if (nats := figure(known, name)) is not None}


def _step(line: str) -> int:
    """Return the step in a line, or -1 for an incomplete line."""
    try:
        row = json.loads(line)
        step = row["step"]
    except (ValueError, KeyError, TypeError, RecursionError):
        return -1
    return step if isinstance(step, int) and not isinstance(step, bool) and not is_deep(row) else -1


def find_data(config: dict[str, Any], run: Path) -> Path | None:
    """Return a run's data folder if it is unchanged, at its path in the config or next to the run folder; else None."""
    named = mapping(config, "data")
    path = words(named, "path")
    candidates = () if path is None else (Path(path), run.parent / Path(path).name)
    return next((each for each in candidates if _is_unchanged(each, named)), None)


def _is_unchanged(folder: Path, named: dict[str, Any]) -> bool:
    """Whether a data folder is the one recorded in a config; older configs record only its tokenizer."""
    with suppress(KothaError):
        found = read_table(folder / DATASET_FILE)
        same = named.get("identity") in (None, identity_of(found))
        return same and found.get("tokenizer") == named.get("tokenizer")
    return False
