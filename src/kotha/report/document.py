"""A document: blocks of text, tables and curves as data, which the built page ``web/src/pages/document`` shows.

Messages travel as templates and values, with the Bangla of those templates beside them, so that a reader can change
the language of the page; strings are data (what a model wrote, names, figures) and stay as they are.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from kotha.i18n.catalogue import translate
from kotha.i18n.message import Text
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

    def __post_init__(self) -> None:
        """Keep what can be drawn, with as many digits as anybody reads off a curve."""
        kept = thin(drawable_points(self.points))
        shown = [(x, None if y is None else float(f"{y:.5g}")) for x, y in kept]
        object.__setattr__(self, "points", shown)


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
        language = page_language()
        return document_page(translate(self.title, language), self, language=language)
