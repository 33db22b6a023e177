"""``/api/inside/pass``, ``values`` and ``recipe``: every number in one forward pass, and how it was computed.

Each request contains the input itself, not the id of a pass. The most recent passes are cached, and all others are
recomputed, so a link to a cell always works.
"""

import math

import numpy as np
from fastapi import APIRouter, Response
from pydantic import Field

from kotha.api.model_input import read_input
from kotha.i18n.message import Message, OnProgress
from kotha.inside.flow import FinalAnswer, final_answers
from kotha.inside.numbers.arithmetic import CellLine, CellSource, Entry, Recipe
from kotha.inside.numbers.ledger import Ledger, ResidualColumn, keep, residual_columns
from kotha.server.api.requests import AblationRequest, InputResponse, WireResponse, check_size, read_as, route, watching
from kotha.server.errors import RefusedError, check_most
from kotha.server.json_requests import JsonObject
from kotha.server.model_registry import ServedModel

router = APIRouter(prefix="/api", tags=["Inside"])
# Limits on the passes cached for one model; the most recent pass is always cached.
_KEPT, _KEPT_BYTES = 4, 256 << 20
# A line reports at most this many terms (the largest), and the sum of the others.
_TERMS = 512


class PassSite(WireResponse):
    """A matrix in the pass, or one matrix per head."""

    site: str
    shape: tuple[int, int]
    rows: str
    columns: str
    heads: list[int]
    shared: list[int]
    operation: str | None
    operands: list[str]


class PassResponse(InputResponse):
    """A pass: the input, every matrix by name, the residual stream after each layer, and the predictions."""

    masked: list[int]
    sites: list[PassSite]
    columns: list[ResidualColumn]
    answers: tuple[FinalAnswer, ...]


@route(router, "/inside/pass", PassResponse)
def read_pass(served: ServedModel, on_progress: OnProgress, body: AblationRequest) -> JsonObject:
    """Run a forward pass on a text or an image; return all its matrices and the residual stream after each layer."""
    ledger = _ledger(served, on_progress, body)
    with watching(served, on_progress, body.silenced) as bundle:
        woven = residual_columns(ledger)

    def site(entry: Entry) -> JsonObject:
        made = entry.operation
        name, operands = (None, ()) if made is None else (made.name, made.operands)
        return {**vars(entry), "shape": entry.shape, "shared": entry.places, "operation": name, "operands": operands}

    answers = final_answers(bundle.model, ledger.given, ledger.output)
    sites = list(map(site, ledger.entries.values()))
    more = {"masked": ledger.given.masked, "sites": sites, "columns": woven, "answers": answers}
    return {**read_as(bundle, ledger.given), **more}


class CellRequest(AblationRequest):
    """An input, and the name of a matrix computed in its forward pass."""

    site: str = Field(max_length=120, examples=["blocks.0.attention.scores"])
    head: int | None = Field(None, ge=0, le=100_000)


class ValuesRequest(CellRequest):
    """An input, and the part of a matrix to return from its forward pass."""

    row: int = Field(0, ge=0)
    rows: int | None = Field(None, ge=1)
    column: int = Field(0, ge=0)
    columns: int | None = Field(None, ge=1)


_TILE = "float32, little-endian, row by row."


@route(router, "/inside/values", media="application/octet-stream", description=_TILE)
def values(served: ServedModel, on_progress: OnProgress, body: ValuesRequest) -> Response:
    """Return part of a matrix as little-endian float32 in row order, with its shape in X-Rows and X-Columns."""
    entry, head = _entry(_ledger(served, on_progress, body), body)
    tile = entry.matrix(head)[body.row :, body.column :][: body.rows, : body.columns].float()
    check_size(served, tile.numel(), Message("request fewer rows or columns"))
    headers = {"X-Rows": str(tile.shape[0]), "X-Columns": str(tile.shape[1])}
    content = np.ascontiguousarray(tile.numpy(), dtype="<f4").tobytes()
    return Response(content, media_type="application/octet-stream", headers=headers)


class RecipeRequest(CellRequest):
    """An input, and a cell in a matrix from its forward pass; rows and columns count from 0."""

    row: int = Field(ge=0)
    column: int = Field(ge=0)


class RecipeTerms(WireResponse):
    """The number and the sum of the omitted terms."""

    count: int
    value: float


class RecipeLine(WireResponse):
    """One line of arithmetic; the last line gives the cell's value."""

    gives: str
    kind: str
    terms: list[list[float]]
    places: list[int]
    more: RecipeTerms | None
    constant: float
    value: float | None


class RecipeResponse(WireResponse):
    """How a cell was computed, the cells it was computed from, and the cells that use it."""

    site: str
    head: int | None
    row: int
    column: int
    value: float | None
    operation: str | None
    sources: tuple[CellSource, ...]
    lines: list[RecipeLine]
    uses: list[str]


@route(router, "/inside/recipe", RecipeResponse)
def recipe(served: ServedModel, on_progress: OnProgress, body: RecipeRequest) -> JsonObject:
    """Return how one number was computed: its source cells, the terms, and every step up to the value."""
    ledger = _ledger(served, on_progress, body)
    entry, head = _entry(ledger, body)
    n_rows, n_columns = entry.shape
    if body.row >= n_rows or body.column >= n_columns:
        raise RefusedError(
            "{site} has {n_rows:,} rows and {n_columns:,} columns, counted from 0",
            param="row",
            site=body.site,
            n_rows=n_rows,
            n_columns=n_columns,
        )
    operation, made = entry.operation, Recipe((), ())
    if operation is not None:
        made = operation.recipe(ledger.entries, head, body.row, body.column)
    return {
        **{"site": body.site, "head": head, "row": body.row, "column": body.column},
        "value": _finite(float(entry.matrix(head)[body.row, body.column])),
        "operation": operation and operation.name,
        "sources": made.sources,
        "lines": list(map(_line, made.lines)),
        "uses": ledger.uses(body.site),
    }


def _ledger(served: ServedModel, on_progress: OnProgress, body: AblationRequest) -> Ledger:
    """Return the pass for a request, from the cache or newly computed."""
    key, kept = body.model_dump_json(include=set(AblationRequest.model_fields)), served.passes
    if key not in kept:
        options = body.to_input(served)
        with watching(served, on_progress) as bundle:
            given = read_input(bundle, options)
            longest = max(map(len, given.lines.values()))  # now known for a generated translation too
            check_most(longest, served.limits.positions, Message("positions"))
            kept[key] = keep(bundle.model, given, body.silenced)
    kept.move_to_end(key)
    while len(kept) > 1 and (len(kept) > _KEPT or sum(each.n_bytes for each in kept.values()) > _KEPT_BYTES):
        kept.popitem(last=False)
    return kept[key]


def _entry(ledger: Ledger, body: CellRequest) -> tuple[Entry, int | None]:
    """Return a matrix, and the requested head if there is one matrix per head."""
    site, head = body.site, body.head
    if site not in ledger.entries:
        raise RefusedError(
            "unknown site {site!r}; /api/inside/pass lists the sites of this pass", param="site", site=site
        )
    entry = ledger[site]
    if not entry.heads:
        return entry, None
    if head is not None and head not in entry.heads:
        heads = list(entry.heads)
        raise RefusedError("{site} has no head {head}; it has {heads}", param="head", site=site, head=head, heads=heads)
    return entry, entry.heads[0] if head is None else head


def _line(line: CellLine) -> JsonObject:
    """Return a line with its largest terms, in their original order."""
    indices, more = list(range(len(line.terms))), None
    if len(indices) > _TERMS:
        worth = [_worth(line, term) for term in line.terms]
        largest = set(sorted(indices, key=lambda index: -abs(worth[index]))[:_TERMS])
        rest = math.fsum(worth[index] for index in indices if index not in largest)
        indices, more = sorted(largest), {"count": len(indices) - _TERMS, "value": rest}
    terms = [line.terms[index] for index in indices]
    return {**vars(line), "terms": terms, "places": indices, "more": more, "value": _finite(line.value)}


def _worth(line: CellLine, term: tuple[float, ...]) -> float:
    """Return the contribution of a term to the line's sum."""
    return math.exp(term[0] - term[1]) if line.kind == "powers" else math.prod(term)


def _finite(value: float) -> float | None:
    return None if value == -math.inf else value
