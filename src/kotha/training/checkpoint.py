"""Checkpoints: whole or absent, verified, no pickle.

::

    checkpoints/step-00001000/
        model.safetensors       weights
        optimizer.safetensors   what the optimizers remember
        average.safetensors     the running average of the weights, where there is one
        state.json              step, best score, and what else is a plain value
        manifest.json           the sha256 of all of these, written last

Where several processes keep a part of each weight, each writes its rows: ``model-00001-of-00002.safetensors``, whose
header says which rows they are. Any number of processes can read them back. (torch's own distributed checkpoints say
this in a pickle, and replace files in place.) A checkpoint is written beside its place and moved there by rename.
"""

import hashlib
import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import reduce
from pathlib import Path
from typing import Any

import torch
from safetensors import safe_open
from torch import Tensor

from kotha.errors import CheckpointError, KothaError, is_of_the_machine
from kotha.i18n.message import Message
from kotha.storage.atomic import (
    atomic_directory,
    atomic_write,
    clear_leftovers,
    partial_path,
    remove_directory,
)
from kotha.storage.json_files import as_json, read_table
from kotha.storage.status import is_directory, is_file_in, matching, reading
from kotha.storage.weights import reading_weights, write_weights
from kotha.training.distributed import ALONE, Ranks, local

MANIFEST, STATE = "manifest.json", "state.json"
_PREFIX = "step-"

Tensors = dict[str, Tensor]
Sums = dict[str, str]
"""Files by their path, and the sha256 of each."""


@dataclass
class Checkpoint:
    """What a run is at a step: tensors by kind and name, and plain values."""

    step: int
    tensors: dict[str, Tensors] = field(default_factory=dict)
    state: dict[str, Any] = field(default_factory=dict)


def checkpoint_path(folder: Path, step: int) -> Path:
    """Where the checkpoint of a step is."""
    return folder / f"{_PREFIX}{step:08d}"


# -- writing ----------------------------------------------------------------------------------------------------------


def save_checkpoint(folder: Path, checkpoint: Checkpoint, ranks: Ranks = ALONE) -> Path:
    """Write a checkpoint; one of the same step is replaced. All processes call this; each writes what it has."""
    path = checkpoint_path(folder, checkpoint.step)
    with _shared_folder(path, ranks) as partial:
        if ranks.is_first or ranks.sharded:
            for kind, tensors in checkpoint.tensors.items():
                part = f"-{ranks.rank:05d}-of-{ranks.world:05d}" if ranks.sharded else ""
                _write(partial / f"{kind}{part}.safetensors", tensors, ranks)
        ranks.wait()
        if ranks.is_first:
            atomic_write(partial / STATE, as_json({"step": checkpoint.step, **checkpoint.state}, indent=1))
            hashes = {file.name: _sha256(file) for file in sorted(partial.iterdir())}
            atomic_write(partial / MANIFEST, json.dumps(hashes, indent=1))
    ranks.wait()
    return path


@contextmanager
def _shared_folder(path: Path, ranks: Ranks) -> Iterator[Path]:
    """A folder that all processes write into, made and moved into place by the first."""
    if ranks.is_first:
        with atomic_directory(path, may_replace=lambda _: True) as partial:
            ranks.wait()
            yield partial
    else:
        ranks.wait()
        partial = partial_path(path)
        if ranks.sharded and not is_directory(partial):
            said = "{path} is not there for this machine; several machines need a folder that all of them see"
            raise CheckpointError(said, path=path.parent)
        yield partial


def _write(file: Path, tensors: Tensors, ranks: Ranks) -> None:
    cut = {name: each for name, each in tensors.items() if ranks.sharded and each.dim()}
    # In the file's header: for each tensor cut by rows its first row here, and how many it has in all.
    rows = {name: [ranks.rows(each.shape[0])[0], each.shape[0]] for name, each in cut.items()}
    here = {name: local(each).detach().cpu().contiguous() for name, each in tensors.items()}
    write_weights(file, here, rows=json.dumps(rows))


# -- reading ----------------------------------------------------------------------------------------------------------


def load_checkpoint(path: Path, ranks: Ranks = ALONE) -> Checkpoint:
    """Read a checkpoint, each file checked against its hash first; of sharded weights, the rows of this process."""
    names = verify_checkpoint(path)
    state = read_table(path / STATE, CheckpointError)
    if "step" not in state:
        raise CheckpointError("{path} is broken: it has no step", path=path / STATE)
    kinds: dict[str, list[Path]] = {}
    for name in sorted(each for each in names if each.endswith(".safetensors")):
        kinds.setdefault(Path(name).stem.split("-")[0], []).append(path / name)
    try:
        tensors = {kind: _read(files, ranks) for kind, files in kinds.items()}
    except (ValueError, KeyError) as error:
        raise CheckpointError("{path} cannot be read: {error}", path=path, error=error) from error
    return Checkpoint(state.pop("step"), tensors, state)


def _read(files: list[Path], ranks: Ranks) -> Tensors:
    """The tensors of one kind, put together from the files that hold their rows."""
    pieces: dict[str, list[Tensor]] = {}
    for path in files:
        with reading_weights(path, CheckpointError), safe_open(path, "pt") as file:
            cut = json.loads((file.metadata() or {}).get("rows", "{}"))
            for name in file.keys():  # noqa: SIM118 (no mapping)
                if name not in cut and name in pieces:
                    continue  # each process wrote the same
                piece = _rows_for(file.get_slice(name), cut.get(name), ranks)
                pieces.setdefault(name, []).append(piece)
    return {name: torch.cat(some) if len(some) > 1 else some[0] for name, some in pieces.items()}


def _rows_for(stored: Any, cut: list[int] | None, ranks: Ranks) -> Tensor:
    """Those rows of a stored piece that this process keeps."""
    shape = stored.get_shape()
    if not shape:
        value: Tensor = stored[...]
        return value
    first, n_rows = cut or (0, shape[0])
    begin, end = ranks.rows(n_rows)
    begin, end = (min(max(row - first, 0), shape[0]) for row in (begin, end))
    rows: Tensor = stored[begin:end]
    return rows


def verify_checkpoint(path: Path) -> Sums:
    """Refuse a checkpoint that is not as it was written; returns its files."""
    try:
        hashes = read_table(path / MANIFEST)
    except KothaError as error:
        raise CheckpointError(
            "{path} has no readable {file}, so it is not a whole checkpoint", path=path, file=MANIFEST
        ) from error
    if STATE not in hashes or any(Path(name).name != name for name in hashes):
        raise CheckpointError("{path} does not describe a checkpoint", path=path / MANIFEST)
    for name, expected in hashes.items():
        if not is_file_in(path, name):
            raise CheckpointError("{path} is missing", path=path / name[:200])
        if _sha256(path / name) != expected:
            raise CheckpointError("{path} is not the file that was saved: its sha256 differs", path=path / name)
    return hashes


def list_checkpoints(folder: Path) -> list[int]:
    """Steps that have a checkpoint, in order."""
    steps = (path.name.removeprefix(_PREFIX) for path in matching(folder, f"{_PREFIX}*") if is_directory(path))
    return sorted(int(step) for step in steps if step.isdigit())


def latest_checkpoint(folder: Path, ranks: Ranks = ALONE) -> Checkpoint | None:
    """The newest checkpoint that is whole; a broken one is passed over for the one before it.

    One that this machine cannot read just now is not broken: to go on from an older one would throw its steps away.
    """
    broken: list[KothaError | Message] = []
    for step in reversed(list_checkpoints(folder)):
        try:
            return load_checkpoint(checkpoint_path(folder, step), ranks)
        except KothaError as error:
            if is_of_the_machine(error):
                raise
            broken.append(error)
    if broken:
        every = reduce(lambda first, second: Message("{first}; {second}", first=first, second=second), broken)
        raise CheckpointError("no checkpoint can be read: {every}", every=every)
    return None


def prune_checkpoints(folder: Path, keep: int, best: int | None, newest: int | None = None) -> None:
    """Remove all but the newest few and the best, and what a killed run left half-written, or half-removed.

    ``newest``: the last that is whole. What is newer is broken, and no reason to let an older one go.
    """
    clear_leftovers(folder, f"{_PREFIX}*")
    steps = [step for step in list_checkpoints(folder) if newest is None or step <= newest]
    for step in steps[:-keep]:
        if step != best:
            remove_directory(checkpoint_path(folder, step))


def _sha256(path: Path) -> str:
    with reading(path), path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
