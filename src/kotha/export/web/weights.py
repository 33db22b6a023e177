"""Weights for the page: matrices as whole numbers with a scale for each row, the rest float32, one after the other."""

import gzip
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from kotha.artifacts.model_folder import unique_weights
from kotha.model.gpt import GPT
from kotha.model.rounding import round_rows, widen_rows

# Where an array may begin: a browser reads float32 at multiples of 4 only.
_ALIGNED = 8


@dataclass(frozen=True)
class Packed:
    """All arrays in one string of bytes, and where each begins."""

    arrays: list[dict[str, Any]]
    content: bytes

    def squeezed(self) -> bytes:
        """The bytes as gzip: whole numbers that are mostly small take less room; the same for the same weights."""
        return gzip.compress(self.content, compresslevel=9, mtime=0)


def pack(model: GPT) -> Packed:
    """Every weight once; a tied head is not written again."""
    places: list[dict[str, Any]] = []
    content = bytearray()

    def put(name: str, tensor: Tensor) -> None:
        content.extend(b"\0" * (-len(content) % _ALIGNED))
        kind = str(tensor.dtype).removeprefix("torch.")
        places.append({"name": name, "type": kind, "shape": list(tensor.shape), "start": len(content)})
        content.extend(tensor.contiguous().cpu().numpy().tobytes())

    for name, weight in unique_weights(model).items():
        if weight.dim() == 2:
            whole, scale = round_rows(weight)
            put(name, whole)
            put(f"{name}.scale", scale)
        else:
            put(name, weight.detach().float())
    return Packed(places, bytes(content))


@torch.no_grad()
def rounded(model: GPT) -> GPT:
    """Round a model's matrices as the page has them, in place: what the page is compared with."""
    for weight in model.parameters():
        if weight.dim() == 2:
            weight.copy_(widen_rows(*round_rows(weight)))
    return model
