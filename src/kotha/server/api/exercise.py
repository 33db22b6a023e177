"""One attention head as arithmetic: every matrix (``/api/inside/worksheet``), an exercise to solve by hand
(``/api/exercise``), and the exercise as a spreadsheet with formulas.

Without a model, the sheet is the workshop's or has random numbers; with a model, it shows one of the model's heads on a
short text. The server returns the sheet and the operation for each step; the studio does the arithmetic itself.
"""

from typing import Annotated, Literal

import numpy as np
from fastapi import APIRouter, Response
from pydantic import BaseModel, Field, model_validator

from kotha.course.worksheet.builtin_sheets import (
    MOST_TOKENS,
    Paper,
    for_paper,
    paper_sheet,
    student_sheet,
)
from kotha.course.worksheet.model import model_sheet
from kotha.course.worksheet.page import as_json, steps_of
from kotha.course.worksheet.sheet import Sheet, recomputed
from kotha.course.worksheet.spreadsheet import spreadsheet
from kotha.i18n.message import Message, Text
from kotha.server.api.requests import (
    AboutModel,
    Example,
    WireResponse,
    check_lengths,
    check_size,
    route,
)
from kotha.server.json_requests import FieldError, JsonObject, MessageField, ModelName, WireRequest
from kotha.server.model_registry import ServedModel

router = APIRouter(prefix="/api", tags=["Inside"])
XLSX = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"
_MOST_SIDE = 12
_Number = Annotated[float, Field(allow_inf_nan=False, ge=-1e6, le=1e6)]
_Rows = Annotated[
    list[Annotated[list[_Number], Field(min_length=1, max_length=_MOST_SIDE)]],
    Field(min_length=1, max_length=_MOST_SIDE),
]


class HeadSelection(BaseModel):
    """A head in a model."""

    layer: int = Field(0, ge=0, le=100_000)
    head: int = Field(0, ge=0, le=100_000)
    target: str | None = None
    stack: Literal["encoder", "decoder"] | None = None
    part: Literal["attention", "cross"] = "attention"


class WorksheetRequest(AboutModel, HeadSelection):
    """A head and a text; a Seq2Seq model also has a target, two stacks and cross-attention."""

    text: Example


@route(router, "/inside/worksheet", JsonObject)
def worksheet(served: ServedModel, body: WorksheetRequest) -> JsonObject:
    """Return every matrix of one attention head by name, as ``kotha inside worksheet --json`` does."""
    sheet = _of_model(served, body, served.limits.positions)
    count = sum(step.values.size for step in sheet.steps.values())
    check_size(served, count, Message("use a shorter text"))
    return as_json(sheet)


class ExerciseRequest(WireRequest, HeadSelection):
    """A worksheet: the workshop's, one with random numbers, or an attention head of a model applied to a text."""

    size: str | None = Field(None, max_length=12, examples=["4x6x3"])
    paper: Paper | None = None
    language: Literal["en", "bn"] = "en"
    seed: int = Field(0, ge=0, lt=1 << 32)
    model: ModelName | None = None
    text: Example | None = None

    @model_validator(mode="after")
    def _go_together(self) -> "ExerciseRequest":
        if (self.model is None) != (self.text is None):
            raise FieldError("model and text must be given together: a head needs an input text")
        if [self.model, self.paper, self.size].count(None) < 2:
            raise FieldError("model, paper and size select different kinds of sheet; give one of them")
        return self


class SpreadsheetRequest(ExerciseRequest):
    """A worksheet, with numbers that replace those of its matrices."""

    matrices: dict[str, _Rows] | None = Field(None, max_length=24)

    @model_validator(mode="after")
    def _own_or_model(self) -> "SpreadsheetRequest":
        if self.matrices is not None and self.model is not None:
            raise FieldError("`matrices` is only valid for a sheet without a model; a model's head has its own numbers")
        if any(len({len(row) for row in rows}) != 1 for rows in (self.matrices or {}).values()):
            raise FieldError("all rows of a matrix must have the same length")
        return self


class ExerciseStep(WireResponse):
    """A matrix on the sheet and how it is computed; null stands for −∞ (masked)."""

    name: str
    title: str
    rows: list[str]
    columns: list[str]
    values: list[list[float | None]]
    operation: str | None
    operands: list[str]


class ExerciseSheet(WireResponse):
    """A sheet to solve step by step."""

    text: Text
    place: str
    layer: int
    head: int
    tokens: list[Text]
    key_tokens: list[Text]
    steps: list[ExerciseStep]
    remarks: list[MessageField]


@route(router, "/exercise", ExerciseSheet, reads=True)
def exercise(served: ServedModel | None, body: ExerciseRequest) -> JsonObject:
    """Return an attention sheet to solve by hand: the given numbers and each step."""
    sheet = _by_hand(body) if served is None else for_paper(_of_model(served, body, MOST_TOKENS))
    return {**vars(sheet), "steps": steps_of(sheet)}


@route(router, "/exercise/spreadsheet", media=XLSX, reads=True)
def exercise_spreadsheet(served: ServedModel | None, body: SpreadsheetRequest) -> Response:
    """Return the sheet as an .xlsx file: given numbers as values, all other cells as formulas."""
    if served is not None:
        sheet = _of_model(served, body, MOST_TOKENS)
    else:
        sheet = recomputed(_by_hand(body), {name: np.array(rows) for name, rows in (body.matrices or {}).items()})
    headers = {"content-disposition": 'attachment; filename="worksheet.xlsx"'}
    return Response(spreadsheet(sheet), media_type=XLSX, headers=headers)


def _by_hand(body: ExerciseRequest) -> Sheet:
    if body.paper is None:
        return student_sheet(body.size, None if body.size is None else body.seed)
    return paper_sheet(body.paper, body.seed or None, body.language)


def _of_model(served: ServedModel, body: WorksheetRequest | ExerciseRequest, most: int) -> Sheet:
    assert body.text is not None, "model and text must be given together"
    check_lengths(served, body, most)
    return model_sheet(served.apart, body.text, **body.model_dump(include=set(HeadSelection.model_fields)))
