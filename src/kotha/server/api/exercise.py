"""``/api/exercise``: a sheet to work out by hand, and the same as a spreadsheet of live formulas.

Without a model it is the workshop's, or one whose numbers are drawn by a seed; with one, a head of it over a short
text. The page computes along by itself; what the server gives is the sheet, and which operation makes each step.
"""

import asyncio
from typing import Annotated, Literal

import numpy as np
from fastapi import APIRouter, Request, Response
from pydantic import Field, model_validator

from kotha.course.worksheet.model import model_sheet
from kotha.course.worksheet.page import steps_of
from kotha.course.worksheet.papers import (
    MOST_TOKENS,
    Paper,
    for_paper,
    paper_sheet,
    student_sheet,
    workshop_sheet,
)
from kotha.course.worksheet.sheet import Sheet, recomputed, token_names
from kotha.course.worksheet.spreadsheet import spreadsheet
from kotha.i18n.message import Message, OnProgress
from kotha.model.vit import ViT
from kotha.server.api.requests import EXAMPLE, WireAnswer, check_reads, count_tokens, looked, refuse_family
from kotha.server.model_registry import Served
from kotha.server.state import state_of
from kotha.server.validation import FieldError
from kotha.server.wire import ModelName, ToldMessage, WireRequest

router = APIRouter(prefix="/api", tags=["Inside"])
XLSX = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"
_MOST_SIDE = 12
_Number = Annotated[float, Field(allow_inf_nan=False, ge=-1e6, le=1e6)]
_Rows = Annotated[
    list[Annotated[list[_Number], Field(min_length=1, max_length=_MOST_SIDE)]],
    Field(min_length=1, max_length=_MOST_SIDE),
]


class OwnNumbers(WireRequest):
    """Numbers of one's own instead of those that a sheet by hand has."""

    X: _Rows = Field(description="Tokens by width.")
    W_Q: _Rows = Field(description="Width by head width, and so are the other two.")
    W_K: _Rows = Field(description="The keys' weights.")
    W_V: _Rows = Field(description="The values' weights.")

    @model_validator(mode="after")
    def _fit(self) -> "OwnNumbers":
        width, head_width = len(self.W_Q), len(self.W_Q[0])
        weights = (self.W_Q, self.W_K, self.W_V)
        if any(len(row) != width for row in self.X) or any(len(matrix) != width for matrix in weights):
            raise FieldError("each row of X has as many numbers as the weights have rows")
        if any(len(row) != head_width for matrix in weights for row in matrix):
            raise FieldError("the three weight matrices have one shape")
        return self


class ExerciseRequest(WireRequest):
    """Which sheet: the workshop's, one that is drawn, or a head of a model over a text."""

    size: str | None = Field(
        None, max_length=12, examples=["4x6x3"], description="Tokens, width and head width of a drawn sheet."
    )
    paper: Paper | None = Field(None, description="A sheet by its name: a whole block, or one of the notes' examples.")
    language: Literal["en", "bn"] = Field("en", description="Of a sheet whose words are an example.")
    seed: int = Field(0, ge=0, lt=1 << 32, description="Which numbers are drawn.")
    model: ModelName | None = Field(None, description="Whose head; left out, a sheet without a model.")
    text: str | None = Field(None, examples=[EXAMPLE], description="What the model reads; a few words.")
    layer: int = Field(0, ge=0, le=100_000, description="Which layer of the model.")
    head: int = Field(0, ge=0, le=100_000, description="Which head of the layer.")
    target: str | None = Field(None, description="A Seq2Seq's translation.")
    stack: Literal["encoder", "decoder"] | None = Field(None, description="Of a Seq2Seq; left out, the decoder.")
    part: Literal["attention", "cross"] = Field("attention", description="Cross-attention is a Seq2Seq decoder's.")

    @model_validator(mode="after")
    def _go_together(self) -> "ExerciseRequest":
        if (self.model is None) != (self.text is None):
            raise FieldError("model and text go together: a head needs something to read")
        if self.model is not None and self.size is not None:
            raise FieldError("size is for a sheet that is drawn; leave it out, or leave out the model")
        if self.paper is not None and (self.model is not None or self.size is not None):
            raise FieldError("a sheet with a name has its own numbers; leave out the model and the size")
        if self.paper not in (None, "block") and self.seed:
            raise FieldError("only the numbers of a block are drawn; leave the seed out")
        return self


class SpreadsheetRequest(ExerciseRequest):
    """… and numbers of one's own in it."""

    own: OwnNumbers | None = Field(None, description="For a sheet without a model: other numbers given.")
    given: dict[str, _Rows] | None = Field(
        None, max_length=24, description="For a sheet with a name: other numbers, by the names of their matrices."
    )

    @model_validator(mode="after")
    def _own_or_model(self) -> "SpreadsheetRequest":
        if self.own is not None and self.model is not None:
            raise FieldError("own numbers are for a sheet without a model; a head's are its own")
        if self.given is not None and self.paper is None:
            raise FieldError("given numbers are for a sheet with a name; own is for the others")
        if any(len({len(row) for row in rows}) != 1 for rows in (self.given or {}).values()):
            raise FieldError("the rows of a matrix are as long as each other")
        return self


class ExerciseStep(WireAnswer):
    """A matrix of the sheet, and what makes it."""

    name: str = Field(description="Q, scores, weights, …")
    title: str = Field(description="In a line.")
    rows: list[str] = Field(description="Labels of its rows.")
    columns: list[str] = Field(description="Labels of its columns.")
    values: list[list[float | None]] = Field(description="Its numbers in full; null is −∞.")
    operation: str | None = Field(description="What is done to the operands; null where it is given.")
    operands: list[str] = Field(description="Names of the steps that it reads.")


class ExerciseSheet(WireAnswer):
    """A sheet to work out, step by step."""

    text: str = Field(description="What the tokens say.")
    place: str = Field(description="Which attention of the model; empty without one.")
    layer: int = Field(description="Of the model.")
    head: int = Field(description="Of the layer.")
    tokens: list[str] = Field(description="Those that look.")
    key_tokens: list[str] = Field(description="Those that are looked at.")
    steps: list[ExerciseStep] = Field(description="In the order of the arithmetic.")
    remarks: list[ToldMessage] = Field(description="What to know about how it was read.")


@router.post("/exercise", response_model=ExerciseSheet)
async def exercise(request: Request, body: ExerciseRequest) -> Response:
    """A sheet of self-attention to work out by hand: what is given, and what each step makes of it."""
    if body.model is None:
        return Response(_told(_by_hand(body)).model_dump_json(), media_type="application/json")

    def work(served: Served, _: OnProgress) -> ExerciseSheet:
        return _told(for_paper(_of_model(served, body)))

    return await looked(request, body.model, work)


@router.post(
    "/exercise/spreadsheet",
    response_class=Response,
    responses={200: {"content": {XLSX: {"schema": {"type": "string", "format": "binary"}}}}},
)
async def exercise_spreadsheet(request: Request, body: SpreadsheetRequest) -> Response:
    """The same sheet as an .xlsx file: what is given as numbers, every other cell as a formula of them."""
    state = state_of(request)
    if body.model is None:
        sheet = _by_hand(body) if body.own is None else _of_own(body.own)
        if body.given is not None:
            sheet = recomputed(sheet, {name: np.array(rows) for name, rows in body.given.items()})
        made = await asyncio.to_thread(spreadsheet, sheet)
    else:
        async with state.registry.use(body.model) as served:
            seconds = state.settings.limits.seconds
            made = await served.turns.run(request, seconds, lambda _: spreadsheet(_of_model(served, body)))
    return Response(made, media_type=XLSX, headers={"content-disposition": 'attachment; filename="worksheet.xlsx"'})


def _by_hand(body: ExerciseRequest) -> Sheet:
    if body.paper is None:
        return student_sheet(body.size, None if body.size is None else body.seed)
    return paper_sheet(body.paper, body.seed or None, body.language)


def _of_own(own: OwnNumbers) -> Sheet:
    given = {name: np.array(rows) for name, rows in own.model_dump().items()}
    return workshop_sheet(given, token_names(len(own.X)))


def _of_model(served: Served, body: ExerciseRequest) -> Sheet:
    check_reads(served)
    if isinstance(served.model.model, ViT):
        raise refuse_family(served, Message("a sheet is laid out for models that read text"))
    assert body.text is not None, "model and text go together"
    for name in ("text", "target"):
        if getattr(body, name) is not None:
            count_tokens(served, getattr(body, name), MOST_TOKENS, name)
    which = body.model_dump(include={"layer", "head", "target", "stack", "part"})
    return model_sheet(served.apart, body.text, **which)


def _told(sheet: Sheet) -> ExerciseSheet:
    return ExerciseSheet(
        text=str(sheet.text),
        place=sheet.place,
        layer=sheet.layer,
        head=sheet.head,
        tokens=list(map(str, sheet.tokens)),
        key_tokens=list(map(str, sheet.key_tokens)),
        steps=[ExerciseStep(**step) for step in steps_of(sheet)],
        remarks=[ToldMessage.of(each) for each in sheet.remarks],
    )
