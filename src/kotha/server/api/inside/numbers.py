"""``/api/inside/pass``, ``values`` and ``recipe``: every number of one pass, and what made it.

Each question says what is read, not which pass is meant: a pass is kept for those that follow, and where it is gone
(another took its place, or another worker answers) it is made again. So a link to one cell always opens.
"""

import math
from collections import OrderedDict
from collections.abc import Callable
from threading import Lock
from weakref import WeakKeyDictionary

import numpy as np
from fastapi import Request, Response
from pydantic import Field

from kotha.api.asked import read_asked
from kotha.artifacts.model_folder import Bundle
from kotha.i18n.message import Message, OnProgress
from kotha.inside.flow import final_answers
from kotha.inside.heads.importance import silence
from kotha.inside.inputs import ModelInput, likely
from kotha.inside.numbers.arithmetic import CellLine, Entry, Recipe
from kotha.inside.numbers.ledger import Ledger, WeaveColumn, keep, weave
from kotha.server.api.inside.looking import (
    LikelyAnswer,
    Looked,
    ToldAnswer,
    WatchRequest,
    inside_router,
    looking_up,
    read_as,
    spelling,
)
from kotha.server.api.requests import WireAnswer, checked_size, looked
from kotha.server.errors import RefusedError
from kotha.server.model_registry import Served
from kotha.server.settings import Limits
from kotha.server.state import state_of

router = inside_router()
# Passes kept of one model, and what they may take: of a small model a few, of a large one the last.
_KEPT, _KEPT_BYTES = 4, 256 << 20
# Terms of one line that are told; of a longer one the largest, and what the others come to.
_TERMS = 512


class _Passes:
    """The last few passes through each opened model, by what was read."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._of: WeakKeyDictionary[Served, OrderedDict[str, Ledger]] = WeakKeyDictionary()

    def find(self, served: Served, key: str, make: Callable[[], Ledger]) -> Ledger:
        with self._lock:
            kept = self._of.setdefault(served, OrderedDict())
            if key in kept:
                kept.move_to_end(key)
                return kept[key]
        made = make()
        with self._lock:
            kept[key] = made
            while len(kept) > 1 and (len(kept) > _KEPT or sum(each.n_bytes for each in kept.values()) > _KEPT_BYTES):
                kept.popitem(last=False)
        return made


_passes = _Passes()


class PassSite(WireAnswer):
    """A matrix of the pass, or one for each head."""

    site: str = Field(description="Its name in the library: blocks.0.attention.scores.")
    shape: tuple[int, int] = Field(description="Rows and columns.")
    rows: str = Field(description="The line that its rows are; or numbers, words, table, pixels, squares, answer.")
    columns: str = Field(description="The line that its columns are; or numbers, words, classes, pixels.")
    heads: list[int] = Field(description="Heads that have one each; none: there is one for all.")
    shared: list[int] = Field(description="Which matrix each head has; heads that share keys share one.")
    operation: str | None = Field(description="What made it; nothing for weights and pixels, which are given.")
    operands: list[str] = Field(description="The matrices that it was made from.")


class PassCell(WireAnswer):
    """What one position's vector would say if the model ended here; of a body that gives words."""

    best: list[LikelyAnswer] = Field(description="What it would say, the likeliest first.")
    entropy_nats: float = Field(description="How unsure it is.")
    rank_of_answer: int = Field(description="Where the final answer stands in this layer's order; 1 is first.")
    surprise_nats: float | None = Field(description="At the token that stands next, where one does.")


class PassColumn(WireAnswer):
    """The vectors of a line before the first layer, or after one."""

    site: str = Field(description="Its name in the library.")
    layer: str | None = Field(description="Nothing before the first layer.")
    line: str = Field(description="The line whose positions these are.")
    lengths: list[float] = Field(description="How long each position's vector is.")
    changes: list[float] | None = Field(description="How far the layer moved it, as a share of its length before.")
    cells: list[PassCell] | None = Field(description="What it would say; nothing of a line or a body without words.")


class PassTold(Looked):
    """A whole pass: what was read, every matrix by name, the weave of lines and layers, and the answers."""

    masked: list[int] = Field(description="Positions whose word is hidden from a BERT.")
    sites: list[PassSite] = Field(description="Every matrix, in the order of the arithmetic.")
    columns: list[PassColumn] = Field(description="The weave: before the first layer, and after each.")
    answers: list[ToldAnswer] = Field(description="What the model says in the end.")


@router.post("/pass", response_model=PassTold)
async def read_pass(request: Request, body: WatchRequest) -> Response:
    """A text or an image through the whole model: every matrix that is made on the way, and a weave of it."""
    limits = state_of(request).settings.limits

    def work(served: Served, on_progress: OnProgress) -> PassTold:
        ledger, bundle = _ledger(served, body, limits, on_progress), served.apart
        with silence(bundle.model, body.silenced), looking_up(bundle.model, on_progress):
            columns = weave(ledger)
        spell = spelling(bundle)
        answers = [each.to_dict(spell) for each in final_answers(bundle.model, ledger.given, ledger.output)]
        return PassTold.model_validate(
            {
                **read_as(bundle, ledger.given),
                "masked": ledger.given.masked,
                "sites": [_site(entry) for entry in ledger.entries.values()],
                "columns": [_column(column, spell) for column in columns],
                "answers": answers,
            }
        )

    return await looked(request, body.model, work)


class ValuesRequest(WatchRequest):
    """What was read, and a window of one of its matrices."""

    site: str = Field(max_length=120, examples=["blocks.0.attention.scores"], description="The matrix, by its name.")
    head: int | None = Field(None, ge=0, le=100_000, description="Where each head has one; the first if left out.")
    row: int = Field(0, ge=0, description="The first row of the window.")
    rows: int | None = Field(None, ge=1, description="So many; all if left out.")
    column: int = Field(0, ge=0, description="The first column of the window.")
    columns: int | None = Field(None, ge=1, description="So many; all if left out.")


@router.post(
    "/values",
    response_class=Response,
    responses={
        200: {"content": {"application/octet-stream": {}}, "description": "float32, little-endian, row by row."}
    },
)
async def values(request: Request, body: ValuesRequest) -> Response:
    """A window of a matrix as float32, little-endian, row by row; what a mask hides is −∞. Headers tell its shape."""
    limits = state_of(request).settings.limits

    def work(served: Served, on_progress: OnProgress) -> tuple[bytes, tuple[int, int]]:
        ledger = _ledger(served, body, limits, on_progress)
        entry = _entry(ledger, body.site, body.head)
        rows, columns = (
            slice(start, None if count is None else start + count)
            for start, count in ((body.row, body.rows), (body.column, body.columns))
        )
        tile = entry.matrix(_head(entry, body.head))[rows, columns]
        checked_size(tile.numel(), limits, Message("ask for fewer rows or columns"))
        return np.ascontiguousarray(tile.float().numpy(), dtype="<f4").tobytes(), (tile.shape[0], tile.shape[1])

    state = state_of(request)
    async with state.registry.use(body.model) as served:
        told, (rows, columns) = await served.turns.run(request, limits.seconds, lambda report: work(served, report))
    headers = {"X-Rows": str(rows), "X-Columns": str(columns)}
    return Response(told, media_type="application/octet-stream", headers=headers)


class RecipeRequest(WatchRequest):
    """What was read, and one cell of one of its matrices; rows and columns from 0."""

    site: str = Field(max_length=120, examples=["blocks.0.attention.scores"], description="The matrix, by its name.")
    head: int | None = Field(None, ge=0, le=100_000, description="Where each head has one; the first if left out.")
    row: int = Field(ge=0, description="From 0.")
    column: int = Field(ge=0, description="From 0.")


class RecipeSource(WireAnswer):
    """Which part of a matrix the cell was made from; a whole row or column where the other is left out."""

    site: str = Field(description="The matrix, by its name.")
    head: int | None = Field(description="Where each head has one.")
    row: int | None = Field(description="Null: a whole column.")
    column: int | None = Field(description="Null: a whole row.")


class RecipeTerms(WireAnswer):
    """What the terms that are not told come to."""

    count: int = Field(description="How many.")
    value: float = Field(description="Their sum.")


class RecipeLine(WireAnswer):
    """One line of arithmetic; the value of the last is the cell's."""

    gives: str = Field(description="product, score, sum, copy, mean, centred, spread, unit, normed, turned, …")
    kind: str = Field(
        description="How the terms make the value: sum, mean, root, over, powers, largest, hidden, a bend."
    )
    terms: list[list[float]] = Field(description="The factors of each term.")
    places: list[int] = Field(description="Which term each one is; of many only the largest are told.")
    more: RecipeTerms | None = Field(description="The terms that are not told.")
    constant: float = Field(description="The ε under a root.")
    value: float | None = Field(description="Nothing: −∞.")


class RecipeTold(WireAnswer):
    """What made one cell, where it came from, and what is made of it."""

    site: str = Field(description="The matrix, by its name.")
    head: int | None = Field(description="Where each head has one.")
    row: int = Field(description="From 0.")
    column: int = Field(description="From 0.")
    value: float | None = Field(description="As the model computed it; nothing: −∞, nobody may look there.")
    operation: str | None = Field(description="What made it; null for what is given.")
    sources: list[RecipeSource] = Field(description="What it was made from.")
    lines: list[RecipeLine] = Field(description="The arithmetic, line by line.")
    uses: list[str] = Field(description="Matrices that are made of this one.")


@router.post("/recipe", response_model=RecipeTold)
async def recipe(request: Request, body: RecipeRequest) -> Response:
    """What made one number: the row and the column it came from, each term, and every step up to the value."""
    limits = state_of(request).settings.limits

    def work(served: Served, on_progress: OnProgress) -> RecipeTold:
        ledger = _ledger(served, body, limits, on_progress)
        entry = _entry(ledger, body.site, body.head)
        head = _head(entry, body.head)
        n_rows, n_columns = entry.shape
        if body.row >= n_rows or body.column >= n_columns:
            raise RefusedError(
                "{site} has {n_rows:,} rows and {n_columns:,} columns, counted from 0",
                param="row",
                site=body.site,
                n_rows=n_rows,
                n_columns=n_columns,
            )
        made = Recipe((), ())
        if entry.operation is not None:
            made = entry.operation.recipe(ledger.entries, head, body.row, body.column)
        return RecipeTold(
            site=body.site,
            head=head,
            row=body.row,
            column=body.column,
            value=_finite(float(entry.matrix(head)[body.row, body.column])),
            operation=None if entry.operation is None else entry.operation.name,
            sources=[RecipeSource.model_validate(vars(each)) for each in made.sources],
            lines=[_line(line) for line in made.lines],
            uses=ledger.uses(body.site),
        )

    return await looked(request, body.model, work)


def _ledger(served: Served, body: WatchRequest, limits: Limits, on_progress: OnProgress) -> Ledger:
    """The pass of what was asked, kept or made."""
    key = body.model_dump_json(include=set(WatchRequest.model_fields))

    def make() -> Ledger:
        wanted, bundle = body.to_input(served, limits), served.apart
        with looking_up(bundle.model, on_progress):
            given = read_asked(bundle, wanted)
            _check_bytes(bundle, given, limits)
            return keep(bundle.model, given, body.silenced)

    return _passes.find(served, key, make)


def _check_bytes(bundle: Bundle, given: ModelInput, limits: Limits) -> None:
    """Refuse a translation that came out longer than can be shown."""
    longest = max(len(line) for line in given.lines.values())
    if longest > limits.positions:
        raise RefusedError(
            "{longest:,} positions are more than can be shown at once ({positions:,})",
            longest=longest,
            positions=limits.positions,
        )


def _entry(ledger: Ledger, site: str, head: int | None) -> Entry:
    if site not in ledger.entries:
        raise RefusedError(
            "there is no place {site!r} in this pass; /api/inside/pass lists them", param="site", site=site
        )
    entry = ledger[site]
    if entry.heads and head is not None and head not in entry.heads:
        raise RefusedError(
            "{site} has no head {head}; it has {heads}", param="head", site=site, head=head, heads=list(entry.heads)
        )
    return entry


def _head(entry: Entry, head: int | None) -> int | None:
    return (entry.heads[0] if head is None else head) if entry.heads else None


def _site(entry: Entry) -> dict[str, object]:
    return {
        "site": entry.site,
        "shape": entry.shape,
        "rows": entry.rows,
        "columns": entry.columns,
        "heads": entry.heads,
        "shared": entry.places,
        "operation": None if entry.operation is None else entry.operation.name,
        "operands": [] if entry.operation is None else entry.operation.operands,
    }


def _column(column: WeaveColumn, spell: Callable[[int], str]) -> dict[str, object]:
    cells = column.opinions and [
        {
            "best": likely(opinion.best, spell),
            "entropy_nats": opinion.entropy_nats,
            "rank_of_answer": opinion.rank,
            "surprise_nats": opinion.surprise_nats,
        }
        for opinion in column.opinions
    ]
    told = {name: getattr(column, name) for name in ("site", "layer", "line", "lengths", "changes")}
    return {**told, "cells": cells}


def _line(line: CellLine) -> RecipeLine:
    """A line with its largest terms, in their order."""
    places = list(range(len(line.terms)))
    more = None
    if len(places) > _TERMS:
        worth = [_worth(line, term) for term in line.terms]
        largest = set(sorted(places, key=lambda place: -abs(worth[place]))[:_TERMS])
        more = RecipeTerms(
            count=len(places) - _TERMS, value=math.fsum(worth[place] for place in places if place not in largest)
        )
        places = sorted(largest)
    return RecipeLine(
        gives=line.gives,
        kind=line.kind,
        terms=[list(line.terms[place]) for place in places],
        places=places,
        more=more,
        constant=line.constant,
        value=_finite(line.value),
    )


def _worth(line: CellLine, term: tuple[float, ...]) -> float:
    """What a term adds before the line's value is made of the sum."""
    return math.exp(term[0] - term[1]) if line.kind == "powers" else math.prod(term)


def _finite(value: float) -> float | None:
    return None if value == -math.inf else value
