"""A document: text, tables and curves as blocks of data, rendered by the page built from ``web/src/pages/document``.

Messages are stored as templates and values, together with the Bangla templates, so that a reader can switch the page's
language. Strings are data (generated text, names, numbers) and are not translated.
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
    """A heading that starts a section."""

    text: Text


@dataclass(frozen=True)
class Paragraph:
    """A paragraph of plain text, or of several messages."""

    text: Text | Sequence[Text]
    note: bool = False  # highlighted


@dataclass(frozen=True)
class Headline:
    """A few large figures with captions; the first is the main result of the page."""

    figures: Sequence[tuple[str, Text]]


@dataclass(frozen=True)
class Confusion:
    """A confusion matrix; ``shares`` (0 to 1) shade the cells."""

    corner: Text
    columns: Sequence[str]
    rows: Sequence[str]
    cells: Sequence[Sequence[str]]
    shares: Sequence[Sequence[float]]


@dataclass(frozen=True)
class Settings:
    """Setting names and their values, in as many columns as fit."""

    pairs: Sequence[tuple[str, Text]]


@dataclass(frozen=True)
class DrawnLine:
    """A named line of a chart; None and NaN are gaps."""

    name: Text
    points: Sequence[Point]
    colour: int = 1
    look: str = "plain"  # smoothed: pale, below its running mean; dots: a dot at each point; faint: unlabelled

    def __post_init__(self) -> None:
        """Thin out and round the points to the resolution of a chart."""
        kept = thin(drawable_points(self.points))
        shown = [(x, None if y is None else float(f"{y:.5g}")) for x, y in kept]
        object.__setattr__(self, "points", shown)


@dataclass(frozen=True)
class Curves:
    """Lines over a common x axis, with levels, a marker and a caption."""

    title: Text
    x: Text
    y: Text
    lines: Sequence[DrawnLine]
    levels: Sequence[tuple[float, Text]] = ()
    marker: tuple[float, Text] | None = None  # a labelled vertical line
    caption: Sequence[Text] = ()
    log_y: bool = False
    from_zero: bool = False


@dataclass(frozen=True)
class Quote:
    """A quoted passage with a label above it. Line breaks are kept, and its beginning, ``given``, is shown in bold."""

    text: str
    label: Text = ""
    given: str = ""


@dataclass(frozen=True)
class Pieces:
    """Tokens as coloured pieces, each given as its text and whether it is only part of a character."""

    pieces: Sequence[tuple[str, bool]]


@dataclass(frozen=True)
class Links:
    """Links to other pages as cards: address, name and description."""

    links: Sequence[tuple[str, Text, Text]]


@dataclass(frozen=True)
class Code:
    """Commands or a program to copy, with a label above it."""

    text: str
    label: Text = ""


@dataclass(frozen=True)
class Folded:
    """Blocks that are collapsed until the reader opens them."""

    summary: Text
    blocks: Sequence["Block"]


@dataclass(frozen=True)
class Columns:
    """Blocks side by side, if they fit."""

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
    """A page: title, lead, blocks and footer."""

    title: Text
    lead: Sequence[Text]
    blocks: Sequence[Block]
    footer: Sequence[Text] = ()

    def html(self) -> str:
        """Return the page as one offline HTML file, in both languages."""
        language = page_language()
        return document_page(translate(self.title, language), self, language=language)
