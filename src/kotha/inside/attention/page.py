"""The page of attention maps: lines, a grid of all heads, one head as a matrix, and the writing step by step.

All that the page shows is in it as JSON; weights travel as base64 of 16-bit numbers, in steps of 1/65,535, which the
page says. The scripts are in ``assets``.
"""

import base64
from collections.abc import Sequence
from typing import Any

from torch import Tensor

from kotha.bundle import Bundle
from kotha.inside.asked import Asked, as_asked, as_bytes, read_asked
from kotha.inside.attention.maps import AttentionMap, AttentionMaps, WrittenToken, attention_maps
from kotha.inside.inputs import Piece, name_piece
from kotha.inside.sites import choose_layers
from kotha.inside.view import View, interactive
from kotha.page import Page
from kotha.wording import counted

# The largest number that a stored weight can be.
STEPS = 65_535
_KINDS = {
    "blocks.attention": "self-attention",
    "encoder.attention": "encoder, looking at the source",
    "decoder.attention": "decoder, looking at what is written",
    "decoder.cross": "decoder, looking at the source",
}


def attention_view(bundle: Bundle, asked: Asked | str, layers: Sequence[str | int] = ()) -> View[AttentionMaps]:
    """Who looks at whom over a text or an image; ``layers`` such as ``0`` or ``decoder.1``, all if left out."""
    chosen = choose_layers(bundle.model, layers)
    maps = attention_maps(bundle.model, read_asked(bundle, asked), chosen)
    title, tokenizer = as_asked(asked).headline(), bundle.tokenizer
    ids = {token for step in maps.steps for token, _ in step.best}
    names = {} if tokenizer is None else {token: name_piece(tokenizer, token) for token in ids}
    return View(title, maps, lambda: attention_page(maps, title, names), maps.to_dict, maps.given.remarks)


def attention_page(maps: AttentionMaps, title: str, names: dict[int, Piece]) -> str:
    """One offline page; ``names`` says how the tokens read that could have been written."""
    n_heads = sum(len(each.weights) for each in maps.maps)
    lead = f"Who looks at whom: {counted(n_heads, 'head')} over {maps.given.sizes}. Each row of weights sums to one."
    if maps.given.grid is not None:
        lead = f"How {n_heads} heads look at one image: choose a head, then the class token or a patch."
    page = Page(title, lead)
    for remark in maps.given.remarks:
        page.note(remark)
    footer = f"Made by kotha inside attention. Weights are kept in steps of 1/{STEPS:,} and shown to three decimals."
    return interactive(page, "attention", page_data(maps, names), footer)


def page_data(maps: AttentionMaps, names: dict[int, Piece]) -> dict[str, Any]:
    """What the page's scripts read."""
    given = maps.given
    data: dict[str, Any] = {
        "family": maps.family,
        "steps_of_weight": STEPS,
        "lines": {name: [_piece(piece) for piece in line] for name, line in given.lines.items()},
        "writes": list(given.lines)[-1],
        "written_from": given.written_from,
        "maps": [_map(each) for each in maps.maps],
        "steps": [_step(step, names) for step in maps.steps],
    }
    if given.grid is not None:
        pixels = as_bytes(given.inputs[0][0])
        data["image"] = {
            "rows": given.grid[0],
            "columns": given.grid[1],
            "height": pixels.shape[0],
            "width": pixels.shape[1],
            "pixels": base64.b64encode(pixels.contiguous().numpy().tobytes()).decode(),
        }
    return data


def pack(weights: Tensor) -> str:
    """Weights from 0 to 1 as base64 of little-endian 16-bit numbers."""
    return base64.b64encode((weights.numpy() * STEPS).round().astype("<u2").tobytes()).decode()


def _map(each: AttentionMap) -> dict[str, Any]:
    stack, layer, part = each.name.split(".")
    return {
        "name": each.name,
        "kind": _KINDS[f"{stack}.{part}"],
        "layer": int(layer),
        "queries": each.queries,
        "keys": each.keys,
        "causal": each.is_causal,
        "names": list(each.heads),
        "shape": list(each.weights.shape),
        "weights": pack(each.weights),
        "other": None if each.other is None else pack(each.other),
    }


def _piece(piece: Piece) -> dict[str, Any]:
    return {"text": piece.text, "id": piece.id, "part": piece.is_part}


def _step(step: WrittenToken, names: dict[int, Piece]) -> dict[str, Any]:
    best = [{**_piece(names[token]), "probability": round(share, 6)} for token, share in step.best]
    return {"row": step.row, "probability": round(step.probability, 6), "best": best}
