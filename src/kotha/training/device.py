"""This machine: how fast it is, how much memory it has, which arithmetic suits it. Looked at, never assumed.

The operations of a token divided by its measured time and by ``peak_flops_per_second`` are the share of the machine
that a training uses (MFU: Chowdhery et al. 2022, https://arxiv.org/abs/2204.02311, appendix B).

Mixed precision: bfloat16 needs no scaling and is fast on GPUs since Ampere and on CPUs with AMX or its like; a CPU
without them is slower in it, so a short product is timed in both. Older GPUs get float16 with scaled gradients.
"""

import os
import platform
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache, partial
from pathlib import Path
from timeit import repeat
from typing import Any

import torch

from kotha.i18n.message import Message, Text
from kotha.training.config import Precision

_WIDTHS = {"cpu": (128, 1024), "cuda": (8192,)}
_SECONDS = 0.2
_IMITATED = 2e9  # operations a second: a CPU that has no such products would be busy with a large one for long
_CGROUP = Path("/sys/fs/cgroup")
# cgroups say "no limit" with a number near the largest.
_NO_LIMIT = 1 << 60


# -- speed ------------------------------------------------------------------------------------------------------------


@lru_cache(maxsize=8)
def peak_flops_per_second(device: torch.device, dtype: torch.dtype) -> float:
    """The most that large products reach here, measured once for a process."""
    best = 0.0
    for width in _WIDTHS[device.type]:
        left = torch.ones(width, width, dtype=dtype, device=device)
        speed = 2 * width**3 / quickest(lambda left=left: left @ left, device, _SECONDS / len(_WIDTHS[device.type]))  # type: ignore[misc]
        best = max(best, speed)
        if speed < _IMITATED and dtype != torch.float32:  # every CPU has those of float32: slow ones mean a busy one
            break
    return best


def share_of_peak(flops_per_second: float, peak: float) -> float | None:
    """What is reached of the peak; None where it is more than that, because the machine was busy as that was timed.

    >>> share_of_peak(3e9, 6e9), share_of_peak(9e9, 6e9)
    (0.5, None)
    """
    share = flops_per_second / peak
    return share if share <= 1 else None


def quickest(work: Callable[[], Any], device: torch.device, seconds: float) -> float:
    """Seconds of the quickest of a few goes; the first warms up and does not count."""
    work()
    best, end = float("inf"), now(device) + seconds
    while True:
        start = now(device)
        work()
        best = min(best, now(device) - start)
        if now(device) >= end:
            return best


def now(device: torch.device) -> float:
    """A clock that waits for a GPU to be done."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)
    return time.perf_counter()


# -- memory -----------------------------------------------------------------------------------------------------------


def available_memory(device: torch.device) -> int:
    """Bytes that a training may still take: free, and inside the limits that a container sets."""
    if device.type == "cuda":
        return int(torch.cuda.mem_get_info(device)[0])
    free = _psutil().virtual_memory().available if sys.platform == "win32" else _kernel_bytes("meminfo", "MemAvailable")
    return min(int(free or total_memory()), *_cgroup_rooms(_CGROUP), _NO_LIMIT)


def peak_memory(device: torch.device) -> int:
    """The most bytes that this process has had: resident, or allocated by torch on a GPU."""
    if device.type == "cuda":
        return int(torch.cuda.max_memory_allocated(device))
    if sys.platform == "win32":
        return int(_psutil().Process().memory_info().peak_wset)
    import resource

    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


def total_memory() -> int:
    """Bytes of this machine's memory."""
    if sys.platform == "win32":
        return int(_psutil().virtual_memory().total)
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def largest_memory(device: torch.device) -> int:
    """Bytes that a training could take if nothing else ran: all of a GPU's, or this machine's and what it can swap."""
    if device.type == "cuda":
        return int(torch.cuda.mem_get_info(device)[1])
    return total_memory() + _kernel_bytes("meminfo", "SwapTotal")


def _kernel_bytes(file: str, name: str) -> int:
    """What the kernel tells under a name, there in KiB; 0 where it does not."""
    return int(_fields(file).get(name, "0").split()[0]) * 1024


def _psutil() -> Any:
    import psutil

    return psutil


def _cgroup_rooms(root: Path) -> list[int]:
    """What a container's limits leave, in both versions of cgroups; empty where there are none."""
    named = [("memory.max", "memory.current"), ("memory/memory.limit_in_bytes", "memory/memory.usage_in_bytes")]
    rooms = []
    for limit, used in named:
        try:
            rooms.append(int((root / limit).read_text()) - int((root / used).read_text()))
        except (OSError, ValueError):  # not there, or "max"
            continue
    return [max(0, room) for room in rooms]


# -- what it is -------------------------------------------------------------------------------------------------------


def describe_machine(device: torch.device) -> dict[str, Any]:
    """What a run writes down about where it ran."""
    found: dict[str, Any] = {
        "processor": _fields("cpuinfo").get("model name") or platform.processor() or platform.machine(),
        "cores": usable_cores(),
        "threads": torch.get_num_threads(),
        "memory_bytes": total_memory(),
        "system": platform.platform(),
        "python": platform.python_version(),
        "torch": torch.__version__,
        "device": str(device),
    }
    if device.type == "cuda":
        found["gpu"] = torch.cuda.get_device_name(device)
        found["gpu_memory_bytes"] = int(torch.cuda.mem_get_info(device)[1])
    return found


def usable_cores() -> int:
    """Cores that this process may use, which can be fewer than the machine has."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _fields(file: str) -> dict[str, str]:
    """``name: value`` lines of a file of the kernel's, the first of each name; none where the file is not there."""
    try:
        lines = (Path("/proc") / file).read_text(encoding="utf-8").splitlines()
    except OSError:
        return {}
    pairs = [line.partition(":") for line in reversed(lines)]
    return {name.strip(): value.strip() for name, colon, value in pairs if colon}


# -- mixed precision ---------------------------------------------------------------------------------------------------


# Faster by this much, or it is not worth the lost digits.
_WORTHWHILE = 1.3
_PROBE_WIDTHS = (64, 512)  # a CPU that has no such products takes seconds for a large one: try a small one first
_PROBE_ROUNDS = 8

DTYPES: dict[str, torch.dtype] = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}


@dataclass(frozen=True)
class Arithmetic:
    """Where and in which type a run computes, and why."""

    device: torch.device
    precision: str
    reason: Text

    @property
    def dtype(self) -> torch.dtype:
        """The type of products."""
        return DTYPES[self.precision]

    def settle(self) -> None:
        """Make products round the same from the first step to the last, and whatever the process did before.

        On ARM, oneDNN takes some products in bfloat16 and fails at others; torch then gives it up for the rest of the
        process. It is given up from the start here, in float32 too, where it gains nothing
        (``docs/dev/experiments.md``). On x86 it is what makes bfloat16 fast, and it does not fail.
        """
        if self.device.type == "cpu" and platform.machine() not in ("x86_64", "AMD64"):
            torch._C._set_mkldnn_enabled(False)

    def autocast(self) -> torch.autocast:
        """The block in which products are computed in that type."""
        return torch.autocast(self.device.type, self.dtype, enabled=self.precision != "float32")


def choose_arithmetic(
    precision: Precision, device: str | None = None, before: Mapping[str, Any] | None = None
) -> Arithmetic:
    """What the config asks for, or what suits the machine; ``before`` is the machine of a run that is resumed.

    A resumed run computes as it did, with as many threads, so that its sums round as they did: a probe on a busy
    machine may answer otherwise than the first time.
    """
    place = torch.device(device or ("cuda" if torch.cuda.is_available() else "cpu"))
    before = before or {}
    if str(before.get("device", "cpu")).partition(":")[0] == place.type:
        threads, recorded = before.get("threads"), str(before.get("precision"))
        if isinstance(threads, int) and 0 < threads <= torch.get_num_threads():
            torch.set_num_threads(threads)
        if precision == "auto" and recorded in DTYPES:
            return Arithmetic(place, recorded, Message("as when the run started"))
    if precision != "auto":
        return Arithmetic(place, precision, Message("as requested"))
    if place.type == "cuda":
        if torch.cuda.get_device_capability(place)[0] >= 8:
            return Arithmetic(place, "bfloat16", Message("this GPU has bfloat16"))
        return Arithmetic(place, "float16", Message("this GPU has float16 but no bfloat16"))
    gain = _gain_of_bfloat16()
    if gain >= _WORTHWHILE:
        faster = Message("matrix products are {gain:.1f} times as fast as in float32 on this machine", gain=gain)
        return Arithmetic(place, "bfloat16", faster)
    if gain >= 1:
        return Arithmetic(place, "float32", Message("bfloat16 is only {gain:.0%} faster", gain=gain - 1))
    times = float(f"{1 / gain:.1g}") if gain < 0.1 else round(1 / gain, 1)  # a small product, timed in a moment
    return Arithmetic(place, "float32", Message("bfloat16 takes about {times:g} times as long here", times=times))


@lru_cache
def _gain_of_bfloat16() -> float:
    """How many times as fast as float32 products are; below 1, it is slower, and larger ones need not be tried."""
    gain = 0.0
    for width in _PROBE_WIDTHS:
        single, half = (torch.ones(width, width, dtype=dtype) for dtype in (torch.float32, torch.bfloat16))
        rounds = [repeat(partial(torch.mm, each, each), number=1, repeat=_PROBE_ROUNDS) for each in (single, half)]
        gain = min(rounds[0]) / min(rounds[1])
        if gain < 1 / _WORTHWHILE:
            break
    return gain
