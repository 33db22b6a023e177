"""Small SVG pictures for chapters, notebooks and slides: grids, bars, split texts and lines.

``grid(weights, rows, columns).save("weights.svg")`` writes a self-contained file with a light background, which makes
it readable on dark pages too. A notebook displays the picture. The same numbers always produce the same file. Text uses
the fonts on the reader's system, so browsers shape Bangla correctly.

Other axes, custom colours and animation are not supported; use matplotlib for those.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from os import PathLike
from pathlib import Path
from typing import Any, Self

from kotha.errors import UsageError
from kotha.report.chart import COLOURS, HEIGHT, WIDTH, Lines, chart
from kotha.report.page import escape
from kotha.storage.atomic import atomic_write

_PAPER = "#fffdf7"
_MORE, _LESS, _SOFT, _INK = COLOURS
_FONT = "Noto Sans Bengali, Nirmala UI, Kohinoor Bangla, Bangla Sangam MN, Vrinda, system-ui, sans-serif"
_EDGE, _SIZE = 16, 16  # margin, and font size
_DARK = 0.55  # opacity above which text on a cell is white
_SMALLEST_CELL = 4


@dataclass(frozen=True)
class Picture:
    """An SVG drawing, which ``save`` writes to a file and a notebook displays."""

    inner: str
    width: float
    height: float
    title: str = ""

    def svg(self) -> str:
        """Return the picture as a self-contained SVG file."""
        named = f"<title>{escape(self.title)}</title>" if self.title else ""
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" role="img" viewBox="0 0 {self.width:g} {self.height:g}" '
            f'font-family="{_FONT}" font-size="{_SIZE}">{named}'
            f'<rect width="{self.width:g}" height="{self.height:g}" rx="6" fill="{_PAPER}"/>{self.inner}</svg>\n'
        )

    def save(self, path: str | PathLike[str]) -> Self:
        """Write the picture to an .svg file and return it, so that a notebook displays it."""
        if Path(path).suffix != ".svg":
            raise UsageError("{path}: pictures are saved as SVG; use a path that ends in .svg", path=path)
        atomic_write(Path(path), self.svg())
        return self

    def _repr_svg_(self) -> str:
        return self.svg()


def grid(
    values: Any,
    rows: Sequence[str] = (),
    columns: Sequence[str] = (),
    *,
    title: str = "",
    digits: int | None = 2,
    cell: float = 64,
) -> Picture:
    """Draw numbers as cells: green above zero, brown below, and darker the further from zero.

    ``values`` are rows of numbers, as a list of lists, a NumPy array or a tensor. ``digits=None`` hides the numbers.

    >>> picture = grid([[1, 0], [0.25, 0.75]], ["ক", "খ"], ["ক", "খ"])
    >>> picture.svg().count("<rect")
    5
    """
    table = _table(values)
    most = max((abs(value) for row in table for value in row), default=0.0) or 1.0
    left = _EDGE + (12 + max(map(_width, rows)) if rows else 0)
    top = _EDGE + (28 if title else 0) + (28 if columns else 0)
    high = cell if cell < 32 else 40.0
    parts: list[str] = []
    for index, name in enumerate(columns):
        parts.append(_text(left + (index + 0.5) * cell, top - 10, name, "middle", colour=_SOFT))
    for row, line in enumerate(table):
        y = top + row * high
        if rows:
            parts.append(_text(left - 10, y + high / 2 + 6, rows[row], "end", colour=_SOFT))
        for column, value in enumerate(line):
            parts.append(_cell(left + column * cell, y, cell, high, value, abs(value) / most, digits))
    return _titled(parts, left + len(table[0]) * cell + _EDGE, top + len(table) * high + _EDGE, title)


def bars(values: Mapping[str, float], *, title: str = "", digits: int = 0) -> Picture:
    """Draw a bar for each name, followed by its value.

    >>> bars({"চিহ্ন": 9, "টোকেন": 2}).svg().count("<rect")
    3
    """
    if not values or min(values.values()) < 0:
        raise UsageError("bars need at least one value, and all values must be 0 or more")
    most = max(values.values()) or 1.0
    left = _EDGE + 12 + max(map(_width, values))
    top, long = _EDGE + (32 if title else 0), 320
    parts: list[str] = []
    for index, (name, value) in enumerate(values.items()):
        y, across = top + index * 36, long * value / most
        parts.append(_text(left - 10, y + 20, name, "end", colour=_SOFT))
        parts.append(f'<rect x="{left:g}" y="{y:g}" width="{across:.1f}" height="28" rx="3" fill="{_MORE}"/>')
        parts.append(_text(left + across + 8, y + 20, f"{value:,.{digits}f}"))
    return _titled(parts, left + long + 90, top + len(values) * 36 + _EDGE, title)


def pieces(lines: Mapping[str, Sequence[str]], *, title: str = "") -> Picture:
    """Draw a text split in several ways, one per line, with a box around each piece.

    >>> pieces({"চিহ্ন": ["ক", "থ", "া"], "অক্ষর": ["ক", "থা"]}).svg().count("<rect")
    6
    """
    left = _EDGE + 12 + max(map(_width, lines))
    top = _EDGE + (32 if title else 0)
    parts: list[str] = []
    widest = left
    for index, (name, cut) in enumerate(lines.items()):
        x, y = left, top + index * 44
        parts.append(_text(left - 10, y + 23, name, "end", colour=_SOFT))
        for number, piece in enumerate(cut):
            across = 14 + _width(piece)
            shade = 0.12 if number % 2 else 0.24
            placed = f'x="{x:g}" y="{y:g}" width="{across:g}" height="34" rx="4"'
            parts.append(f'<rect {placed} fill="{_MORE}" fill-opacity="{shade}"/>')
            parts.append(_text(x + across / 2, y + 23, piece.replace(" ", "␣"), "middle"))
            x += across + 3
        widest = max(widest, x)
    return _titled(parts, widest + _EDGE, top + len(lines) * 44 + _EDGE - 10, title)


def lines(series: Lines, *, x: str, y: str, title: str = "", log_y: bool = False, from_zero: bool = False) -> Picture:
    """Draw lines over a common x axis, with a legend; see ``kotha.report.chart``.

    >>> lines({"loss": [(0, 8.3), (100, 5.1)]}, x="step", y="loss").svg().count("<path")
    2
    """
    if not 0 < len(series) <= len(COLOURS):
        raise UsageError("{n} lines cannot be drawn; give 1 to {most}", n=len(series), most=len(COLOURS))
    above = _EDGE + (30 if title else 0)
    drawn = chart(series, x, y, log_y=log_y, from_zero=from_zero)
    inner = f'<g transform="translate({_EDGE} {above})" font-size="13">{drawn}</g>'
    return _titled([inner], WIDTH + 2 * _EDGE, HEIGHT + above + _EDGE, title)


def beside(*pictures: Picture, across: int = 2, title: str = "") -> Picture:
    """Combine pictures into one, ``across`` per row.

    >>> beside(grid([[1]]), grid([[2]]), grid([[3]])).svg().count("<svg")
    4
    """
    wide, high = max(each.width for each in pictures), max(each.height for each in pictures)
    top = 30 if title else 0
    parts: list[str] = []
    for index, each in enumerate(pictures):
        x, y = index % across * wide, top + index // across * high
        parts.append(
            f'<svg x="{x:g}" y="{y:g}" width="{each.width:g}" height="{each.height:g}" '
            f'viewBox="0 0 {each.width:g} {each.height:g}">{each.inner}</svg>'
        )
    rows = -(-len(pictures) // across)
    found = _titled(parts, wide * min(across, len(pictures)), top + rows * high, title)
    return replace(found, title=title or pictures[0].title)


# -- parts of a drawing ---------------------------------------------------------------------------------------------


def _titled(parts: Sequence[str], width: float, height: float, title: str) -> Picture:
    """Make a picture with a title above it, at least as wide as the title."""
    heading = _text(_EDGE, _EDGE + 14, title, weight=True) if title else ""
    return Picture(heading + "".join(parts), max(width, _EDGE * 2 + _width(title)), height, title)


def _table(values: Any) -> list[list[float]]:
    rows = values.tolist() if hasattr(values, "tolist") else values
    table = [[float(value) for value in row] for row in rows]
    if not table or not table[0] or any(len(row) != len(table[0]) for row in table):
        raise UsageError("all rows of a grid must have the same length and at least one number")
    return table


def _cell(x: float, y: float, wide: float, high: float, value: float, share: float, digits: int | None) -> str:
    colour = _LESS if value < 0 else _MORE
    gap = 1.5 if wide > 4 * _SMALLEST_CELL else 0
    drawn = (
        f'<rect x="{x:g}" y="{y:g}" width="{wide - gap:g}" height="{high - gap:g}" '
        f'fill="{colour}" fill-opacity="{share:.2f}"/>'
    )
    if digits is None:
        return drawn
    ink = "#fff" if share > _DARK else _INK
    shown = f"{value:.{digits}f}".replace("-", "−")
    return drawn + _text(x + wide / 2, y + high / 2 + 5.5, shown, "middle", colour=ink)


def _text(x: float, y: float, text: str, anchor: str = "start", colour: str = _INK, weight: bool = False) -> str:
    placed = "" if anchor == "start" else f' text-anchor="{anchor}"'
    bold = ' font-weight="600"' if weight else ""
    return f'<text x="{x:.5g}" y="{y:.5g}"{placed}{bold} fill="{colour}">{escape(text)}</text>'


def _width(text: str) -> float:
    """Return the approximate width of a text; combining signs count about half."""
    signs = sum("\u09bc" <= letter <= "\u09cd" or letter in "\u0981\u200c\u200d" for letter in text)
    wide = sum(letter > "\u0900" for letter in text) - signs
    return 5.0 * signs + 9.5 * wide + 8.6 * (len(text) - signs - wide)
