"""Mixed precision: which arithmetic suits this machine, looked at, not assumed.

bfloat16 needs no scaling and is fast on GPUs since Ampere and on CPUs with AMX or its like; a CPU without them is
slower in it, so a short product is timed in both. Older GPUs get float16 with scaled gradients.
"""

import platform
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache, partial
from timeit import repeat
from typing import Any

import torch

from kotha.i18n.message import Message, Text
from kotha.training.config import Precision

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
        process. It is given up from the start here, in float32 too, where it gains nothing (``docs/experiments.md``).
        On x86 it is what makes bfloat16 fast, and it does not fail.
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
    if before and torch.device(str(before.get("device", "cpu"))).type == place.type:
        threads, recorded = before.get("threads"), before.get("precision")
        if isinstance(threads, int) and 0 < threads <= torch.get_num_threads():
            torch.set_num_threads(threads)
        if precision == "auto" and recorded in DTYPES:
            return Arithmetic(place, str(recorded), Message("as this run began"))
    if precision != "auto":
        return Arithmetic(place, precision, Message("as asked"))
    if place.type == "cuda":
        if torch.cuda.get_device_capability(place)[0] >= 8:
            return Arithmetic(place, "bfloat16", Message("this GPU has bfloat16"))
        return Arithmetic(place, "float16", Message("this GPU has float16 but no bfloat16"))
    gain = _gain_of_bfloat16()
    if gain >= _WORTHWHILE:
        faster = Message("products are {gain:.1f} times as fast as in float32 here", gain=gain)
        return Arithmetic(place, "bfloat16", faster)
    if gain >= 1:
        return Arithmetic(place, "float32", Message("bfloat16 gains only {gain:.0%}", gain=gain - 1))
    times = float(f"{1 / gain:.1g}") if gain < 0.1 else 1 / gain  # a small product, timed in a moment
    many = Message("{n:g}" if gain < 0.1 else "{n:.1f}", n=times)
    return Arithmetic(place, "float32", Message("bfloat16 takes about {times} times as long here", times=many))


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
