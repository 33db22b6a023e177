"""What this machine is and can do, and how much work a token is.

Speeds are measured, never looked up. ``flops_per_token`` divided by a measured time and by ``peak_flops_per_second``
is the share of the machine that a training uses (Chowdhery et al. 2022, https://arxiv.org/abs/2204.02311, appendix B).
"""

import os
import platform
import resource
import sys
import time
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import Any

import torch
from torch import nn

from kotha.model.config import BERTConfig, ModelConfig, Seq2SeqConfig, ViTConfig
from kotha.model.family import build
from kotha.train.machine.activations import positions
from kotha.train.tasks.masking import CHOSEN

_WIDTH = {"cpu": 1024, "cuda": 8192}
_SECONDS = 0.2
_CGROUP = Path("/sys/fs/cgroup")
# cgroups say "no limit" with a number near the largest.
_NO_LIMIT = 1 << 60


# -- work -------------------------------------------------------------------------------------------------------------


def flops_per_token(model: ModelConfig, context_length: int) -> float:
    """Floating-point operations of training, forward and backward, for each position that is read.

    A weight that multiplies takes 6: a product and a sum forward, and twice that backward, for its input's gradient and
    its own (4 for the first layer of a ViT, whose images need none). Embeddings are looked up, which is no work. In
    attention, queries meet keys and weights meet values: 12 operations for each of a layer's H D numbers and each
    position looked at. All S positions count, also those that a causal mask hides; a kernel that skips them does half
    of that part. A BERT's word head works on the guessed places only. A Seq2Seq reads as long a source as its target,
    and both are counted as positions. Norms, bends and the softmax are left out.
    """
    built = build(model, "meta")
    n = positions(model, context_length)
    products = sum(
        _flops_of_weight(model, name, n) * module.weight.numel()
        for name, module in built.named_modules()
        if isinstance(module, nn.Linear)
    )
    n_attentions = model.n_layers + (2 * model.n_decoder_layers if isinstance(model, Seq2SeqConfig) else 0)
    attention = 12 * n_attentions * model.n_heads * model.d_head * n * n
    return (products + attention) / (2 * n if isinstance(model, Seq2SeqConfig) else n)


def _flops_of_weight(model: ModelConfig, name: str, n_positions: int) -> float:
    """Operations of one weight of a layer for one example of so many positions."""
    match model, name.split(".")[0]:
        case BERTConfig(), "transform" | "head":
            return 6 * int(CHOSEN * n_positions)
        case (BERTConfig(), "pooler" | "pair_head") | (ViTConfig(), "head"):
            return 6
        case ViTConfig(), "patches":
            return 4 * (n_positions - 1)
    return 6 * n_positions


@lru_cache(maxsize=8)
def peak_flops_per_second(device: torch.device, dtype: torch.dtype) -> float:
    """The most that large products reach here, measured once for a process."""
    width = _WIDTH[device.type]
    left = torch.ones(width, width, dtype=dtype, device=device)
    seconds = quickest(lambda: left @ left, device, _SECONDS)
    return 2 * width**3 / seconds


def quickest(work: Callable[[], Any], device: torch.device, seconds: float) -> float:
    """Seconds of the quickest of a few goes; the first warms up and does not count."""
    work()
    best, end = float("inf"), time.perf_counter() + seconds
    while True:
        _synchronize(device)
        start = time.perf_counter()
        work()
        _synchronize(device)
        now = time.perf_counter()
        best = min(best, now - start)
        if now >= end:
            return best


def _synchronize(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize(device)


# -- memory -----------------------------------------------------------------------------------------------------------


def available_memory(device: torch.device) -> int:
    """Bytes that a training may still take: free, and inside the limits that a container sets."""
    if device.type == "cuda":
        return int(torch.cuda.mem_get_info(device)[0])
    return min(_free_memory(), *_cgroup_rooms(_CGROUP), _NO_LIMIT)


def peak_memory(device: torch.device) -> int:
    """The most bytes that this process has had: resident, or allocated by torch on a GPU."""
    if device.type == "cuda":
        return int(torch.cuda.max_memory_allocated(device))
    unit = 1 if sys.platform == "darwin" else 1024  # macOS counts bytes, Linux KiB
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


def _free_memory() -> int:
    found = _fields(Path("/proc/meminfo")).get("MemAvailable")
    return int(found.split()[0]) * 1024 if found else total_memory()


def total_memory() -> int:
    """Bytes of this machine's memory."""
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


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
        "processor": _processor(),
        "cores": usable_cores(),
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


def _processor() -> str:
    """The processor's name where the system tells it; ARM tells numbers, which say more than nothing."""
    fields = _fields(Path("/proc/cpuinfo"))
    if "model name" in fields:
        return fields["model name"]
    numbers = [f"{name} {fields[name]}" for name in ("CPU implementer", "CPU part") if name in fields]
    return ", ".join([platform.processor() or platform.machine(), *numbers])


def _fields(path: Path) -> dict[str, str]:
    """``name: value`` lines of a file of the kernel's, the first of each name; none where the file is not there."""
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except OSError:
        return {}
    pairs = [line.partition(":") for line in reversed(lines)]
    return {name.strip(): value.strip() for name, colon, value in pairs if colon}
