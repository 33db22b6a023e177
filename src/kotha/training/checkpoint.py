"""Checkpoints: atomic, verified, no pickle.

::

    checkpoints/step-00001000/
        model.safetensors       weights
        optimizer.safetensors   state of the optimizers
        average.safetensors     running average of the weights, if enabled
        state.json              step, best score, and other plain values
        manifest.json           sha256 of each of these files, written last

With sharded weights, each process writes its rows to a file such as ``model-00001-of-00002.safetensors``, whose header
contains the row numbers. Any number of processes can load these files. (PyTorch's distributed checkpoints store the row
numbers in a pickle and replace files in place.) A checkpoint is written to a temporary directory, which is then
renamed.

Machines without a shared file system each have the run folder on a local disk, under the same path. On each disk, one
process writes the settings, the metrics and the best model. Each disk has the checkpoint parts of its own processes,
and a manifest that lists all parts, so merging the folders (with ``rsync``) gives a complete checkpoint. A resumed run
uses the newest checkpoint whose parts all exist on some disk, and each machine receives the files that it lacks. The
number of machines and their order may change.
"""

import hashlib
import json
import re
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from functools import reduce
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from safetensors import safe_open
from torch import Tensor

from kotha.artifacts import run_folder as runs
from kotha.errors import CheckpointError, KothaError, is_io_or_memory_error
from kotha.i18n.message import Message
from kotha.storage.atomic import (
    atomic_directory,
    atomic_path,
    atomic_write,
    clear_leftovers,
    partial_path,
    remove_directory,
)
from kotha.storage.json_files import as_json, read_table
from kotha.storage.status import is_directory, is_file, is_file_in, matching, reading
from kotha.storage.weights import reading_weights, write_weights
from kotha.text.tokenizer.tokenizer import FILE_NAME as TOKENIZER_FILE
from kotha.training.distributed import ALONE, Ranks, local

MANIFEST, STATE = "manifest.json", "state.json"
_PREFIX = "step-"
_PART = re.compile(r"-\d{5}-of-\d{5}\.safetensors$")

Tensors = dict[str, Tensor]
Sums = dict[str, str]
"""sha256 hashes of files, by path."""


@dataclass
class Checkpoint:
    """The state of a run at a step: tensors by kind and name, and plain values."""

    step: int
    tensors: dict[str, Tensors] = field(default_factory=dict)
    state: dict[str, Any] = field(default_factory=dict)


def checkpoint_path(folder: Path, step: int) -> Path:
    """The path of the checkpoint for a step."""
    return folder / f"{_PREFIX}{step:08d}"


# -- writing ----------------------------------------------------------------------------------------------------------


def save_checkpoint(folder: Path, checkpoint: Checkpoint, ranks: Ranks = ALONE) -> Path:
    """Write a checkpoint and return its path; an existing checkpoint of the same step is replaced.

    All processes call this function; each writes its own parts.
    """
    path = checkpoint_path(folder, checkpoint.step)
    with _shared_folder(path, ranks) as partial:
        if ranks.writes or ranks.sharded:
            for kind, tensors in checkpoint.tensors.items():
                part = f"-{ranks.rank:05d}-of-{ranks.world:05d}" if ranks.sharded else ""
                _write(partial / f"{kind}{part}.safetensors", tensors, ranks)
        ranks.wait()
        state = as_json({"step": checkpoint.step, **checkpoint.state}, indent=1)
        if ranks.several_file_systems:  # the same state on all disks
            state = ranks.each(state)[0]
        hashes: dict[str, str] = {}
        if ranks.writes:
            atomic_write(partial / STATE, state)
            hashes = {file.name: _sha256(file) for file in sorted(partial.iterdir())}
        if ranks.several_file_systems and ranks.sharded:  # every manifest lists the parts on all disks
            hashes = {name: each for part in ranks.each(hashes) for name, each in part.items()}
        if ranks.writes:
            atomic_write(partial / MANIFEST, json.dumps(dict(sorted(hashes.items())), indent=1))
    ranks.wait()
    return path


@contextmanager
def _shared_folder(path: Path, ranks: Ranks) -> Iterator[Path]:
    """Open a directory for all processes on a disk; one of them creates it and moves it into place."""
    if ranks.writes:
        with atomic_directory(path, may_replace=lambda _: True) as partial:
            ranks.wait()
            yield partial
    else:
        ranks.wait()
        yield partial_path(path)


def _write(file: Path, tensors: Tensors, ranks: Ranks) -> None:
    cut = {name: each for name, each in tensors.items() if ranks.sharded and each.dim()}
    # File header: for each sharded tensor, its first row in this file and its total number of rows.
    rows = {name: [ranks.rows(each.shape[0])[0], each.shape[0]] for name, each in cut.items()}
    here = {name: local(each).detach().cpu().contiguous() for name, each in tensors.items()}
    write_weights(file, here, rows=json.dumps(rows))


# -- reading ----------------------------------------------------------------------------------------------------------


def load_checkpoint(path: Path, ranks: Ranks = ALONE) -> Checkpoint:
    """Load a checkpoint after checking the hash of each file; with sharded weights, load only this process's rows."""
    names = verify_checkpoint(path)
    state = read_table(path / STATE, CheckpointError)
    if "step" not in state:
        raise CheckpointError("{path} is corrupted: it has no step", path=path / STATE)
    kinds: dict[str, list[Path]] = {}
    for name in sorted(each for each in names if each.endswith(".safetensors")):
        kinds.setdefault(Path(name).stem.split("-")[0], []).append(path / name)
    try:
        tensors = {kind: _read(files, ranks) for kind, files in kinds.items()}
    except (ValueError, KeyError) as error:
        raise CheckpointError("{path} cannot be read: {error}", path=path, error=error) from error
    return Checkpoint(state.pop("step"), tensors, state)


def _read(files: list[Path], ranks: Ranks) -> Tensors:
    """Return the tensors of one kind, concatenated from the files that contain their rows."""
    pieces: dict[str, list[Tensor]] = {}
    for path in files:
        with reading_weights(path, CheckpointError), safe_open(path, "pt") as file:
            cut = json.loads((file.metadata() or {}).get("rows", "{}"))
            for name in file.keys():  # noqa: SIM118 (no mapping)
                if name not in cut and name in pieces:
                    continue  # replicated, so it is equal in all files
                piece = _rows_for(file.get_slice(name), cut.get(name), ranks)
                pieces.setdefault(name, []).append(piece)
    return {name: torch.cat(some) if len(some) > 1 else some[0] for name, some in pieces.items()}


def _rows_for(stored: Any, cut: list[int] | None, ranks: Ranks) -> Tensor:
    """Return the rows of a stored part that belong to this process."""
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
    """Return the hashes of a checkpoint's files; raise an error if a file is missing or was changed."""
    try:
        hashes = read_table(path / MANIFEST)
    except KothaError as error:
        raise CheckpointError(
            "{path} has no readable {file}, so it is not a complete checkpoint", path=path, file=MANIFEST
        ) from error
    if STATE not in hashes or any(Path(name).name != name for name in hashes):
        raise CheckpointError("{path} is not a checkpoint manifest", path=path / MANIFEST)
    for name, expected in hashes.items():
        if not is_file_in(path, name):
            copied = Message("; if the file is on another machine, copy the run folder from there")
            elsewhere = copied if _PART.search(name) else ""
            raise CheckpointError("{path} is missing{elsewhere}", path=path / name[:200], elsewhere=elsewhere)
        if _sha256(path / name) != expected:
            raise CheckpointError("{path} was changed after it was saved: its sha256 differs", path=path / name)
    return hashes


def list_checkpoints(folder: Path) -> list[int]:
    """Return the steps of the saved checkpoints, sorted."""
    steps = (path.name.removeprefix(_PREFIX) for path in matching(folder, f"{_PREFIX}*") if is_directory(path))
    return sorted(int(step) for step in steps if step.isdigit())


def latest_checkpoint(folder: Path, ranks: Ranks = ALONE) -> Checkpoint | None:
    """Return the newest valid checkpoint; corrupted ones are skipped.

    I/O and memory errors are raised, because resuming from an older checkpoint would discard steps.
    """
    broken: list[KothaError | Message] = []
    for step in reversed(list_checkpoints(folder)):
        try:
            return load_checkpoint(checkpoint_path(folder, step), ranks)
        except KothaError as error:
            if is_io_or_memory_error(error):
                raise
            broken.append(error)
    if broken:
        every = reduce(lambda first, second: Message("{first}; {second}", first=first, second=second), broken)
        raise CheckpointError("no checkpoint can be read: {every}", every=every)
    return None


def prune_checkpoints(folder: Path, keep: int, best: int | None, newest: int | None = None) -> None:
    """Remove all checkpoints except the best and the ``keep`` newest, and any leftovers of a killed run.

    ``newest`` is the step of the newest valid checkpoint. Later ones are corrupted and do not count towards ``keep``.
    """
    clear_leftovers(folder, f"{_PREFIX}*")
    steps = [step for step in list_checkpoints(folder) if newest is None or step <= newest]
    for step in steps[:-keep]:
        if step != best:
            remove_directory(checkpoint_path(folder, step))


def _sha256(path: Path) -> str:
    with reading(path), path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


# -- several disks -----------------------------------------------------------------------------------------------------


_CHUNK = 1 << 24  # bytes per message
# The config is copied last, because its presence marks a run folder.
_OF_THE_RUN = (TOKENIZER_FILE, runs.METRICS, runs.BEST, f"{runs.BEST_MODEL}/*", runs.CONFIG)


@dataclass(frozen=True)
class OnDisk:
    """The files of a run on one disk and, for each step, the files that its checkpoint should have."""

    files: Sums = field(default_factory=dict)
    manifests: dict[int, Sums] = field(default_factory=dict)


def copy_missing_files(path: Path, ranks: Ranks) -> None:
    """Copy to each disk the missing files of the run and of its newest complete checkpoint.

    All processes call this function.
    """
    if not ranks.several_file_systems:
        return
    every = ranks.each(_files_on_disk(path) if ranks.writes else OnDisk())
    started = next((rank for rank, held in enumerate(every) if runs.CONFIG in held.files), 0)
    step, source = newest_complete(every) or (-1, started)
    wanted = every[source].manifests.get(step, {})  # the manifest is copied last; without it a checkpoint is invalid
    of_the_run = {name: each for name, each in every[source].files.items() if not name.startswith(runs.CHECKPOINTS)}
    for name, expected in {**wanted, **of_the_run}.items():
        missing = ranks.writes and every[ranks.rank].files.get(name) != expected
        if ranks.any(missing):
            holder = _holder(every, name, expected)
            assert holder is not None, "all files of a complete checkpoint are on some disk"
            _send(path / name, holder, ranks, path / name if missing else None)


def newest_complete(every: list[OnDisk]) -> tuple[int, int] | None:
    """Return the newest step whose files all exist on some disk, and the rank of a process with its manifest."""
    complete = [
        (step, rank)
        for rank, held in enumerate(every)
        for step, listed in held.manifests.items()
        if all(_holder(every, name, each) is not None for name, each in listed.items())
    ]
    return max(complete, key=lambda each: each[0], default=None)


def _holder(every: list[OnDisk], name: str, expected: str) -> int | None:
    return next((rank for rank, held in enumerate(every) if held.files.get(name) == expected), None)


def _files_on_disk(path: Path) -> OnDisk:
    held = OnDisk()
    for step in list_checkpoints(path / runs.CHECKPOINTS):
        directory = checkpoint_path(path / runs.CHECKPOINTS, step)
        with suppress(KothaError, OSError):
            sums = {**read_table(directory / MANIFEST), MANIFEST: _sha256(directory / MANIFEST)}
            held.manifests[step] = {
                (directory / name).relative_to(path).as_posix(): each for name, each in sums.items()
            }
            held.files.update(_sums(path, directory / "*"))
    for pattern in _OF_THE_RUN:
        held.files.update(_sums(path, path / pattern))
    return held


def _sums(run: Path, pattern: Path) -> Sums:
    files = (file for file in matching(pattern.parent, pattern.name) if is_file(file) and file.name[0] != ".")
    return {file.relative_to(run).as_posix(): _sha256(file) for file in files}


def _send(file: Path, source: int, ranks: Ranks, target: Path | None) -> None:
    """Send a file from one process to all others; a process with a ``target`` writes it there."""
    sends = ranks.rank == source
    left = ranks.each(file.stat().st_size if sends else 0)[source]
    with ExitStack() as stack:
        read = stack.enter_context(file.open("rb")) if sends else None
        write = stack.enter_context(stack.enter_context(atomic_path(target)).open("wb")) if target is not None else None
        while left:
            count = min(left, _CHUNK)
            chunk = torch.empty(count, dtype=torch.uint8)
            if read is not None:
                chunk = torch.frombuffer(bytearray(read.read(count)), dtype=torch.uint8)
            dist.broadcast(chunk, source)
            if write is not None:
                write.write(chunk.numpy().tobytes())
            left -= count
