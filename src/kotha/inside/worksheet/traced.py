"""A head of a live model, read off a trace: its sheet, and the proof that torch computed the same.

Vectors, masks and results come from ``inside.trace``; weights are the head's slices of the model's matrices. The sheet
then works everything out by itself, and every quantity that torch also has must agree.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn

from kotha.errors import UsageError
from kotha.inside.sites import attention_at, layers
from kotha.inside.trace import Trace, trace
from kotha.inside.worksheet.operation import Array
from kotha.inside.worksheet.sheet import Head, Projection, Sheet, lay_out
from kotha.model.attention import Attention
from kotha.model.norm import RMSNorm
from kotha.model.position import RotaryPositions

# GrowingSheet of the sheet, and the places of a trace that show the same.
SAME = {
    "Q": "queries",
    "K": "keys",
    "V": "values",
    "scores": "scores",
    "masked": "masked_scores",
    "weights": "weights",
    "output": "head_outputs",
}
# How far a model's own arithmetic may be off, beside the largest number around: float32 keeps seven digits, and sums of
# a few hundred products lose two or three of them.
_TOLERANCE = {torch.float64: 1e-9, torch.float32: 1e-4}
# Angles of rotary positions are float32 in every model, and grow with the place.
_TURN_PER_PLACE = 2e-7


def read_head(
    model: nn.Module,
    inputs: Sequence[Tensor],
    place: str,
    head: int,
    tokens: Sequence[str],
    key_tokens: Sequence[str] | None = None,
    shifted: bool = True,
) -> Sheet:
    """The sheet of one head at one attention, for inputs of a batch of one; float32 or float64."""
    attention = attention_at(model, place)
    own = Slices.of(attention, place, head)
    layer = place.rpartition(".")[0]
    crosses = place.endswith(".cross")
    with torch.no_grad(), trace(model, layers=[layer]) as seen:
        model(*inputs)
    x = _asking(seen, model, layer, crosses)
    memory = _numbers(seen["encoder.norm"][0]) if crosses else None
    rotary = None if crosses else _rotary(model)
    steps = lay_out(_head(attention, own, x, memory, _mask(seen, place, own), rotary), tokens, key_tokens, shifted)
    sheet = Sheet(
        steps=steps,
        tokens=tuple(tokens),
        key_tokens=tuple(tokens if key_tokens is None else key_tokens),
        text="",
        place=place,
        layer=int(layer.rpartition(".")[2]),
        head=head,
        remarks=tuple(_remarks(own, place)),
    )
    check(sheet, torch_results(seen, place, own))
    return sheet


@dataclass(frozen=True)
class Slices:
    """Where a head's numbers stand among those of its attention, which may have lost others to pruning."""

    query: int
    key: int
    sharing: tuple[int, ...]
    """All heads that use the same keys and values, by name."""

    @classmethod
    def of(cls, attention: Attention, place: str, head: int) -> "Slices":
        """The slices of the head with this name."""
        if head not in attention.heads:
            raise UsageError(f"there is no head {head} in {place}; it has {', '.join(map(str, attention.heads))}")
        query = attention.heads.index(head)
        key_heads = [key for key, n_sharing in enumerate(attention.shares) for _ in range(n_sharing)]
        key = key_heads[query]
        return cls(query, key, tuple(each for each, of in zip(attention.heads, key_heads, strict=True) if of == key))


def torch_results(seen: Trace, place: str, own: Slices) -> dict[str, Tensor]:
    """What torch computed for one head, by the sheet's names."""
    return {
        name: seen[f"{place}.{where}"][0, own.key if name in ("K", "V") else own.query] for name, where in SAME.items()
    }


def check(sheet: Sheet, computed: dict[str, Tensor]) -> None:
    """Assert that the sheet's numbers are torch's."""
    turned = _TURN_PER_PLACE * len(sheet.key_tokens) if "angles" in sheet.steps else 0.0
    for name, tensor in computed.items():
        ours, theirs = sheet.masked if name == "masked" else sheet.steps[name].values, _numbers(tensor)
        hidden = np.isneginf(theirs)
        assert ours.shape == theirs.shape and np.array_equal(np.isneginf(ours), hidden), (
            f"{name}: another shape or mask"
        )
        allowed = (_TOLERANCE[tensor.dtype] + turned) * max(1.0, float(np.abs(theirs[~hidden]).max(initial=0.0)))
        off = float(np.abs(ours[~hidden] - theirs[~hidden]).max(initial=0.0))
        assert off <= allowed, f"{name}: the sheet is {off:.1e} off what torch computed; {allowed:.1e} is allowed"


def _asking(seen: Trace, model: nn.Module, layer: str, crosses: bool) -> Array:
    """The vectors that the attention is handed: normed before it, or as they come, (T, C)."""
    if layers(model)[layer].norm_order == "pre":
        return _numbers(seen[f"{layer}.{'cross' if crosses else 'attention'}_norm"][0])
    return _numbers(seen[f"{layer}.{'residual_mid' if crosses else 'residual_in'}"][0])


def _mask(seen: Trace, place: str, own: Slices) -> Array | None:
    """1 where torch looked, 0 where it hid; None where nothing was hidden from anyone, (T, S)."""
    hidden = torch.isneginf(seen[f"{place}.masked_scores"][0, own.query])
    return _numbers(~hidden) if bool(hidden.any()) else None


def _rotary(model: nn.Module) -> RotaryPositions | None:
    return next((module for module in model.modules() if isinstance(module, RotaryPositions)), None)


def _head(
    attention: Attention,
    own: Slices,
    x: Array,
    memory: Array | None,
    mask: Array | None,
    rotary: RotaryPositions | None,
) -> Head:
    width = attention.d_head
    speeds = None
    if rotary is not None:
        pairs = np.arange(0, width, 2, dtype=np.float64)
        speeds = (1.0 / rotary.base ** (pairs / width))[None]  # (1, D/2)
    norm = attention.query_norm
    return Head(
        x=x,
        query=_projection(attention.query, own.query, width, attention.query_norm),
        key=_projection(attention.key, own.key, width, attention.key_norm),
        value=_projection(attention.value, own.key, width, None),
        memory=memory,
        mask=mask,
        speeds=speeds,
        eps=norm.eps if isinstance(norm, RMSNorm) else 0.0,
    )


def _projection(matrix: nn.Linear, head: int, width: int, norm: nn.Module | None) -> Projection:
    """A head's slice of one matrix; torch keeps matrices turned."""
    own = slice(head * width, (head + 1) * width)
    return Projection(
        weight=_numbers(matrix.weight[own].mT),
        bias=None if matrix.bias is None else _numbers(matrix.bias[own])[None],
        gain=_numbers(norm.weight)[None] if isinstance(norm, RMSNorm) else None,
    )


def _remarks(own: Slices, place: str) -> list[str]:
    said = []
    if len(own.sharing) > 1:
        said.append(f"Heads {', '.join(map(str, own.sharing))} share these keys and values.")
    if place.endswith(".cross"):
        said.append("Queries come from the target, keys and values from the source.")
    return said


def _numbers(tensor: Tensor) -> Array:
    return tensor.detach().double().cpu().numpy()
