"""A run folder: what a training leaves behind, and what it goes on from.

::

    config.json      all settings, resolved: model, training, task, data, machine, versions
    tokenizer.json   the tokenizer of the data, where the model reads text
    metrics.jsonl    a line for each logged step, evaluation and sample
    checkpoints/     see checkpoint.py
    best/            the best weights so far as a model folder (see model_folder.py)
    best.json        which step's they are, and their score
    summary.json     the end of the run in a few numbers
    report.html      the run on one page (see report.py)
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
# In the config: what torchrun called the processes that began it.
LAUNCH = "launch"


class RunFolder:
    """The files of one run."""

    def __init__(self, path: str | Path) -> None:
        self._lock: Lock | None = None
        self.path = checked_path(path)
        self.checkpoints, self.best_model = self.path / CHECKPOINTS, self.path / BEST_MODEL

    @property
    def exists(self) -> bool:
        """Has a run been started here?"""
        return exists(self.path / CONFIG)

    def start(
        self, model: ModelConfig, training: dict[str, Any], tokenizer: Tokenizer | None = None, **about: Any
    ) -> None:
        """Begin a run in a folder that has none yet; ``about`` is what else the config should tell."""
        with filled_folder(self.path):
            self.claim()
            self.check_new()
            self.checkpoints.mkdir(exist_ok=True)
            if tokenizer is not None:
                tokenizer.save(self.path)
            versions = {"kotha": kotha.__version__, "torch": torch.__version__, "python": platform.python_version()}
            self.write(CONFIG, {"model": model.to_dict(), "training": training, "versions": versions, **about})

    def check_new(self) -> None:
        """Refuse a folder in which a run was started, or with anything else that a run could write over."""
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
            found = [name for name in found if name not in (CHECKPOINTS, TOKENIZER_FILE)]  # killed as it began
        if found:
            raise CheckpointError(
                "{path} contains {name} but no run; choose a new or empty folder", path=self.path, name=found[0]
            )

    def claim(self) -> None:
        """Be the only one who writes here, until ``release`` or the end of this process, however it ends."""
        if self._lock is None and is_directory(self.path):
            self._lock = Lock(self.path)

    def release(self) -> None:
        """Let others write here again."""
        if self._lock is not None:
            self._lock.let_go()
            self._lock = None

    __del__ = release

    def change(self, training: dict[str, Any]) -> None:
        """Go on with other settings than the run was started with."""
        self.write(CONFIG, {**self.about(), "training": training})

    def machine(self) -> dict[str, Any]:
        """The machine that a run began on; empty for a run that is new."""
        return mapping(self.about(), "machine") if self.exists else {}

    def about(self) -> dict[str, Any]:
        """All that the config tells."""
        config = self._read(CONFIG)
        if config is None:
            raise CheckpointError("no run in {path}; name the folder of a training run", path=self.path)
        return config

    def summary(self) -> dict[str, Any] | None:
        """The end of the run in a few numbers; None before it has come."""
        return self._read(SUMMARY)

    def best(self) -> dict[str, Any] | None:
        """Step and score of the best weights so far."""
        return self._read(BEST)

    def _read(self, name: str) -> dict[str, Any] | None:
        """A file with one table; None where there is no such file."""
        path = self.path / name
        return read_table(path, CheckpointError) if exists(path) else None

    def read(self) -> tuple[ModelConfig, dict[str, Any]]:
        """The model's config and the settings of the run in this folder."""
        config = self.about()
        try:
            return config_from_dict(config["model"]), dict(config["training"])
        except (KothaError, KeyError, TypeError, ValueError) as error:
            raise CheckpointError("{path} is broken: {why}", path=self.path / CONFIG, why=reason(error)) from error

    def check_data(self, data: Dataset) -> None:
        """Refuse other data than the run began with: what each step reads would be another thing."""
        began, now = mapping(self.about(), "data"), describe_data(data)
        if any(began.get(name, now[name]) != now[name] for name in ("tokenizer", "train_tokens", "identity")):
            raise CheckpointError(
                "{path} was started with other data than {data}; resume it with its own data, or start a new "
                "run from its model",
                path=self.path,
                data=data.path,
            )

    def log(self, **row: Any) -> None:
        """Add a line to the metrics."""
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
        """Drop the metrics of steps that a resumed run will do again."""
        path = self.path / METRICS
        if is_file(path):
            rows = [line for line in self._lines() if 0 <= _step(line) <= step]
            atomic_write(path, "".join(row + "\n" for row in rows))

    def metrics(self) -> list[dict[str, Any]]:
        """All logged lines; one that was cut off by a kill is left out."""
        return [json.loads(line) for line in self._lines() if _step(line) >= 0]

    def _lines(self) -> list[str]:
        """A kill may have cut the last line, inside a letter even; samples may hold line ends of other kinds."""
        path = self.path / METRICS
        with reading(path):
            return path.read_text(encoding="utf-8", errors="replace").split("\n") if is_file(path) else []

    def write(self, name: str, value: dict[str, Any]) -> None:
        """Write one of the files with one table."""
        atomic_write(self.path / name, as_json(value, indent=1))


def run_config(path: Path) -> dict[str, Any]:
    """What a run folder tells of itself; empty for a model folder."""
    return RunFolder(path).about() if exists(path / METRICS) else {}


def describe_data(data: Dataset) -> dict[str, Any]:
    """What a run's config tells of the data that it learns from."""
    return {
        "path": str(data.path),
        "tokenizer": data.tokenizer.fingerprint,
        "train_tokens": data["train"].info.tokens,
        "identity": data.identity,
    }


def figure(row: dict[str, Any], *keys: str) -> float | None:
    """A finite number somewhere in what a run wrote, or None.

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
    except OverflowError:  # a whole number with hundreds of digits
        return None
    return number if math.isfinite(number) else None


def words(row: dict[str, Any], key: str) -> str | None:
    """A text in what a run wrote, or None."""
    value = row.get(key)
    return value if isinstance(value, str) else None


def mapping(row: dict[str, Any], key: str) -> dict[str, Any]:
    """A part of a row that has parts itself; empty where there is none."""
    value = row.get(key)
    return value if isinstance(value, dict) else {}


def _step(line: str) -> int:
    """The step of a line; -1 for one that is not whole."""
    try:
        row = json.loads(line)
        step = row["step"]
    except (ValueError, KeyError, TypeError, RecursionError):
        return -1
    return step if isinstance(step, int) and not isinstance(step, bool) and not is_deep(row) else -1


def find_data(config: dict[str, Any], run: Path) -> Path | None:
    """The data folder that a run's config names, where it still is as it was: there, or beside the run folder."""
    named = mapping(config, "data")
    place = words(named, "path")
    places = () if place is None else (Path(place), run.parent / Path(place).name)
    return next((path for path in places if _is_still(path, named)), None)


def _is_still(folder: Path, named: dict[str, Any]) -> bool:
    """Whether a data folder is the one that a config names; older configs knew only its tokenizer."""
    with suppress(KothaError):
        found = read_table(folder / DATASET_FILE)
        same = named.get("identity") in (None, identity_of(found))
        return same and found.get("tokenizer") == named.get("tokenizer")
    return False
