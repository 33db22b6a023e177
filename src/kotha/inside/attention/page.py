"""The page of attention maps, as the studio's components show it (``web/src/pages/views/Attention.svelte``).

All that the page shows is in it as JSON; weights travel as base64 of 16-bit numbers, in steps of 1/65,535.
"""

import base64
from collections.abc import Sequence
from typing import Any

from torch import Tensor

from kotha.artifacts.model_folder import Bundle
from kotha.i18n.message import Text
from kotha.inside.attention.maps import AttentionMap, AttentionMaps, WrittenToken, attention_maps
from kotha.inside.hook_points import choose_layers
from kotha.inside.inputs import Piece, name_piece
from kotha.inside.request import Asked, as_asked, as_bytes, read_asked
from kotha.inside.view import View
from kotha.report.single_file import view_page

# The largest number that a stored weight can be.
STEPS = 65_535


def attention_view(bundle: Bundle, asked: Asked | str, layers: Sequence[str | int] = ()) -> View[AttentionMaps]:
    """Who looks at whom over a text or an image; ``layers`` such as ``0`` or ``decoder.1``, all if left out."""
    chosen = choose_layers(bundle.model, layers)
    maps = attention_maps(bundle.model, read_asked(bundle, asked), chosen)
    title, tokenizer = as_asked(asked).headline(), bundle.tokenizer
    ids = {token for step in maps.steps for token, _ in step.best}
    names = {} if tokenizer is None else {token: name_piece(tokenizer, token) for token in ids}
    return View(title, maps, lambda: attention_page(maps, title, names), maps.to_dict, maps.given.remarks)


def attention_page(maps: AttentionMaps, title: Text, names: dict[int, Piece]) -> str:
    """One offline page; ``names`` says how the tokens read that could have been written."""
    data = page_data(maps, names)
    return view_page("attention", title, data, maps.given.remarks, made_by="kotha inside attention")


def page_data(maps: AttentionMaps, names: dict[int, Piece]) -> dict[str, Any]:
    """What the page shows, as the server says it (``/api/inside/attention``), with the weights packed."""
    given, image = maps.given, None
    if given.grid is not None:
        pixels = as_bytes(given.inputs[0][0])
        packed = base64.b64encode(pixels.contiguous().numpy().tobytes()).decode()
        image = {"height": pixels.shape[0], "width": pixels.shape[1], "pixels": packed}
    return {
        "family": maps.family,
        "grid": given.grid,
        "written_from": given.written_from,
        "lines": {name: [piece.to_dict() for piece in line] for name, line in given.lines.items()},
        "one": STEPS,
        "maps": [_map(each) for each in maps.maps],
        "steps": [_step(step, names) for step in maps.steps],
        "image": image,
    }


def pack(weights: Tensor) -> str:
    """Weights from 0 to 1 as base64 of little-endian 16-bit numbers."""
    return base64.b64encode((weights.numpy() * STEPS).round().astype("<u2").tobytes()).decode()


def _map(each: AttentionMap) -> dict[str, Any]:
    return {
        "name": each.name,
        "queries": each.queries,
        "keys": each.keys,
        "heads": list(each.heads),
        "causal": each.is_causal,
        "shape": list(each.weights.shape),
        "weights": pack(each.weights),
        "other": None if each.other is None else pack(each.other),
    }


def _step(step: WrittenToken, names: dict[int, Piece]) -> dict[str, Any]:
    best = [{**names[token].to_dict(), "probability": round(share, 6)} for token, share in step.best]
    return {"row": step.row, "token": step.token, "probability": round(step.probability, 6), "best": best}
