"""Distributed training of one model by several processes, started by ``torchrun``, and detection of stragglers.

With data parallelism (DDP), each process has the whole model and a share of the batch, and gradients are summed. With
``shard`` (FSDP2), each process stores only its share of the rows of each weight, gradient and optimizer state, and
gathers a block's weights when they are needed. With a single process, the functions of this module do nothing.

All processes synchronize at every step, so every step takes as long as the slowest process (the straggler), and all
processes measure the same step time. To find the straggler, each process times its own forward passes through the
model's blocks, in which it does not wait for others, and the times are compared periodically.
"""

import os
import socket
import tempfile
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass, field, replace
from datetime import timedelta
from pathlib import Path
from statistics import median, median_low
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.distributed_c10d import PrefixStore, Store
from torch.distributed.rendezvous import rendezvous
from torch.nn.parallel import DistributedDataParallel

from kotha.artifacts.run_folder import LAUNCH, RunFolder
from kotha.errors import ConfigError, TrainingError
from kotha.i18n.message import Message, Text
from kotha.model.block import Block
from kotha.storage.status import exists, is_directory

# A process that waits longer than this for another one raises an error, so that torchrun can restart all processes.
_TIMEOUT = timedelta(minutes=10)
_GLOO = "gloo/transport"  # in gloo's error messages


@dataclass(frozen=True)
class Ranks:
    """The ranks of this process in the training run, as set by torchrun."""

    rank: int = 0
    world: int = 1
    local_rank: int = 0
    local_world: int = 1
    restarts: int = 0
    shard: bool = field(default=False, kw_only=True)
    launch: str | None = field(default=None, kw_only=True)  # torchrun's run id, equal in all processes of a launch
    device: str | None = field(default=None, kw_only=True)  # device of this process; None: the best of the machine
    writer: int = field(default=0, kw_only=True)  # the process that writes to this process's disk
    several_file_systems: bool = field(default=False, kw_only=True)  # see checkpoint.py

    @property
    def is_first(self) -> bool:
        """Whether this process reports to the user."""
        return self.rank == 0

    @property
    def writes(self) -> bool:
        """Whether this process writes files; exactly one process per disk does."""
        return self.rank == self.writer

    @property
    def on_one_machine(self) -> bool:
        """Whether all processes run on this machine."""
        return self.local_world == self.world

    @property
    def alone(self) -> bool:
        """Whether this is the only process."""
        return self.world == 1

    @property
    def sharded(self) -> bool:
        """Whether each process stores only a part of the weights."""
        return self.shard and not self.alone

    def share(self, batch_size: int) -> tuple[int, int]:
        """Return the index of this process's first example in a batch and its number of examples."""
        if batch_size % self.world:
            lower = max(1, batch_size // self.world) * self.world
            raise ConfigError(
                "batch_size={batch_size} cannot be divided evenly among {world} processes; use a multiple of "
                "{world}, such as {lower} or {higher}",
                batch_size=batch_size,
                world=self.world,
                lower=lower,
                higher=lower + self.world,
            )
        count = batch_size // self.world
        return self.rank * count, count

    def rows(self, n_rows: int) -> tuple[int, int]:
        """Return the range of rows of a weight that this process stores, as (begin, end): all rows unless sharded."""
        if not self.sharded:
            return 0, n_rows
        size = -(-n_rows // self.world)
        return min(self.rank * size, n_rows), min((self.rank + 1) * size, n_rows)

    def sum(self, value: Tensor) -> Tensor:
        """Sum a tensor over all processes, in place."""
        if not self.alone:
            dist.all_reduce(value)
        return value

    def totals(self, values: Mapping[str, float]) -> dict[str, float]:
        """Sum each named number over all processes."""
        summed = self.sum(torch.tensor(list(values.values()), dtype=torch.float64))
        return dict(zip(values, summed.tolist(), strict=True))

    def any(self, flag: bool) -> bool:
        """Return whether the flag is set on any process; all processes get the same result."""
        return bool(self.sum(torch.tensor(int(flag)))) if not self.alone else flag

    def each(self, value: Any) -> list[Any]:
        """Return the values of all processes by rank; all processes get the same result."""
        found = [value] * self.world
        if not self.alone:
            dist.all_gather_object(found, value)
        return found

    def wait(self) -> None:
        """Wait until all processes reach this call."""
        if not self.alone:
            dist.barrier()


ALONE = Ranks()


def ranks_here(shard: bool = False) -> Ranks:
    """Return the ranks of this process, from torchrun's environment variables."""
    world = os.environ.get("WORLD_SIZE", "1")
    names = {"RANK": "0", "WORLD_SIZE": world, "LOCAL_RANK": "0", "LOCAL_WORLD_SIZE": world}
    names["TORCHELASTIC_RESTART_COUNT"] = "0"
    launch = os.environ.get("TORCHELASTIC_RUN_ID", "none")  # "none" is torchrun's default
    values = (int(os.environ.get(name, default)) for name, default in names.items())
    return Ranks(*values, shard=shard, launch=None if launch == "none" else launch)


def is_restart(folder: RunFolder, ranks: Ranks) -> bool:
    """Return whether this launch of torchrun has already started the run; all processes get the same result.

    torchrun restarts the processes when one dies, and when machines join or leave. It counts only restarts after a
    process died, and counts them per machine. The run folder therefore records the id of the launch that created it.
    """
    same_launch = folder.exists and ranks.launch is not None and folder.about().get(LAUNCH) == ranks.launch
    return ranks.any(same_launch or ranks.restarts > 0) and ranks.any(folder.exists)


@contextmanager
def joined(ranks: Ranks) -> Iterator[None]:
    """Join the process group created by torchrun for the duration of a ``with`` block."""
    if ranks.alone:
        yield
        return
    if torch.cuda.is_available():
        torch.cuda.set_device(ranks.local_rank)
    backend = "cpu:gloo,cuda:nccl" if torch.cuda.is_available() else "gloo"
    store = _rendezvous_store(ranks)
    dist.init_process_group(backend, store=store, rank=ranks.rank, world_size=ranks.world, timeout=_TIMEOUT)
    try:
        yield
    except RuntimeError as error:
        if isinstance(error, dist.DistError) or _GLOO in str(error):  # gloo has no error class of its own
            raise TrainingError(
                "another process of this training run exited or cannot be reached ({why}); if any restarts remain, "
                "torchrun restarts all processes, which resume from the last checkpoint",
                why=str(error).splitlines()[0].rpartition("] ")[2],
            ) from error
        raise
    finally:
        dist.destroy_process_group()


def choose_writers(ranks: Ranks, path: Path) -> Ranks:
    """Find the processes that share a file system at a path; the first process of each disk will write files."""
    if ranks.on_one_machine:
        return ranks
    parent = next(folder for folder in path.absolute().parents if is_directory(folder))
    marker = None
    if ranks.local_rank == 0:
        with suppress(OSError):  # a read-only disk is reported later
            descriptor, file = tempfile.mkstemp(prefix=".kotha-seen-", dir=parent)
            os.close(descriptor)
            marker = Path(file).name
    markers = ranks.each(marker)
    seen = (rank for rank, other in enumerate(markers) if other is not None and exists(parent / other))
    writers = ranks.each(next(seen, 0))
    if marker is not None:
        (parent / marker).unlink(missing_ok=True)
    return replace(ranks, writer=writers[ranks.rank], several_file_systems=len(set(writers)) > 1)


def _rendezvous_store(ranks: Ranks) -> Store:
    """Return the store through which processes exchange their addresses.

    After a restart, torchrun reuses the store, which still contains the addresses of dead processes, so each attempt
    uses its own prefix (https://github.com/pytorch/pytorch/issues/135712). Attempt numbers can differ between machines,
    so torchrun must be started with TORCH_DISABLE_SHARE_RDZV_TCP_STORE=1.
    """
    store, _, _ = next(rendezvous("env://", ranks.rank, ranks.world, timeout=_TIMEOUT))
    return PrefixStore(f"attempt-{ranks.restarts}", store) if ranks.on_one_machine else store


def distribute(learner: nn.Module, ranks: Ranks, device: torch.device) -> nn.Module:
    """Wrap the learner so that gradients are summed over all processes."""
    if ranks.alone:
        return learner
    if not ranks.shard:
        return DistributedDataParallel(learner, device_ids=[device] if device.type == "cuda" else None)
    from torch.distributed.fsdp import fully_shard

    mesh = init_device_mesh(device.type, (ranks.world,))
    for module in learner.modules():
        if isinstance(module, Block):
            fully_shard(module, mesh=mesh)
    fully_shard(learner, mesh=mesh)
    return learner


def _is_sharded(what: Any) -> bool:
    """Return whether this is an FSDP module or tensor, without importing FSDP, which takes a second."""
    return hasattr(what, "reshard" if isinstance(what, nn.Module) else "full_tensor")


def gradient_sync(module: Any, last: bool) -> Any:
    """Return a context manager that sums gradients over processes only in the last micro-batch of a step."""
    if isinstance(module, DistributedDataParallel) and not last:
        return module.no_sync()
    if _is_sharded(module):
        module.set_requires_gradient_sync(last)
    return nullcontext()


def reshard(module: Any) -> None:
    """Free the outermost module's gathered weights, which FSDP keeps after a forward pass without backward."""
    if _is_sharded(module):
        module.reshard()


def local(tensor: Any) -> Tensor:
    """Return the part of a tensor that this process stores, or the full tensor if it is not sharded."""
    found: Tensor = tensor.to_local() if _is_sharded(tensor) else tensor
    return found


def unsharded(tensor: Any) -> Tensor:
    """Return the full tensor, gathered from all processes if sharded; all processes must call this function."""
    found: Tensor = tensor.full_tensor() if _is_sharded(tensor) else tensor
    return found


def rowwise(function: Callable[[Tensor], Tensor], tensor: Any) -> Tensor:
    """Apply a function of a full matrix to a sharded one; each process keeps its rows of the result."""
    if not _is_sharded(tensor):
        return function(tensor)
    from torch.distributed.tensor import DTensor

    result = function(tensor.full_tensor())
    mesh = tensor.device_mesh
    size = -(-tensor.shape[0] // mesh.size())
    rows = result[mesh.get_local_rank() * size : (mesh.get_local_rank() + 1) * size]
    return DTensor.from_local(
        rows.contiguous(), mesh, tensor.placements, shape=tensor.shape, stride=tensor.stride(), run_check=False
    )


# -- stragglers --------------------------------------------------------------------------------------------------------


_COMPARE_EVERY = 20  # steps
_SLOW = 2.0  # factor over the median; smaller differences are normal between processes on one machine
_STALL_SECONDS, _STALL_TIMES = 5.0, 10.0  # a stall exceeds both this time and this multiple of the median
_RECENT = 50


class Stragglers:
    """Compares the speed of the processes, and reports when one becomes slow and when it recovers."""

    def __init__(
        self, ranks: Ranks, modules: Iterable[nn.Module], device: torch.device, say: Callable[[Text], None]
    ) -> None:
        self._ranks, self._say, self._cuda = ranks, say, device.type == "cuda"
        self._start: Any = None
        self._pairs: list[tuple[Any, Any]] = []  # start and end of each module's forward pass
        self._usual: deque[float] = deque(maxlen=_RECENT)
        self._slow: set[int] = set()
        if ranks.alone:
            return
        self._names = ranks.each(socket.gethostname())
        for module in modules:
            # Runs after FSDP gathers the weights of this module, and before it reshards them.
            module.register_forward_pre_hook(lambda *_: self._enter())
            module.register_forward_hook(lambda *_: self._leave(), prepend=True)

    def _mark(self) -> Any:
        if not self._cuda:
            return time.perf_counter()
        event = torch.cuda.Event(enable_timing=True)  # type: ignore[no-untyped-call]
        event.record()
        return event

    def _enter(self) -> None:
        self._start = self._mark()

    def _leave(self) -> None:
        if torch.is_grad_enabled():  # evaluation batches are divided differently
            self._pairs.append((self._start, self._mark()))

    def _busy(self) -> float:
        """Return the seconds spent in the timed blocks since the last call."""
        if self._cuda:
            torch.cuda.synchronize()
        pairs, self._pairs = self._pairs, []
        return float(sum(start.elapsed_time(end) / 1000 if self._cuda else end - start for start, end in pairs))

    def step(self, step: int, seconds: float) -> None:
        """Record the duration of a step; all processes must call this method."""
        if self._ranks.alone:
            return
        usual = median(self._usual or [seconds])
        if seconds > max(_STALL_SECONDS, _STALL_TIMES * usual):
            message = "step {step:,} took {taken:.1f} s instead of {usual:.2g} s: a machine or the network stalled"
            self._say(Message(message, step=step, taken=seconds, usual=usual))
        self._usual.append(seconds)
        if step % _COMPARE_EVERY == 0:
            self._report(find_stragglers(self._ranks.each(self._busy())))

    def _report(self, slow: dict[int, float]) -> None:
        message = "{name} (process {rank}) takes {times:.1f} times as long as the median process"
        for rank in sorted(slow.keys() - self._slow):
            self._say(Message(message, name=self._names[rank], rank=rank, times=slow[rank]))
        recovered = "{name} (process {rank}) is as fast as the others again"
        for rank in sorted(self._slow - slow.keys()):
            self._say(Message(recovered, name=self._names[rank], rank=rank))
        self._slow = set(slow)


def find_stragglers(busy: Sequence[float]) -> dict[int, float]:
    """Return the processes that are much slower than the median, with the factor by which they are slower.

    >>> find_stragglers([1.0, 1.0, 3.0, 1.2])
    {2: 3.0}
    """
    usual = median_low(busy)  # with two processes, the faster time
    return {rank: each / usual for rank, each in enumerate(busy) if usual > 0 and each >= _SLOW * usual}
