"""A document: blocks of text, tables and curves as data, which the built page ``web/src/pages/document`` shows.

Messages travel as templates and values, with the Bangla of those templates beside them, so that a reader can change
the language of the page; strings are data (what a model wrote, names, figures) and stay as they are.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any

from kotha.i18n.catalogue import catalogue, to_json, translate
from kotha.i18n.message import Message, Text
from kotha.report.chart import Point, drawable_points, thin
from kotha.report.page import page_language
from kotha.report.single_file import document_page
from kotha.report.table import Table


@dataclass(frozen=True)
class Heading:
    """Starts a section."""

    text: Text


@dataclass(frozen=True)
class Paragraph:
    """A paragraph of plain text; its sentences may be messages of their own."""

    text: Text | Sequence[Text]
    note: bool = False  # it should not be missed


@dataclass(frozen=True)
class Headline:
    """A few large figures side by side, each with what it is; the first is what the page is about."""

    figures: Sequence[tuple[str, Text]]


@dataclass(frozen=True)
class Confusion:
    """A matrix between its brackets; ``shares`` (0 to 1) shade the cells."""

    corner: Text
    columns: Sequence[str]
    rows: Sequence[str]
    cells: Sequence[Sequence[str]]
    shares: Sequence[Sequence[float]]


@dataclass(frozen=True)
class Settings:
    """Names, as they are typed, and values, in as many columns as there is room for."""

    pairs: Sequence[tuple[str, Text]]


@dataclass(frozen=True)
class DrawnLine:
    """A named line of a chart; a value of None or NaN is a gap."""

    name: Text
    points: Sequence[Point]
    colour: int = 1
    look: str = "plain"  # smoothed: pale below its running mean; dots: a dot on each point; faint: without a name


@dataclass(frozen=True)
class Curves:
    """Lines over a common x, with what helps to read them."""

    title: Text
    x: Text
    y: Text
    lines: Sequence[DrawnLine]
    levels: Sequence[tuple[float, Text]] = ()
    marker: tuple[float, Text] | None = None  # a vertical line at a place of interest
    caption: Sequence[Text] = ()
    log_y: bool = False
    from_zero: bool = False


@dataclass(frozen=True)
class Quote:
    """A passage, its lines kept, below a line that says whence it comes; ``given`` is its bold beginning."""

    text: str
    label: Text = ""
    given: str = ""


@dataclass(frozen=True)
class Pieces:
    """Tokens as coloured pieces: (text, whether it is only part of a letter)."""

    pieces: Sequence[tuple[str, bool]]


@dataclass(frozen=True)
class Links:
    """Other pages as cards: address, name, and what is to be seen there."""

    links: Sequence[tuple[str, Text, Text]]


@dataclass(frozen=True)
class Code:
    """Commands or a program, to be copied, and a line above that says what for."""

    text: str
    label: Text = ""


@dataclass(frozen=True)
class Folded:
    """Hidden until the reader opens it."""

    summary: Text
    blocks: Sequence["Block"]


@dataclass(frozen=True)
class Columns:
    """Side by side where there is room."""

    columns: Sequence[Sequence["Block"]]


Block = (
    Heading
    | Paragraph
    | Headline
    | Table
    | Confusion
    | Settings
    | Curves
    | Quote
    | Pieces
    | Links
    | Code
    | Folded
    | Columns
)


@dataclass(frozen=True)
class Report:
    """A page from top to bottom."""

    title: Text
    lead: Sequence[Text]
    blocks: Sequence[Block]
    footer: Sequence[Text] = ()

    def html(self) -> str:
        """One offline page, in both languages."""
        data, language = _plain(self), page_language()
        bangla = {each: catalogue("bn")[each] for each in _templates(data) if each in catalogue("bn")}
        return document_page(translate(self.title, language), {**data, "bangla": bangla}, language)


def _plain(value: Any) -> Any:
    """Ready for JSON; a block says which it is."""
    if isinstance(value, Message):
        return to_json(value)
    if isinstance(value, DrawnLine):
        value = replace(value, points=[(x, _short(y)) for x, y in thin(drawable_points(value.points))])
    if is_dataclass(value):
        kind = type(value).__name__.lower()
        return {"kind": kind, **{each.name: _plain(getattr(value, each.name)) for each in fields(value)}}
    if isinstance(value, Mapping):
        return [[*place, mark] for place, mark in value.items()]
    return [_plain(each) for each in value] if isinstance(value, list | tuple) else value


def _short(value: float | None) -> float | None:
    """With as many digits as anybody reads off a curve."""
    return None if value is None else float(f"{value:.5g}")


def _templates(data: Any) -> Iterator[str]:
    """The templates of all messages, those inside others among them."""
    if isinstance(data, dict):
        if "template" in data:
            yield data["template"]
        for each in data.values():
            yield from _templates(each)
    elif isinstance(data, list):
        for each in data:
            yield from _templates(each)
