"""One offline HTML page: a title, sections, tables, figures. No script, no font and no style from elsewhere.

Everything that goes in as text is escaped here, so a corpus cannot write into a page; a figure's SVG is the one thing
that is taken as it is. Pages that move are the studio's (``report/single_file.py``). Bangla is set in whichever Bangla
font the reader's system has; the names cover Debian, Windows, macOS and Android.

What a page says of its own is said in the reader's voice (``wording.page_voice``); what people and models wrote, names
and commands stay.
"""

import html
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from kotha.i18n.catalogue import translate
from kotha.i18n.message import Text
from kotha.i18n.wording import page_voice
from kotha.storage.json_files import as_json

# What XML cannot hold: most control characters, and halves of surrogate pairs, which UTF-8 cannot hold either.
_FORBIDDEN = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")
# What could end a script, or its line; and halves of surrogate pairs, as above.
_NOT_IN_SCRIPTS = re.compile("[<>&\u2028\u2029\ud800-\udfff]")

_STYLE = "\n" + Path(__file__).with_suffix(".css").read_text(encoding="utf-8")


def escape(text: str) -> str:
    """Text that HTML, XML and UTF-8 can hold and that cannot become markup.

    >>> escape("<b>" + chr(0) + "কথা")
    '&lt;b&gt;\ufffdকথা'
    """
    return html.escape(_FORBIDDEN.sub("\ufffd", text))


def _cells(tags: Iterable[str], cells: Sequence[str]) -> str:
    return "".join(f"<td{tag}>{escape(cell)}</td>" for tag, cell in zip(tags, cells, strict=True))


def framed(html: str, title: str) -> str:
    """A whole page inside a notebook: in a frame of its own, from which it reaches neither notebook nor network."""
    # A page that may not look out of its frame cannot ask for the height it needs, so a screen's serves all.
    look = "width:100%;height:min(90vh,46rem);border:0;resize:vertical"
    return f'<iframe title="{escape(title)}" sandbox="allow-scripts" style="{look}" srcdoc="{escape(html)}"></iframe>'


class Page:
    """A page that is built from top to bottom and then asked for its HTML."""

    def __init__(self, title: Text, lead: Text = "", bangla: str = "") -> None:
        self._voice = page_voice()
        self._title = bangla if bangla and self._in_bangla else self._said(title)
        self._parts = [f"<h1>{self._both(title, bangla)}</h1>"]
        if lead:
            self._parts.append(f'<p class="lead">{self._words(lead)}</p>')

    @property
    def _in_bangla(self) -> bool:
        return self._voice.language == "bn"

    def _said(self, text: Text) -> str:
        if not isinstance(text, str):
            return translate(text, self._voice.language, flags=True)
        return self._voice.sentence(text)

    def _words(self, text: Text) -> str:
        """What the page says of its own, ready to stand in it."""
        return escape(self._said(text))

    def _both(self, text: Text, bangla: str) -> str:
        """A heading: in English with its Bangla line, in Bangla that line alone."""
        if not bangla:
            return self._words(text)
        return escape(bangla) if self._in_bangla else f'{escape(str(text))}<small lang="bn">{escape(bangla)}</small>'

    def heading(self, text: Text, bangla: str = "") -> None:
        """Start a section; in both languages where there is a Bangla line."""
        self._parts.append(f"<h2>{self._both(text, bangla)}</h2>")

    def paragraph(self, text: Text) -> None:
        """A paragraph of plain text."""
        self._parts.append(f"<p>{self._words(text)}</p>")

    def note(self, text: Text) -> None:
        """A paragraph that should not be missed."""
        self._parts.append(f'<p class="note">{self._words(text)}</p>')

    def story(self, text: str, label: Text = "", given: str = "") -> None:
        """A passage, its lines kept, below a line that says whence it comes; ``given`` is its bold beginning."""
        if label:
            self._parts.append(self._label(label))
        bold = given if given and text.startswith(given) else ""
        start = f"<b>{escape(bold)}</b>" if bold else ""
        self._parts.append(f'<div class="story" lang="bn">{start}{escape(text[len(bold) :])}</div>')

    def _label(self, text: Text) -> str:
        return f'<p class="label">{self._words(text)}</p>'

    def headline(self, figures: Iterable[tuple[str, Text]]) -> None:
        """A few large figures side by side, each with what it is; the first is what the page is about."""
        cells = ((escape(self._voice.figure(value)), self._words(words)) for value, words in figures)
        shown = (f"<div><b>{value}</b><span>{words}</span></div>" for value, words in cells)
        self._parts.append(f'<div class="headline">{"".join(shown)}</div>')

    def links(self, cards: Iterable[tuple[str, str, str, str]]) -> None:
        """Other pages as cards: address, name, a sentence in English and one in Bangla."""
        shown = (
            f'<a href="{escape(address)}"><b>{self._words(name)}</b>'
            + ("" if self._in_bangla else f"<span>{escape(english)}</span>")
            + f'<span lang="bn">{escape(bangla)}</span></a>'
            for address, name, english, bangla in cards
        )
        self._parts.append(f'<nav class="cards">{"".join(shown)}</nav>')

    def code(self, text: str, label: Text = "") -> None:
        """Commands or a program, to be copied, and a line above that says what for."""
        self._parts.append((self._label(label) if label else "") + f"<pre>{escape(text)}</pre>")

    @contextmanager
    def box(self, kind: str) -> Iterator[None]:
        """A part of the page; the parts within ``columns`` stand side by side where there is room."""
        self._parts.append(f'<div class="{kind}">')
        yield
        self._parts.append("</div>")

    def table(
        self,
        header: Sequence[Text],
        rows: Iterable[Sequence[Text]],
        marks: dict[tuple[int, int], str],
        labels: Sequence[int] = (),
    ) -> None:
        """A table; ``marks`` gives cells (row, column) a class such as ``best`` or ``worst``.

        The cells of the columns that are ``labels`` are words of ours; all others stay as they are.
        """
        head = "".join(f"<th>{self._words(cell)}</th>" for cell in header)
        body = ""
        for row, given in enumerate(rows):
            cells = [self._cell(cell, column in labels) for column, cell in enumerate(given)]
            tags = (f' class="{marks[row, column]}"' if (row, column) in marks else "" for column in range(len(cells)))
            body += f"<tr>{_cells(tags, cells)}</tr>"
        self._scrolling(f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>")

    def _cell(self, cell: Text, label: bool) -> str:
        if not isinstance(cell, str):
            return self._said(cell)
        return self._voice.cell(cell) if label else cell

    def matrix(
        self,
        header: Sequence[str],
        rows: Iterable[Sequence[str]],
        shares: Sequence[Sequence[float | None]] = (),
        given: bool = False,
    ) -> None:
        """A matrix between its brackets; the first of each row is its label, ``shares`` (0 to 1) shade the cells.

        In the corner there are words of ours, everywhere else names.
        """
        corner, *names = header
        head = "".join(f'<th scope="col">{escape(cell)}</th>' for cell in (self._said(corner), *names))
        body = ""
        for place, (label, *cells) in enumerate(rows):
            of_row = shares[place] if shares else [None] * len(cells)
            tags = (f' style="--share:{share:.3f}"' if share is not None else "" for share in of_row)
            body += f'<tr><th scope="row">{escape(label)}</th>{_cells(tags, cells)}</tr>'
        kind = "matrix given" if given else "matrix"
        self._scrolling(f'<table class="{kind}"><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>')

    def sums(self, lines: Iterable[str]) -> None:
        """Lines of arithmetic, one below the other; a long one scrolls."""
        self._scrolling(f'<div class="sums">{escape(chr(10).join(lines))}</div>')

    def _scrolling(self, part: str) -> None:
        self._parts.append(f'<div class="scroll">{part}</div>')

    def settings(self, pairs: Iterable[tuple[str, str]]) -> None:
        """Names and values, in as many columns as there is room for; in Bangla names stay as they are typed.

        A single word may be typed too, so of the values only sentences are said.
        """
        cell = self._voice.cell
        named = ((name if self._in_bangla else name.replace("_", " "), value) for name, value in pairs)
        shown = ((name, cell(value) if " " in value else value) for name, value in named)
        rows = (f"<div><dt>{escape(name)}</dt><dd>{escape(value)}</dd></div>" for name, value in shown)
        self._parts.append(f"<dl>{''.join(rows)}</dl>")

    def figure(self, svg: str, caption: Text) -> None:
        """A picture with a sentence below it. The SVG is trusted, not escaped: pass only what `chart.py` drew."""
        self._parts.append(f"<figure>{svg}<figcaption>{self._words(caption)}</figcaption></figure>")

    def figures(self, pictures: Iterable[tuple[str, Text]]) -> None:
        """Figures side by side where there is room, each as (SVG, caption); see `figure`."""
        with self.box("figures"):
            for svg, caption in pictures:
                self.figure(svg, caption)

    @contextmanager
    def folded(self, summary: Text) -> Iterator[None]:
        """What is added inside is hidden until the reader opens it."""
        self._parts.append(f"<details><summary>{self._words(summary)}</summary>")
        yield
        self._parts.append("</details>")

    def pieces(self, pieces: Iterable[tuple[str, bool]]) -> None:
        """Tokens as coloured pieces: (text, whether it is only part of a letter)."""
        spans = (f'<span class="piece{" part" if part else ""}">{escape(text)}</span>' for text, part in pieces)
        self._parts.append(f'<p class="pieces" lang="bn">{"".join(spans)}</p>')

    def html(self, footer: Text = "") -> str:
        """The whole page."""
        foot = f"<footer>{self._words(footer)}</footer>" if footer else ""
        head = (
            '<meta charset="utf-8">\n<meta name="viewport" content="width=device-width, initial-scale=1">\n'
            f"<title>{escape(self._title)}</title>\n<style>{_STYLE}</style>"
        )
        body = "\n".join([*self._parts, foot])
        language = self._voice.language
        return f'<!doctype html>\n<html lang="{language}">\n<head>\n{head}\n</head>\n<body>\n{body}\n</body>\n</html>\n'


def as_script(data: Any) -> str:
    r"""JSON that can stand inside a ``<script>`` element, whatever its strings say.

    >>> as_script({"token": "</script>"})
    '{"token": "\\u003c/script\\u003e"}'
    """
    return _NOT_IN_SCRIPTS.sub(lambda found: f"\\u{ord(found[0]):04x}", as_json(data))
