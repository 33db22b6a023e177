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
from kotha.inside.trace import trace
from kotha.inside.worksheet.operations import Array
from kotha.inside.worksheet.sheet import Head, Projection, Sheet, lay_out
from kotha.model.attention import Attention
from kotha.model.norm import RMSNorm
from kotha.model.position import RotaryPositions

# Steps of the sheet, and the places of a trace that show the same.
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
    layer, _, part = place.rpartition(".")
    crosses = part == "cross"
    with torch.no_grad(), trace(model, layers=[layer]) as seen:
        model(*inputs)
    # The attention is handed vectors that are normed before it, or as they come.
    stream = "residual_mid" if crosses else "residual_in"
    x = _numbers(seen[f"{layer}.{f'{part}_norm' if layers(model)[layer].norm_order == 'pre' else stream}"][0])
    hidden = torch.isneginf(seen[f"{place}.masked_scores"][0, own.query])
    norm = attention.query_norm
    given = Head(
        x=x,
        query=_projection(attention.query, own.query, attention.d_head, norm),
        key=_projection(attention.key, own.key, attention.d_head, attention.key_norm),
        value=_projection(attention.value, own.key, attention.d_head, None),
        memory=_numbers(seen["encoder.norm"][0]) if crosses else None,
        mask=_numbers(~hidden) if bool(hidden.any()) else None,
        speeds=None if crosses else _speeds(model, attention.d_head),
        eps=norm.eps if isinstance(norm, RMSNorm) else 0.0,
    )
    sheet = Sheet(
        steps=lay_out(given, tokens, key_tokens, shifted),
        tokens=tuple(tokens),
        key_tokens=tuple(tokens if key_tokens is None else key_tokens),
        text="",
        place=place,
        layer=int(layer.rpartition(".")[2]),
        head=head,
        remarks=own.remarks + (("Queries come from the target, keys and values from the source.",) if crosses else ()),
    )
    heads = {name: own.key if name in ("K", "V") else own.query for name in SAME}
    check(sheet, {name: seen[f"{place}.{where}"][0, heads[name]] for name, where in SAME.items()})
    return sheet


@dataclass(frozen=True)
class Slices:
    """Where a head's numbers stand among those of its attention, which may have lost others to pruning."""

    query: int
    key: int
    sharing: tuple[int, ...]
    """All heads that use the same keys and values, by name."""

    @property
    def remarks(self) -> tuple[str, ...]:
        """Who else uses them."""
        others = ", ".join(map(str, self.sharing))
        return (f"Heads {others} share these keys and values.",) if len(self.sharing) > 1 else ()

    @classmethod
    def of(cls, attention: Attention, place: str, head: int) -> "Slices":
        """The slices of the head with this name."""
        if head not in attention.heads:
            raise UsageError(f"there is no head {head} in {place}; it has {', '.join(map(str, attention.heads))}")
        query = attention.heads.index(head)
        key_heads = [key for key, n_sharing in enumerate(attention.shares) for _ in range(n_sharing)]
        key = key_heads[query]
        return cls(query, key, tuple(each for each, of in zip(attention.heads, key_heads, strict=True) if of == key))


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


def _speeds(model: nn.Module, width: int) -> Array | None:
    """How fast each pair of numbers turns from place to place, (1, D/2); None where places do not turn."""
    rotary = next((module for module in model.modules() if isinstance(module, RotaryPositions)), None)
    return None if rotary is None else (1.0 / rotary.base ** (np.arange(0, width, 2) / width))[None]


def _projection(matrix: nn.Linear, head: int, width: int, norm: nn.Module | None) -> Projection:
    """A head's slice of one matrix; torch keeps matrices turned."""
    own = slice(head * width, (head + 1) * width)
    return Projection(
        weight=_numbers(matrix.weight[own].mT),
        bias=None if matrix.bias is None else _numbers(matrix.bias[own])[None],
        gain=_numbers(norm.weight)[None] if isinstance(norm, RMSNorm) else None,
    )


def _numbers(tensor: Tensor) -> Array:
    return tensor.detach().double().cpu().numpy()
