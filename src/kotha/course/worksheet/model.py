"""Worksheets for a real model: one head on one text, checked against torch.

Vectors, masks and results come from ``inside.trace``; the weights are the head's slices of the model's matrices. The
sheet computes everything itself, and every value that torch also computes must match.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import torch
from torch import Tensor, nn

from kotha.artifacts.model_folder import Bundle
from kotha.course.worksheet.operations import Array
from kotha.course.worksheet.sheet import Sheet, head_steps
from kotha.errors import UsageError, nearest
from kotha.i18n.message import Message, Text
from kotha.inside.hook_points import attentions, layers
from kotha.inside.inputs import read
from kotha.inside.trace import trace
from kotha.model.attention import Attention
from kotha.model.norm import RMSNorm
from kotha.model.position import RotaryPositions
from kotha.model.vit import ViT

# Steps of the sheet, and the hook points of a trace with the same values.
SAME = {
    "Q": "queries",
    "K": "keys",
    "V": "values",
    "scores": "scores",
    "masked": "masked_scores",
    "weights": "weights",
    "output": "head_outputs",
}
# Error allowed in the model's arithmetic, relative to the largest value: float32 has seven digits, and sums of a few
# hundred products lose two or three of them.
_TOLERANCE = {torch.float64: 1e-9, torch.float32: 1e-4}
# Angles of rotary positions are float32 in every model, and their error grows with the position.
_TURN_PER_PLACE = 2e-7


def model_sheet(
    bundle: Bundle,
    text: str,
    *,
    target: str | None = None,
    stack: str | None = None,
    part: str = "attention",
    layer: int = 0,
    head: int = 0,
) -> Sheet:
    """Return the sheet for one head on a text; ``stack`` defaults to the only stack or the decoder."""
    if isinstance(bundle.model, ViT):
        raise UsageError("this model is a ViT, which takes images; a worksheet needs a model that takes text")
    model = bundle.widened().model
    given = read(model, bundle.tokenizer, text, target=target)
    place = find_site(list(attentions(model)), stack, layer, part)
    asking, looked_at = (tuple(piece.text for piece in given.lines[line]) for line in given.lines_of(place))
    inputs = [each.to(next(model.parameters()).device) for each in given.inputs]
    sheet = read_head(model, inputs, place, head, asking, looked_at)
    return replace(sheet, text=text, target=target, remarks=(*sheet.remarks, *given.remarks))


def find_site(known: list[str], stack: str | None, layer: int, part: str) -> str:
    """Return the name of an attention module; ``stack`` defaults to the last one.

    >>> find_site(["blocks.0.attention"], None, 0, "attention")
    'blocks.0.attention'
    """
    place = f"{stack or known[-1].partition('.')[0]}.{layer}.{part}"
    if place not in known:
        close = nearest(place, known)
        raise UsageError("this model has no attention module {place!r}{nearest}", place=place, nearest=close)
    return place


def read_head(
    model: nn.Module,
    inputs: Sequence[Tensor],
    place: str,
    head: int,
    tokens: Sequence[Text],
    key_tokens: Sequence[Text] | None = None,
    shifted: bool = True,
) -> Sheet:
    """Return the sheet for one head, given inputs with a batch size of one, in float32 or float64."""
    attention = attentions(model)[place]
    query, key, sharing = _slices(attention, place, head)
    layer, _, part = place.rpartition(".")
    crosses = part == "cross"
    with torch.no_grad(), trace(model, layers=[layer]) as seen:
        model(*inputs)
    # The input to the attention module: the norm's output in pre-norm models, otherwise the residual stream.
    stream = "residual_mid" if crosses else "residual_in"
    x = _numbers(seen[f"{layer}.{f'{part}_norm' if layers(model)[layer].norm_order == 'pre' else stream}"][0])
    hidden = torch.isneginf(seen[f"{place}.masked_scores"][0, query])
    given = {"X": x, **_weights(attention, query, key)}
    if crosses:
        given["M"] = _numbers(seen["encoder.norm"][0])
    if bool(hidden.any()):
        given["mask"] = _numbers(~hidden)
    rotary = next((module for module in model.modules() if isinstance(module, RotaryPositions)), None)
    if rotary is not None and not crosses:
        width = attention.d_head
        given["speeds"] = (1.0 / rotary.base ** (np.arange(0, width, 2) / width))[None]
    remarks = [Message("Heads {heads} share these keys and values.", heads=sharing)] if len(sharing) > 1 else []
    remarks += [Message("Queries come from the target, keys and values from the source.")] if crosses else []
    sheet = Sheet(
        steps=head_steps(given, tokens, key_tokens, shifted),
        tokens=tuple(tokens),
        key_tokens=tuple(tokens if key_tokens is None else key_tokens),
        text="",
        place=place,
        layer=int(layer.rpartition(".")[2]),
        head=head,
        remarks=tuple(remarks),
    )
    heads = {name: key if name in ("K", "V") else query for name in SAME}
    check(sheet, {name: seen[f"{place}.{where}"][0, heads[name]] for name, where in SAME.items()})
    return sheet


def _slices(attention: Attention, place: str, head: int) -> tuple[int, int, list[int]]:
    """Return a head's index among queries and keys (other heads may be pruned), and the heads that share its keys."""
    if head not in attention.heads:
        heads = list(attention.heads)
        raise UsageError("{place} has no head {head}; its heads are {heads}", head=head, place=place, heads=heads)
    query = attention.heads.index(head)
    key_heads = [key for key, n_sharing in enumerate(attention.queries_per_kv_head) for _ in range(n_sharing)]
    key = key_heads[query]
    return query, key, [each for each, of in zip(attention.heads, key_heads, strict=True) if of == key]


def check(sheet: Sheet, computed: dict[str, Tensor]) -> None:
    """Assert that the sheet's numbers match torch's."""
    turned = _TURN_PER_PLACE * len(sheet.key_tokens) if "angles" in sheet.steps else 0.0
    for name, tensor in computed.items():
        computed_here, expected = sheet.masked if name == "masked" else sheet.steps[name].values, _numbers(tensor)
        largest = float(np.abs(expected[np.isfinite(expected)]).max(initial=1.0))
        allowed = (_TOLERANCE[tensor.dtype] + turned) * largest
        np.testing.assert_allclose(computed_here, expected, rtol=0, atol=allowed, err_msg=f"{name} differs from torch")


def _weights(attention: Attention, query: int, key: int) -> dict[str, Array]:
    """Return a head's slices of matrices, biases and gains by name; torch stores the matrices transposed."""
    found, width = {}, attention.d_head
    for letter, matrix, head, norm in (
        ("Q", attention.query, query, attention.query_norm),
        ("K", attention.key, key, attention.key_norm),
        ("V", attention.value, key, None),
    ):
        own = slice(head * width, (head + 1) * width)
        found[f"W_{letter}"] = _numbers(matrix.weight[own].mT)
        if matrix.bias is not None:
            found[f"b_{letter}"] = _numbers(matrix.bias[own])[None]
        if isinstance(norm, RMSNorm):
            found[f"g_{letter}"] = _numbers(norm.weight)[None]
            found["eps"] = np.array([[norm.eps]])
    return found


def _numbers(tensor: Tensor) -> Array:
    return tensor.detach().double().cpu().numpy()
