"""Checkpoints to go on from: whole or absent, verified, no pickle; and the best weights of a run, to take away.

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

All processes of a distributed run call the functions of a `Checkpointer`; who writes what is decided there.
"""

import hashlib
import json
import math
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field
from functools import cached_property, reduce
from pathlib import Path
from typing import Any

import torch
from safetensors import safe_open
from torch import Tensor

from kotha.artifacts import model_folder as bundle
from kotha.artifacts import run_folder as runs
from kotha.artifacts.run_folder import RunFolder
from kotha.errors import CheckpointError, KothaError, is_of_the_machine
from kotha.i18n.message import Message, Text
from kotha.model.family import Model, build
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
from kotha.training.adapter import FOLDER, base_fingerprint, merged, save_adapter
from kotha.training.config import TrainConfig
from kotha.training.distributed import ALONE, Ranks, local, whole
from kotha.training.optim import Average, Optimizers, copy_into, swapped_weights
from kotha.training.tasks.task import Score, Task

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


# -- of a run ----------------------------------------------------------------------------------------------------------


@dataclass
class Checkpointer:
    """The parts of a run that last, and where they go."""

    folder: RunFolder
    model: Model
    config: TrainConfig
    task: Task
    optimizers: Optimizers
    average: Average | None
    ranks: Ranks

    def save(self, step: int, state: dict[str, Any], best: int | None) -> None:
        """Write a checkpoint of this moment, and let old ones go."""
        tensors: dict[str, dict[str, Tensor]] = {
            "model": {name: each.detach() for name, each in self.model.named_parameters()},
            "optimizer": self.optimizers.state(),
        }
        if self.average is not None:
            tensors["average"] = self.average.tensors
            state = {**state, "average_updates": self.average.updates}
        save_checkpoint(self.folder.checkpoints, Checkpoint(step, tensors, state), self.ranks)
        if self.ranks.is_first:
            prune_checkpoints(self.folder.checkpoints, self.config.keep_checkpoints, best)

    def restore(self) -> dict[str, Any]:
        """Go on from the last checkpoint that is whole: its state, empty where there is none.

        What was to go when that one was saved goes now, if the run was killed between the two.
        """
        saved = latest_checkpoint(self.folder.checkpoints, self.ranks) or Checkpoint(0)
        state = saved.state
        if self.ranks.is_first:
            keep, best = self.config.keep_checkpoints, state.get("best_step")
            prune_checkpoints(self.folder.checkpoints, keep, best, newest=saved.step)
            clear_leftovers(self.folder.path, "best")
            self.folder.forget_after(saved.step)
        if not saved.tensors:
            return {}
        missing = {name for name, _ in self.model.named_parameters()} - saved.tensors["model"].keys()
        if missing:
            raise KeyError(f"without {min(missing)}")
        copy_into(self.model, saved.tensors["model"])
        self.optimizers.load_state(saved.tensors["optimizer"])
        if self.average is not None:
            self.average.load(saved.tensors["average"], state.get("average_updates", 0))
        best_loss = math.inf if state["best_loss"] is None else state["best_loss"]  # JSON has no infinity
        return {**state, "step": saved.step, "best_loss": best_loss}

    def last_good(self) -> Text:
        """Where one can go on from, for an error message."""
        try:
            saved = list_checkpoints(self.folder.checkpoints)
        except OSError as error:  # what went wrong first is what shall be told
            folder = self.folder.checkpoints
            return Message("in {folder}, which cannot be read just now ({why})", folder=folder, why=error.strerror)
        return str(checkpoint_path(self.folder.checkpoints, saved[-1])) if saved else Message("none yet")

    def kept_weights(self) -> AbstractContextManager[None]:
        """The model with the weights that are measured and kept: their running average, where there is one."""
        return swapped_weights(self.model, self.average.tensors) if self.average is not None else nullcontext()

    def plain_model(self) -> Model | None:
        """A model that can be called by itself, and only a process that writes gets one.

        Sharded weights are gathered; what was learned beside the weights is merged into them.
        """
        if not self.ranks.sharded:
            if not self.ranks.is_first:
                return None
            return merged(self.model) if self.config.lora is not None else self.model
        gathered = {name: whole(each.detach()) for name, each in self.model.named_parameters()}
        if not self.ranks.is_first:
            return None
        plain = build(self.model.config)
        copy_into(plain, gathered)
        return plain

    @cached_property
    def _base(self) -> str:
        return base_fingerprint(self.model)  # those weights never change

    def save_best(self, plain: Model | None, step: int, score: Score) -> None:
        """Write the weights that the model has now as the best so far."""
        if plain is None:
            return
        rank, chat = self.config.lora, self.task.chat_template
        if rank is not None:
            folder = self.folder.path / FOLDER
            save_adapter(folder, self.model, rank, self.config.lora_alpha, self._base, chat)
        how: Any = {"overwrite": True, "whatever_it_holds": True, "chat": chat}
        bundle.save(self.folder.best_model, plain, self.task.tokenizer, **how)
        self.folder.write(runs.BEST, {"step": step, **score})
