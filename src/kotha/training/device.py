"""Measure the machine's speed and memory, and choose the training precision.

Model FLOPs utilization (MFU), the share of the peak speed that a run reaches, is the number of operations per token
divided by the measured time per token and by ``peak_flops_per_second`` (Chowdhery et al. 2022,
https://arxiv.org/abs/2204.02311, appendix B).

For mixed precision, bfloat16 needs no loss scaling and is fast on GPUs since Ampere and on CPUs with AMX or similar
instructions. On other CPUs bfloat16 is slower than float32, so a small product is timed in both types. Older GPUs use
float16 with loss scaling.
"""

import gc
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
_EMULATED = 2e9  # operations per second; a slower CPU emulates the type, so a larger product would take too long
_CGROUP = Path("/sys/fs/cgroup")
# In cgroups v1 a very large number means "no limit".
_NO_LIMIT = 1 << 60


# -- speed ------------------------------------------------------------------------------------------------------------


@lru_cache(maxsize=8)
def peak_flops_per_second(device: torch.device, dtype: torch.dtype) -> float:
    """Return the highest speed of large matrix products on a device; it is measured once per process."""
    best = 0.0
    for width in _WIDTHS[device.type]:
        left = torch.ones(width, width, dtype=dtype, device=device)
        speed = 2 * width**3 / quickest(lambda left=left: left @ left, device, _SECONDS / len(_WIDTHS[device.type]))  # type: ignore[misc]
        best = max(best, speed)
        if speed < _EMULATED and dtype != torch.float32:  # slow float32 products indicate a busy CPU
            break
    return best


def free_memory() -> None:
    """Free the memory and the compiled code of models that are no longer used."""
    gc.collect()
    if torch.cuda.is_available():
        torch.compiler.reset()
        torch.cuda.empty_cache()


def share_of_peak(flops_per_second: float, peak: float) -> float | None:
    """Return the fraction of the peak, or None if it is above 1 because the peak was measured on a busy machine.

    >>> share_of_peak(3e9, 6e9), share_of_peak(9e9, 6e9)
    (0.5, None)
    """
    share = flops_per_second / peak
    return share if share <= 1 else None


def quickest(work: Callable[[], Any], device: torch.device, seconds: float) -> float:
    """Return the shortest time in seconds of repeated calls within a time budget, after one warm-up call."""
    work()
    best, end = float("inf"), now(device) + seconds
    while True:
        start = now(device)
        work()
        best = min(best, now(device) - start)
        if now(device) >= end:
            return best


def now(device: torch.device) -> float:
    """Wait for a GPU to finish and return the current time."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)
    return time.perf_counter()


# -- memory -----------------------------------------------------------------------------------------------------------


def available_memory(device: torch.device) -> int:
    """Return the free memory of a device in bytes, within the limits of a container."""
    if device.type == "cuda":
        return int(torch.cuda.mem_get_info(device)[0])
    free = _psutil().virtual_memory().available if sys.platform == "win32" else _kernel_bytes("meminfo", "MemAvailable")
    return min(int(free or total_memory()), *_cgroup_rooms(_CGROUP), _NO_LIMIT)


def peak_memory(device: torch.device) -> int:
    """Return the peak memory of this process in bytes: resident memory, or memory allocated by torch on a GPU."""
    if device.type == "cuda":
        return int(torch.cuda.max_memory_allocated(device))
    if sys.platform == "win32":
        return int(_psutil().Process().memory_info().peak_wset)
    import resource

    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


def total_memory() -> int:
    """Return the memory of this machine in bytes."""
    if sys.platform == "win32":
        return int(_psutil().virtual_memory().total)
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def largest_memory(device: torch.device) -> int:
    """Return the total memory in bytes: that of the GPU, or that of the machine plus swap."""
    if device.type == "cuda":
        return int(torch.cuda.mem_get_info(device)[1])
    return total_memory() + _kernel_bytes("meminfo", "SwapTotal")


def _kernel_bytes(file: str, name: str) -> int:
    """Read a value in KiB from a file in /proc and return it in bytes; 0 if it is missing."""
    return int(_fields(file).get(name, "0").split()[0]) * 1024


def _psutil() -> Any:
    import psutil

    return psutil


def _cgroup_rooms(root: Path) -> list[int]:
    """Return the bytes left within a container's limits (cgroups v1 and v2); empty if there are no limits."""
    files = [("memory.max", "memory.current"), ("memory/memory.limit_in_bytes", "memory/memory.usage_in_bytes")]
    rooms = []
    for limit, used in files:
        try:
            rooms.append(int((root / limit).read_text()) - int((root / used).read_text()))
        except (OSError, ValueError):  # no such file, or "max"
            continue
    return [max(0, room) for room in rooms]


# -- description ------------------------------------------------------------------------------------------------------


def describe_machine(device: torch.device) -> dict[str, Any]:
    """Return the description of the machine that is recorded in a run."""
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
    """Return the number of cores that this process may use; the machine may have more."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _fields(file: str) -> dict[str, str]:
    """Return the ``name: value`` lines of a file in /proc, the first for each name; empty if it does not exist."""
    try:
        lines = (Path("/proc") / file).read_text(encoding="utf-8").splitlines()
    except OSError:
        return {}
    pairs = [line.partition(":") for line in reversed(lines)]
    return {name.strip(): value.strip() for name, colon, value in pairs if colon}


# -- mixed precision ---------------------------------------------------------------------------------------------------


# The minimum speedup that justifies the lower precision of bfloat16.
_WORTHWHILE = 1.3
_PROBE_WIDTHS = (64, 512)  # small first, because a CPU that emulates bfloat16 takes seconds for a large product
_PROBE_ROUNDS = 8

DTYPES: dict[str, torch.dtype] = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}


@dataclass(frozen=True)
class Arithmetic:
    """The device and precision of a run, and the reason for the choice."""

    device: torch.device
    precision: str
    reason: Text

    @property
    def dtype(self) -> torch.dtype:
        """The data type of matrix products."""
        return DTYPES[self.precision]

    def settle(self) -> None:
        """Make products round in the same way in all steps, whatever the process computed before.

        On ARM, oneDNN computes some products in bfloat16 and fails for others; torch then disables it for the rest of
        the process. This method therefore disables oneDNN from the start, also in float32, where it has no benefit
        (``docs/dev/experiments.md``). On x86, oneDNN makes bfloat16 fast and does not fail.
        """
        if self.device.type == "cpu" and platform.machine() not in ("x86_64", "AMD64"):
            torch._C._set_mkldnn_enabled(False)

    def autocast(self) -> torch.autocast:
        """Return a context in which products are computed in this precision."""
        return torch.autocast(self.device.type, self.dtype, enabled=self.precision != "float32")


def choose_arithmetic(
    precision: Precision, device: str | None = None, before: Mapping[str, Any] | None = None
) -> Arithmetic:
    """Choose the device and precision: as requested in the config, or the best of this machine.

    ``before`` is the machine recorded by the run that is resumed. The run continues with the same precision and number
    of threads, so that sums round in the same way; a new measurement on a busy machine could give another result.
    """
    target = torch.device(device or ("cuda" if torch.cuda.is_available() else "cpu"))
    before = before or {}
    if str(before.get("device", "cpu")).partition(":")[0] == target.type:
        threads, recorded = before.get("threads"), str(before.get("precision"))
        if isinstance(threads, int) and 0 < threads <= torch.get_num_threads():
            torch.set_num_threads(threads)
        if precision == "auto" and recorded in DTYPES:
            return Arithmetic(target, recorded, Message("unchanged since the run started"))
    if precision != "auto":
        return Arithmetic(target, precision, Message("as requested"))
    if target.type == "cuda":
        if torch.cuda.get_device_capability(target)[0] >= 8:
            return Arithmetic(target, "bfloat16", Message("this GPU supports bfloat16"))
        return Arithmetic(target, "float16", Message("this GPU supports float16 but not bfloat16"))
    gain = _gain_of_bfloat16()
    if gain >= _WORTHWHILE:
        faster = Message("matrix products are {gain:.1f} times as fast as in float32 on this machine", gain=gain)
        return Arithmetic(target, "bfloat16", faster)
    if gain >= 1:
        return Arithmetic(target, "float32", Message("bfloat16 is only {gain:.0%} faster", gain=gain - 1))
    times = float(f"{1 / gain:.1g}") if gain < 0.1 else round(1 / gain, 1)  # timed on a small product only
    return Arithmetic(target, "float32", Message("bfloat16 takes about {times:g} times as long here", times=times))


@lru_cache
def _gain_of_bfloat16() -> float:
    """Return the speed of bfloat16 products relative to float32; only a small product is timed if it is far slower."""
    gain = 0.0
    for width in _PROBE_WIDTHS:
        single, half = (torch.ones(width, width, dtype=dtype) for dtype in (torch.float32, torch.bfloat16))
        rounds = [repeat(partial(torch.mm, each, each), number=1, repeat=_PROBE_ROUNDS) for each in (single, half)]
        gain = min(rounds[0]) / min(rounds[1])
        if gain < 1 / _WORTHWHILE:
            break
    return gain
