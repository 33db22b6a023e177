"""``/api/inside/worksheet``: one attention head as arithmetic."""

from typing import Literal

from fastapi import Request, Response
from pydantic import Field

from kotha.course.worksheet.model import model_sheet
from kotha.course.worksheet.page import SheetView, sheet_view
from kotha.course.worksheet.showing import plain
from kotha.i18n.message import Message, OnProgress
from kotha.model.vit import ViT
from kotha.server.api.inside.looking import inside_router
from kotha.server.api.requests import (
    EXAMPLE,
    AboutModel,
    WireAnswer,
    check_reads,
    checked_size,
    count_tokens,
    looked,
    refuse_family,
)
from kotha.server.model_registry import Served
from kotha.server.state import state_of
from kotha.server.wire import InEnglish

router = inside_router()


class WorksheetRequest(AboutModel):
    """Which head, over which text; a Seq2Seq also has a target, two stacks and cross-attention."""

    text: str = Field(examples=[EXAMPLE], description="What it reads.")
    layer: int = Field(0, ge=0, le=100_000, description="From 0.")
    head: int = Field(0, ge=0, le=100_000, description="From 0.")
    rows: int | None = Field(None, ge=0, le=1000, description="Rows whose arithmetic is written out.")
    precision: int = Field(
        4, ge=0, le=15, description="Decimals that are written; of small numbers as many digits that count."
    )
    target: str | None = Field(None, description="A Seq2Seq's translation.")
    stack: Literal["encoder", "decoder"] | None = Field(None, description="Of a Seq2Seq; left out, the decoder.")
    part: Literal["attention", "cross"] = Field("attention", description="Of a decoder's block.")


class WorksheetStep(WireAnswer):
    """A matrix: its numbers in full (null: −∞, nobody may look there), as it is written, and its cells worked out."""

    name: str = Field(description="As formulas call it.")
    title: str = Field(description="What is done.")
    given: bool = Field(description="Whether it comes from the model and not from the steps before.")
    rows: list[str] = Field(description="Labels.")
    columns: list[str] = Field(description="Labels.")
    values: list[list[float | None]] = Field(description="In full; null is −∞.")
    header: list[str] = Field(description="Of what is written.")
    written: list[list[str]] = Field(description="Each row with its label first; of a large matrix a part.")
    sums: list[str] = Field(description="The arithmetic of some cells.")
    remark: InEnglish = Field(description="Where only a part is written.")


class Worksheet(WireAnswer):
    """One head, step by step; every number was compared with what torch computes."""

    text: str = Field(description="What was read.")
    target: str | None = Field(description="A Seq2Seq's translation.")
    place: str = Field(description="The attention's name.")
    layer: int = Field(description="Its number.")
    head: int = Field(description="The head's number.")
    tokens: list[str] = Field(description="That look.")
    key_tokens: list[str] = Field(description="That are looked at.")
    steps: list[WorksheetStep] = Field(description="In the order of the arithmetic.")
    remarks: list[InEnglish] = Field(description="What to know about how it was taken.")


@router.post("/worksheet", response_model=Worksheet)
async def worksheet(request: Request, body: WorksheetRequest) -> Response:
    """One attention head as arithmetic: every product, sum and exponential, to be done again by hand."""
    limits = state_of(request).settings.limits

    def work(served: Served, _: OnProgress) -> Worksheet:
        check_reads(served)
        if isinstance(served.model.model, ViT):
            raise refuse_family(served, Message("a worksheet is laid out for models that read text"))
        for name in ("text", "target"):
            if getattr(body, name) is not None:
                count_tokens(served, getattr(body, name), limits.positions, name)
        sheet = model_sheet(served.apart, **body.model_dump(exclude={"model", "rows", "precision"}))
        view = sheet_view(sheet, rows=body.rows, precision=body.precision)
        count = sum(step.values.size for step in view.found.steps.values()) + sum(len(step.sums) for step in view.steps)
        checked_size(count, limits, Message("use a shorter text, or write out fewer rows"))
        return _told(view)

    return await looked(request, body.model, work)


def _told(view: SheetView) -> Worksheet:
    sheet = view.found
    steps = [
        WorksheetStep(
            name=step.name,
            title=str(step.title),
            given=shown.is_given,
            rows=list(map(str, step.rows)),
            columns=list(map(str, step.columns)),
            values=plain(step.values),
            header=shown.header,
            written=shown.rows,
            sums=shown.sums,
            remark=shown.remark,
        )
        for step, shown in zip(sheet.steps.values(), view.steps, strict=True)
    ]
    return Worksheet(
        text=str(sheet.text),
        target=sheet.target,
        place=sheet.place,
        layer=sheet.layer,
        head=sheet.head,
        tokens=list(map(str, sheet.tokens)),
        key_tokens=list(map(str, sheet.key_tokens)),
        steps=steps,
        remarks=list(map(str, sheet.remarks)),
    )
