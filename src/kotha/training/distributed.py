"""Several processes that train one model, started by ``torchrun``, and who of them keeps the others waiting.

With data parallelism (DDP) each has the whole model and a share of the batch, and gradients are summed. With
``shard`` (FSDP2) each also keeps only its share of the rows of every weight, gradient and optimizer memory, and
gathers a block's weights when it is that block's turn. Alone, all of this is nothing.

All processes meet at every step, so each step takes as long as the slowest of them (a straggler), and the clock of a
step is the same for all. What differs is how long each is busy by itself: that is timed inside the blocks of the model
on their way forward, where nobody waits for anyone, and compared every so many steps.
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

# A process that waits this long for another takes it for dead, so that torchrun can start all of them again.
_PATIENCE = timedelta(minutes=10)
_GLOO = "gloo/transport"  # in what it says


@dataclass(frozen=True)
class Ranks:
    """This process among those that train together, as torchrun has placed it."""

    rank: int = 0
    world: int = 1
    local_rank: int = 0
    local_world: int = 1
    restarts: int = 0
    shard: bool = field(default=False, kw_only=True)
    launch: str | None = field(default=None, kw_only=True)  # what torchrun calls all its processes together
    device: str | None = field(default=None, kw_only=True)  # that this process computes on; None: the machine's best
    keeper: int = field(default=0, kw_only=True)  # the process that writes to the disk that this one sees
    apart: bool = field(default=False, kw_only=True)  # are there several disks? (see checkpoint.py)

    @property
    def is_first(self) -> bool:
        """Does this process speak to the user?"""
        return self.rank == 0

    @property
    def writes(self) -> bool:
        """Does this process write the files? The first does, and one on each machine that does not see them."""
        return self.rank == self.keeper

    @property
    def on_one_machine(self) -> bool:
        """Has torchrun placed all processes on this machine?"""
        return self.local_world == self.world

    @property
    def alone(self) -> bool:
        """Is there no other process?"""
        return self.world == 1

    @property
    def sharded(self) -> bool:
        """Does each process keep only a part of the weights?"""
        return self.shard and not self.alone

    def share(self, batch_size: int) -> tuple[int, int]:
        """The first example of a batch that is this process's, and how many are."""
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
        """Which rows of a weight this process keeps: from, to. All of them where weights are not sharded."""
        if not self.sharded:
            return 0, n_rows
        size = -(-n_rows // self.world)
        return min(self.rank * size, n_rows), min((self.rank + 1) * size, n_rows)

    def sum(self, value: Tensor) -> Tensor:
        """The sum over all processes, in place."""
        if not self.alone:
            dist.all_reduce(value)
        return value

    def totals(self, values: Mapping[str, float]) -> dict[str, float]:
        """Numbers summed over all processes, each under its name."""
        summed = self.sum(torch.tensor(list(values.values()), dtype=torch.float64))
        return dict(zip(values, summed.tolist(), strict=True))

    def any(self, flag: bool) -> bool:
        """Whether any process says so; all get the same answer."""
        return bool(self.sum(torch.tensor(int(flag)))) if not self.alone else flag

    def each(self, value: Any) -> list[Any]:
        """What every process has, in their order; all get the same list."""
        found = [value] * self.world
        if not self.alone:
            dist.all_gather_object(found, value)
        return found

    def wait(self) -> None:
        """Go on when all have come here."""
        if not self.alone:
            dist.barrier()


ALONE = Ranks()


def ranks_here(shard: bool = False) -> Ranks:
    """Where torchrun has put this process; it says so in the environment."""
    world = os.environ.get("WORLD_SIZE", "1")
    names = {"RANK": "0", "WORLD_SIZE": world, "LOCAL_RANK": "0", "LOCAL_WORLD_SIZE": world}
    names["TORCHELASTIC_RESTART_COUNT"] = "0"
    launch = os.environ.get("TORCHELASTIC_RUN_ID", "none")  # torchrun's word where nobody has named it
    places = (int(os.environ.get(name, default)) for name, default in names.items())
    return Ranks(*places, shard=shard, launch=None if launch == "none" else launch)


def goes_on(folder: RunFolder, ranks: Ranks) -> bool:
    """Did torchrun begin this run before, and start its processes again? All get the same answer.

    It does so when one died, and when a machine came or left. It counts only the first, on each machine by itself; so
    a run remembers what the launch that began it is called.
    """
    begun = folder.exists and ranks.launch is not None and folder.about().get(LAUNCH) == ranks.launch
    return ranks.any(begun or ranks.restarts > 0) and ranks.any(folder.exists)


@contextmanager
def joined(ranks: Ranks) -> Iterator[None]:
    """Join the processes that torchrun started; it has told torch where they meet."""
    if ranks.alone:
        yield
        return
    if torch.cuda.is_available():
        torch.cuda.set_device(ranks.local_rank)
    backend = "cpu:gloo,cuda:nccl" if torch.cuda.is_available() else "gloo"
    store = _meeting_point(ranks)
    dist.init_process_group(backend, store=store, rank=ranks.rank, world_size=ranks.world, timeout=_PATIENCE)
    try:
        yield
    except RuntimeError as error:
        if isinstance(error, dist.DistError) or _GLOO in str(error):  # no error of its own tells of gloo's
            raise TrainingError(
                "another process of this training run exited or cannot be reached ({why}); torchrun restarts "
                "all processes if restarts are left, and they resume from the last checkpoint",
                why=str(error).splitlines()[0].rpartition("] ")[2],
            ) from error
        raise
    finally:
        dist.destroy_process_group()


def find_disks(ranks: Ranks, path: Path) -> Ranks:
    """See who sees whose files near a path: on each disk the first process that is there will write."""
    if ranks.on_one_machine:
        return ranks
    place = next(folder for folder in path.absolute().parents if is_directory(folder))
    mark = None
    if ranks.local_rank == 0:
        with suppress(OSError):  # whoever cannot write there says so later
            descriptor, file = tempfile.mkstemp(prefix=".kotha-seen-", dir=place)
            os.close(descriptor)
            mark = Path(file).name
    marks = ranks.each(mark)
    seen = (rank for rank, other in enumerate(marks) if other is not None and exists(place / other))
    keepers = ranks.each(next(seen, 0))
    if mark is not None:
        (place / mark).unlink(missing_ok=True)
    return replace(ranks, keeper=keepers[ranks.rank], apart=len(set(keepers)) > 1)


def _meeting_point(ranks: Ranks) -> Store:
    """The store in which processes leave their addresses.

    torchrun lends the same one to processes that it starts again, with the addresses of the dead still in it, so each
    attempt gets its own shelf (https://github.com/pytorch/pytorch/issues/135712). Machines do not agree on the number
    of attempts; with several, start torchrun with TORCH_DISABLE_SHARE_RDZV_TCP_STORE=1.
    """
    store, _, _ = next(rendezvous("env://", ranks.rank, ranks.world, timeout=_PATIENCE))
    return PrefixStore(f"attempt-{ranks.restarts}", store) if ranks.on_one_machine else store


def distribute(learner: nn.Module, ranks: Ranks, device: torch.device) -> nn.Module:
    """What to call instead of the learner, so that its gradients are those of all processes together."""
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
    """Is this one of FSDP's modules or tensors? Told without importing them, which takes a second of every start."""
    return hasattr(what, "reshard" if isinstance(what, nn.Module) else "full_tensor")


def gathering(module: Any, last: bool) -> Any:
    """A block in which gradients are summed over processes only if this micro-batch is the step's last."""
    if isinstance(module, DistributedDataParallel) and not last:
        return module.no_sync()
    if _is_sharded(module):
        module.set_requires_gradient_sync(last)
    return nullcontext()


def let_go(module: Any) -> None:
    """Keep only this process's rows again; after a pass with no way back, FSDP leaves the outermost gathered."""
    if _is_sharded(module):
        module.reshard()


def local(tensor: Any) -> Tensor:
    """The part of a tensor that is here: all of it, unless it is sharded."""
    found: Tensor = tensor.to_local() if _is_sharded(tensor) else tensor
    return found


def whole(tensor: Any) -> Tensor:
    """All of a tensor, gathered from all processes if it is sharded; every process must ask."""
    found: Tensor = tensor.full_tensor() if _is_sharded(tensor) else tensor
    return found


def rowwise(function: Callable[[Tensor], Tensor], tensor: Any) -> Tensor:
    """Apply a function of a whole matrix to a sharded one: each process keeps its rows of the result."""
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
_SLOW = 2.0  # times the median: less is within what neighbours on a machine do to one another
_STOOD_SECONDS, _STOOD_TIMES = 5.0, 10.0  # a step that long, and so much longer than usual, was no work
_RECENT = 50


class Stragglers:
    """Watches how fast each process is, and says who is slow, once, and when that is over."""

    def __init__(
        self, ranks: Ranks, modules: Iterable[nn.Module], device: torch.device, say: Callable[[Text], None]
    ) -> None:
        self._ranks, self._say, self._cuda = ranks, say, device.type == "cuda"
        self._begun: Any = None
        self._pairs: list[tuple[Any, Any]] = []  # when modules began and ended
        self._usual: deque[float] = deque(maxlen=_RECENT)
        self._slow: set[int] = set()
        if ranks.alone:
            return
        self._names = ranks.each(socket.gethostname())
        for module in modules:
            # After whoever gathers weights for this module, and before whoever lets them go.
            module.register_forward_pre_hook(lambda *_: self._enter())
            module.register_forward_hook(lambda *_: self._leave(), prepend=True)

    def _mark(self) -> Any:
        if not self._cuda:
            return time.perf_counter()
        event = torch.cuda.Event(enable_timing=True)  # type: ignore[no-untyped-call]
        event.record()
        return event

    def _enter(self) -> None:
        self._begun = self._mark()

    def _leave(self) -> None:
        if torch.is_grad_enabled():  # evaluations are shared out in another way
            self._pairs.append((self._begun, self._mark()))

    def _busy(self) -> float:
        """Seconds in the blocks since this was last asked."""
        if self._cuda:
            torch.cuda.synchronize()
        pairs, self._pairs = self._pairs, []
        return float(sum(begun.elapsed_time(end) / 1000 if self._cuda else end - begun for begun, end in pairs))

    def step(self, step: int, seconds: float) -> None:
        """A step was done in so many seconds; all processes say so together."""
        if self._ranks.alone:
            return
        usual = median(self._usual or [seconds])
        if seconds > max(_STOOD_SECONDS, _STOOD_TIMES * usual):
            said = "step {step:,} took {taken:.1f} s instead of {usual:.2g} s: a machine or the network stalled"
            self._say(Message(said, step=step, taken=seconds, usual=usual))
        self._usual.append(seconds)
        if step % _COMPARE_EVERY == 0:
            self._tell(slow_ones(self._ranks.each(self._busy())))

    def _tell(self, slow: dict[int, float]) -> None:
        said = "{name} (process {rank}) takes {times:.1f} times as long as the median process"
        for rank in sorted(slow.keys() - self._slow):
            self._say(Message(said, name=self._names[rank], rank=rank, times=slow[rank]))
        over = "{name} (process {rank}) is as fast as the others again"
        for rank in sorted(self._slow - slow.keys()):
            self._say(Message(over, name=self._names[rank], rank=rank))
        self._slow = set(slow)


def slow_ones(busy: Sequence[float]) -> dict[int, float]:
    """Which processes are much slower than the median, and how many times.

    >>> slow_ones([1.0, 1.0, 3.0, 1.2])
    {2: 3.0}
    """
    usual = median_low(busy)  # of two, the faster
    return {rank: each / usual for rank, each in enumerate(busy) if usual > 0 and each >= _SLOW * usual}
