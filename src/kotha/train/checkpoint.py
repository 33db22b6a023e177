"""Checkpoints: whole or absent, verified, no pickle.

::

    checkpoints/step-00001000/
        model.safetensors       weights
        optimizer.safetensors   what the optimizers remember
        random.safetensors      states of the random generators
        average.safetensors     the running average of the weights, where there is one
        state.json              step, best score, and what else is a plain value
        manifest.json           the sha256 of all of these, written last

A checkpoint is written beside its place and moved there by rename, so a name in ``checkpoints/`` is a whole one.
"""

import hashlib
import json
import os
import shutil
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor

from kotha.errors import CheckpointError, KothaError
from kotha.files import whole_folder, write_whole

MANIFEST, STATE = "manifest.json", "state.json"
_PREFIX = "step-"


@dataclass
class Checkpoint:
    """What a run is at a step: tensors by file and name, and plain values."""

    step: int
    tensors: dict[str, dict[str, Tensor]] = field(default_factory=dict)
    state: dict[str, Any] = field(default_factory=dict)


def checkpoint_path(folder: Path, step: int) -> Path:
    """Where the checkpoint of a step is."""
    return folder / f"{_PREFIX}{step:08d}"


def save_checkpoint(folder: Path, checkpoint: Checkpoint) -> Path:
    """Write a checkpoint; one of the same step is replaced."""
    path = checkpoint_path(folder, checkpoint.step)
    with whole_folder(path, may_replace=lambda _: True) as partial:
        for name, tensors in checkpoint.tensors.items():
            file = partial / f"{name}.safetensors"
            save_file({key: value.detach().cpu().contiguous() for key, value in tensors.items()}, file)
            _sync(file)
        write_whole(partial / STATE, json.dumps({"step": checkpoint.step, **checkpoint.state}, indent=1))
        hashes = {file.name: _sha256(file) for file in sorted(partial.iterdir())}
        write_whole(partial / MANIFEST, json.dumps(hashes, indent=1))
    return path


def load_checkpoint(path: Path) -> Checkpoint:
    """Read a checkpoint, each file checked against its hash first."""
    verify_checkpoint(path)
    state = json.loads((path / STATE).read_text(encoding="utf-8"))
    try:
        tensors = {file.stem: load_file(file) for file in sorted(path.glob("*.safetensors"))}
    except SafetensorError as error:
        raise CheckpointError(f"{path} cannot be read: {error}") from error
    return Checkpoint(int(state.pop("step")), tensors, state)


def verify_checkpoint(path: Path) -> None:
    """Refuse a checkpoint that is not as it was written."""
    try:
        hashes = json.loads((path / MANIFEST).read_text(encoding="utf-8"))
        names = set(hashes)
    except (OSError, ValueError, TypeError) as error:
        raise CheckpointError(f"{path} has no readable {MANIFEST}, so it is not a whole checkpoint") from error
    if STATE not in names or any(Path(name).name != name for name in names):
        raise CheckpointError(f"{path / MANIFEST} does not describe a checkpoint")
    for name, expected in hashes.items():
        if not (path / name).is_file():
            raise CheckpointError(f"{path / name} is missing")
        if _sha256(path / name) != expected:
            raise CheckpointError(f"{path / name} is not the file that was saved: its sha256 differs")


def list_checkpoints(folder: Path) -> list[int]:
    """Steps that have a checkpoint, in order."""
    steps = (path.name.removeprefix(_PREFIX) for path in folder.glob(f"{_PREFIX}*") if path.is_dir())
    return sorted(int(step) for step in steps if step.isdigit())


def latest_checkpoint(folder: Path) -> Checkpoint | None:
    """The newest checkpoint that can be read; a broken one is passed over for the one before it."""
    broken: list[str] = []
    for step in reversed(list_checkpoints(folder)):
        try:
            return load_checkpoint(checkpoint_path(folder, step))
        except KothaError as error:
            broken.append(str(error))
    if broken:
        raise CheckpointError("no checkpoint can be read: " + "; ".join(broken))
    return None


def prune_checkpoints(folder: Path, keep: int, best: int | None) -> None:
    """Remove all but the newest few and the best, and what a killed run left half-written."""
    for step in list_checkpoints(folder)[:-keep]:
        if step != best:
            shutil.rmtree(checkpoint_path(folder, step))
    for leftover in folder.glob(f".{_PREFIX}*"):
        shutil.rmtree(leftover, ignore_errors=True)


def _sync(path: Path) -> None:
    with path.open("rb") as file:
        os.fsync(file.fileno())


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
