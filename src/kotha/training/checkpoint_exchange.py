"""Machines that share no file system: each has the run's folder on a disk of its own, under the same path.

On each disk one process writes what the first writes elsewhere: settings, metrics, the best model. Of a checkpoint each
disk has what its processes keep: the whole of it where each has the whole model, else their rows, and a manifest that
names the files of all. So whoever copies such folders into one (``rsync``) has a whole checkpoint.

A run that goes on begins here: the newest checkpoint that is whole on all disks together is looked for, and what a
machine lacks of it is brought to it from one that has it. So it does not matter which machines come back, how many, or
in what order; a new one gets all.
"""

import hashlib
import os
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

import torch
import torch.distributed as dist

from kotha.artifacts import run_folder as runs
from kotha.errors import KothaError
from kotha.storage.atomic import whole_folder, whole_path
from kotha.storage.json_files import read_table
from kotha.storage.status import is_file, is_folder, is_there, matching
from kotha.text.tokenizer.tokenizer import FILE_NAME as TOKENIZER_FILE
from kotha.training.checkpoint import MANIFEST, checkpoint_path, list_checkpoints
from kotha.training.distributed import Ranks

_PORTION = 1 << 24  # bytes that are sent at once
# The config comes last: a folder that has one holds a run.
_OF_THE_RUN = (TOKENIZER_FILE, runs.METRICS, runs.BEST, f"{runs.BEST_MODEL}/*", runs.CONFIG)

Sums = dict[str, str]


def find_disks(ranks: Ranks, path: Path) -> Ranks:
    """See who sees whose files near a path: on each disk the first process that is there will write."""
    if ranks.on_one_machine:
        return ranks
    place = next(folder for folder in path.absolute().parents if is_folder(folder))
    mark = None
    if ranks.local_rank == 0:
        with suppress(OSError):  # whoever cannot write there says so later
            descriptor, file = tempfile.mkstemp(prefix=".kotha-seen-", dir=place)
            os.close(descriptor)
            mark = Path(file).name
    marks = ranks.each(mark)
    seen = (rank for rank, other in enumerate(marks) if other is not None and is_there(place / other))
    keepers = ranks.each(next(seen, 0))
    if mark is not None:
        (place / mark).unlink(missing_ok=True)
    return replace(ranks, keeper=keepers[ranks.rank], apart=len(set(keepers)) > 1)


@dataclass(frozen=True)
class OnDisk:
    """What a disk has of a run: the sums of its files, and of each checkpoint what should be there and what is."""

    files: Sums = field(default_factory=dict)
    named: dict[int, Sums] = field(default_factory=dict)  # by the manifest
    there: dict[int, Sums] = field(default_factory=dict)


def bring_together(path: Path, ranks: Ranks) -> None:
    """Bring each disk what it lacks of the run and of its newest whole checkpoint; all processes call this."""
    if not ranks.apart:
        return
    every = ranks.each(_held(path) if ranks.writes else OnDisk())
    whole = whole_checkpoints(every)
    if whole:
        source, step = whole[-1]
        _bring_checkpoint(path, step, every[source].named[step], every, ranks)
    else:
        source = next((rank for rank, held in enumerate(every) if runs.CONFIG in held.files), 0)
    for name, expected in every[source].files.items():
        lacking = ranks.writes and every[ranks.rank].files.get(name) != expected
        if ranks.any(lacking):
            _send(path / name, source, ranks, path / name if lacking else None)


def bring_last(path: Path, count: int, ranks: Ranks) -> list[int]:
    """The steps of the last whole checkpoints that a run has anywhere, brought to each disk that lacks a part."""
    if not ranks.apart:
        return list_checkpoints(path / runs.CHECKPOINTS)[-count:]
    every = ranks.each(_held(path) if ranks.writes else OnDisk())
    last = whole_checkpoints(every)[-count:]
    for source, step in last:
        _bring_checkpoint(path, step, every[source].named[step], every, ranks)
    return [step for _, step in last]


def whole_checkpoints(every: list[OnDisk]) -> list[tuple[int, int]]:
    """The checkpoints of which all files are on some disk, by step: a process whose disk has the manifest, the step."""
    found: dict[int, int] = {}
    for rank, held in enumerate(every):
        for step, named in held.named.items():
            if all(_holder(every, step, name, each) is not None for name, each in named.items()):
                found.setdefault(step, rank)
    return [(found[step], step) for step in sorted(found)]


def _holder(every: list[OnDisk], step: int, name: str, expected: str) -> int | None:
    return next((rank for rank, held in enumerate(every) if held.there.get(step, {}).get(name) == expected), None)


def _held(path: Path) -> OnDisk:
    files = {file.relative_to(path).as_posix(): _sum(file) for file in _files_of(path)}
    held, folder = OnDisk(files), path / runs.CHECKPOINTS
    for step in list_checkpoints(folder):
        place = checkpoint_path(folder, step)
        with suppress(KothaError, OSError):
            held.named[step] = {**read_table(place / MANIFEST), MANIFEST: _sum(place / MANIFEST)}
            held.there[step] = {file.name: _sum(file) for file in sorted(place.iterdir()) if is_file(file)}
    return held


def _files_of(path: Path) -> Iterator[Path]:
    for place in (path / pattern for pattern in _OF_THE_RUN):
        found = matching(place.parent, place.name)
        yield from (file for file in found if is_file(file) and not file.name.startswith("."))


def _bring_checkpoint(path: Path, step: int, expected: Sums, every: list[OnDisk], ranks: Ranks) -> None:
    place = checkpoint_path(path / runs.CHECKPOINTS, step)
    mine = every[ranks.rank].there.get(step, {})
    lacking = ranks.writes and any(mine.get(name) != each for name, each in expected.items())
    if not ranks.any(lacking):
        return
    with ExitStack() as stack:
        target = stack.enter_context(whole_folder(place, may_replace=lambda _: True)) if lacking else None
        for name, each in expected.items():
            holder = _holder(every, step, name, each)
            assert holder is not None, "a checkpoint that is whole has all its files somewhere"
            _send(place / name, holder, ranks, None if target is None else target / name)


def _send(file: Path, source: int, ranks: Ranks, target: Path | None) -> None:
    """Send a file of one process's disk to all; who has a target for it writes it there."""
    sends = ranks.rank == source
    left = ranks.each(file.stat().st_size if sends else 0)[source]
    with ExitStack() as stack:
        read = stack.enter_context(file.open("rb")) if sends else None
        write = stack.enter_context(stack.enter_context(whole_path(target)).open("wb")) if target is not None else None
        while left:
            count = min(left, _PORTION)
            portion = torch.empty(count, dtype=torch.uint8)
            if read is not None:
                portion = torch.frombuffer(bytearray(read.read(count)), dtype=torch.uint8)
            dist.broadcast(portion, source)
            if write is not None:
                write.write(portion.numpy().tobytes())
            left -= count


def _sum(file: Path) -> str:
    with file.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
