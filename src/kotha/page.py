"""One offline HTML page: a title, sections, tables, figures. No script, no font and no style from elsewhere.

Everything that goes in as text is escaped here, so a corpus cannot write into a page; a figure's SVG is the one thing
that is taken as it is. Bangla is set in whichever Bangla font the reader's system has; the names cover Debian, Windows,
macOS and Android.
"""

import html
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager

# What XML cannot hold: most control characters, and halves of surrogate pairs, which UTF-8 cannot hold either.
_FORBIDDEN = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")

_STYLE = """
:root { --ink: #1c1b19; --paper: #fdfcf8; --line: #ded9cc; --soft: #6b665b; --accent: #0b6e4f; --warm: #b3541e; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #ece8df; --paper: #191816; --line: #3a3731; --soft: #a39c8d; --accent: #5fc9a2; --warm: #e8965f; }
}
* { box-sizing: border-box; }
body { margin: 0 auto; padding: 2.5rem 1.25rem 4rem; max-width: 80rem; color: var(--ink); background: var(--paper);
  font: 1.02rem/1.65 "Noto Sans Bengali", "Noto Serif Bengali", "Nirmala UI", "Bangla Sangam MN", "Vrinda",
  system-ui, sans-serif; }
h1 { font-size: 1.9rem; line-height: 1.25; margin: 0 0 .25rem; overflow-wrap: anywhere; }
h2 { font-size: 1.2rem; margin: 2.4rem 0 .6rem; }
h1 small, h2 small { display: block; font-size: .8em; font-weight: 400; color: var(--soft); }
p.lead { color: var(--soft); margin: 0 0 1.5rem; max-width: 46rem; }
p { max-width: 46rem; overflow-wrap: anywhere; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; font-size: .95rem; }
th, td { text-align: right; padding: .45rem .7rem; border-bottom: 1px solid var(--line); vertical-align: top; }
th:first-child, td:first-child { text-align: left; }
thead th { font-weight: 600; border-bottom: 2px solid var(--ink); }
td.best { color: var(--accent); font-weight: 700; }
td.worst { color: var(--warm); }
.pieces { line-height: 2.3; max-width: none; }
.piece { display: inline-block; line-height: 1.5; padding: .12rem .3rem; border-radius: .3rem; margin-right: 2px;
  white-space: pre; border: 1px solid transparent; }
.piece:nth-child(odd) { background: color-mix(in srgb, var(--accent) 16%, transparent); }
.piece:nth-child(even) { background: color-mix(in srgb, var(--warm) 14%, transparent); }
.piece.part { border-color: var(--warm); font-family: ui-monospace, monospace; font-size: .82em; }
table.matrix { width: auto; font-variant-numeric: tabular-nums; border-left: 2px solid var(--soft);
  border-right: 2px solid var(--soft); border-radius: .5rem; border-collapse: separate; border-spacing: 0; }
table.matrix th, table.matrix td { border: 0; padding: .3rem .8rem; white-space: nowrap; }
table.matrix th { color: var(--soft); font-weight: 400; font-size: .9em; }
table.matrix tbody th { text-align: left; position: sticky; left: 0; background: var(--paper); }
table.matrix tbody tr:last-child th { border-bottom-left-radius: .4rem; }
table.matrix.given td { color: var(--accent); }
table.matrix td[style] { background: color-mix(in srgb, var(--accent) calc(var(--share) * 45%), transparent); }
.sums { font: .88rem/1.75 ui-monospace, "DejaVu Sans Mono", "Noto Sans Bengali", monospace; margin: .7rem 0 0;
  white-space: pre; }
.label { margin: 1.2rem 0 0; color: var(--soft); font-size: .9rem; }
.label + .story { margin-top: .2rem; }
.story { border-left: 3px solid var(--accent); padding: .1rem 0 .1rem 1rem; margin: 1rem 0; white-space: pre-line;
  overflow-wrap: anywhere; max-width: 46rem; }
.note { border-left: 3px solid var(--warm); padding: .1rem 0 .1rem 1rem; }
figure { margin: 1.2rem 0 1.8rem; max-width: 46rem; }
figure svg { display: block; width: 100%; height: auto; }
figcaption { color: var(--soft); font-size: .92rem; line-height: 1.5; margin-top: .5rem; }
.figures { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(24rem, 100%), 1fr)); gap: 0 3rem; }
@media (min-width: 60rem) { .figures { grid-template-columns: 1fr 1fr; } }
.figures figure svg { font-size: 15px; }
@media (max-width: 34rem) { figure svg, .figures figure svg { font-size: 20px; } }
.columns { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(27rem, 100%), 1fr)); gap: 0 3rem; }
.columns.three { grid-template-columns: repeat(auto-fit, minmax(min(19rem, 100%), 1fr)); gap: 0 2.2rem; }
.columns > * { min-width: 0; }
.columns > * > .label:first-child { margin-top: .4rem; }
.headline { display: flex; flex-wrap: wrap; gap: 1rem 3rem; margin: 1.6rem 0 0; }
.headline > div { flex: 1 1 9rem; max-width: 17rem; border-top: 2px solid var(--line); padding-top: .5rem; }
.headline > div:first-child { border-color: var(--accent); }
.headline b { display: block; font-size: 2.1rem; line-height: 1.2; font-variant-numeric: tabular-nums; }
.headline > div:first-child b { color: var(--accent); }
.headline span { color: var(--soft); font-size: .92rem; line-height: 1.45; display: block; }
.cards { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(13.5rem, 100%), 1fr)); gap: 1rem; }
.cards a { display: block; padding: .9rem 1rem; border: 1px solid var(--line); border-radius: .6rem; color: inherit;
  text-decoration: none; line-height: 1.45; }
.cards a:hover, .cards a:focus { border-color: var(--accent); }
.cards b { display: block; color: var(--accent); }
.cards b::after { content: " →"; }
.cards span { display: block; font-size: .92rem; }
.cards span[lang] { color: var(--soft); }
pre { margin: .3rem 0 1rem; padding: .6rem .8rem; border: 1px solid var(--line); border-radius: .4rem;
  white-space: pre-wrap; overflow-wrap: anywhere;
  font: .88rem/1.6 ui-monospace, "DejaVu Sans Mono", "Noto Sans Bengali", monospace; }
dl { display: grid; grid-template-columns: repeat(auto-fill, minmax(min(15rem, 100%), 1fr)); gap: 0 2rem;
  margin: .4rem 0 1rem; font-size: .95rem; }
dl > div { display: flex; flex-wrap: wrap; justify-content: space-between; gap: 0 1rem; padding: .3rem 0;
  border-bottom: 1px solid var(--line); }
dt { color: var(--soft); }
dd { margin: 0; overflow-wrap: anywhere; min-width: 0; }
details { margin: 1rem 0; }
summary { cursor: pointer; color: var(--accent); }
footer { margin-top: 3rem; padding-top: .8rem; color: var(--soft); font-size: .88rem;
  border-top: 1px solid var(--line); }
code { font-family: ui-monospace, "DejaVu Sans Mono", monospace; font-size: .9em; }
"""


def escape(text: str) -> str:
    """Text that HTML, XML and UTF-8 can hold and that cannot become markup.

    >>> escape("<b>" + chr(0) + "কথা")
    '&lt;b&gt;\ufffdকথা'
    """
    return html.escape(_FORBIDDEN.sub("\ufffd", text))


def _in_bangla(text: str) -> str:
    """The Bangla line of a heading."""
    return f'<small lang="bn">{escape(text)}</small>' if text else ""


def _cells(tags: Iterable[str], cells: Sequence[str]) -> str:
    return "".join(f"<td{tag}>{escape(cell)}</td>" for tag, cell in zip(tags, cells, strict=True))


def framed(html: str, title: str) -> str:
    """A whole page inside a notebook: in a frame of its own, from which it reaches neither notebook nor network."""
    # A page that may not look out of its frame cannot ask for the height it needs, so a screen's serves all.
    look = "width:100%;height:min(90vh,46rem);border:0;resize:vertical"
    return f'<iframe title="{escape(title)}" sandbox="allow-scripts" style="{look}" srcdoc="{escape(html)}"></iframe>'


class Page:
    """A page that is built from top to bottom and then asked for its HTML."""

    def __init__(self, title: str, lead: str = "", language: str = "en", bangla: str = "") -> None:
        self._title, self._language = title, language
        self._parts = [f"<h1>{escape(title)}{_in_bangla(bangla)}</h1>"]
        if lead:
            self._parts.append(f'<p class="lead">{escape(lead)}</p>')

    def heading(self, text: str, bangla: str = "") -> None:
        """Start a section; in both languages where there is a Bangla line."""
        self._parts.append(f"<h2>{escape(text)}{_in_bangla(bangla)}</h2>")

    def paragraph(self, text: str) -> None:
        """A paragraph of plain text."""
        self._parts.append(f"<p>{escape(text)}</p>")

    def note(self, text: str) -> None:
        """A paragraph that should not be missed."""
        self._parts.append(f'<p class="note">{escape(text)}</p>')

    def story(self, text: str, label: str = "", given: str = "") -> None:
        """A passage, its lines kept, below a line that says whence it comes; ``given`` is its bold beginning."""
        if label:
            self._parts.append(f'<p class="label">{escape(label)}</p>')
        bold = given if given and text.startswith(given) else ""
        start = f"<b>{escape(bold)}</b>" if bold else ""
        self._parts.append(f'<div class="story" lang="bn">{start}{escape(text[len(bold) :])}</div>')

    def headline(self, figures: Iterable[tuple[str, str]]) -> None:
        """A few large figures side by side, each with what it is; the first is what the page is about."""
        cells = (f"<div><b>{escape(value)}</b><span>{escape(words)}</span></div>" for value, words in figures)
        self._parts.append(f'<div class="headline">{"".join(cells)}</div>')

    def links(self, cards: Iterable[tuple[str, str, str, str]]) -> None:
        """Other pages as cards: address, name, a sentence in English and one in Bangla."""
        shown = (
            f'<a href="{escape(address)}"><b>{escape(name)}</b><span>{escape(english)}</span>'
            f'<span lang="bn">{escape(bangla)}</span></a>'
            for address, name, english, bangla in cards
        )
        self._parts.append(f'<nav class="cards">{"".join(shown)}</nav>')

    def code(self, text: str, label: str = "") -> None:
        """Commands or a program, to be copied, and a line above that says what for."""
        self._parts.append((f'<p class="label">{escape(label)}</p>' if label else "") + f"<pre>{escape(text)}</pre>")

    @contextmanager
    def box(self, kind: str) -> Iterator[None]:
        """A part of the page; the parts within ``columns`` stand side by side where there is room."""
        self._parts.append(f'<div class="{kind}">')
        yield
        self._parts.append("</div>")

    def table(self, header: Sequence[str], rows: Iterable[Sequence[str]], marks: dict[tuple[int, int], str]) -> None:
        """A table; ``marks`` gives cells (row, column) a class such as ``best`` or ``worst``."""
        head = "".join(f"<th>{escape(cell)}</th>" for cell in header)
        body = ""
        for row, cells in enumerate(rows):
            tags = (f' class="{marks[row, column]}"' if (row, column) in marks else "" for column in range(len(cells)))
            body += f"<tr>{_cells(tags, cells)}</tr>"
        self._scrolling(f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>")

    def matrix(
        self,
        header: Sequence[str],
        rows: Iterable[Sequence[str]],
        shares: Sequence[Sequence[float | None]] = (),
        given: bool = False,
    ) -> None:
        """A matrix between its brackets; the first of each row is its label, ``shares`` (0 to 1) shade the cells."""
        head = "".join(f'<th scope="col">{escape(cell)}</th>' for cell in header)
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
        """Names and values, in as many columns as there is room for."""
        rows = (f"<div><dt>{escape(name)}</dt><dd>{escape(value)}</dd></div>" for name, value in pairs)
        self._parts.append(f"<dl>{''.join(rows)}</dl>")

    def figure(self, svg: str, caption: str) -> None:
        """A picture with a sentence below it. The SVG is trusted, not escaped: pass only what `kotha.chart` drew."""
        self._parts.append(f"<figure>{svg}<figcaption>{escape(caption)}</figcaption></figure>")

    def figures(self, pictures: Iterable[tuple[str, str]]) -> None:
        """Figures side by side where there is room, each as (SVG, caption); see `figure`."""
        with self.box("figures"):
            for svg, caption in pictures:
                self.figure(svg, caption)

    @contextmanager
    def folded(self, summary: str) -> Iterator[None]:
        """What is added inside is hidden until the reader opens it."""
        self._parts.append(f"<details><summary>{escape(summary)}</summary>")
        yield
        self._parts.append("</details>")

    def pieces(self, pieces: Iterable[tuple[str, bool]]) -> None:
        """Tokens as coloured pieces: (text, whether it is only part of a letter)."""
        spans = (f'<span class="piece{" part" if part else ""}">{escape(text)}</span>' for text, part in pieces)
        self._parts.append(f'<p class="pieces" lang="bn">{"".join(spans)}</p>')

    def html(self, footer: str = "") -> str:
        """The whole page."""
        foot = f"<footer>{escape(footer)}</footer>" if footer else ""
        head = (
            '<meta charset="utf-8">\n<meta name="viewport" content="width=device-width, initial-scale=1">\n'
            f"<title>{escape(self._title)}</title>\n<style>{_STYLE}</style>"
        )
        body = "\n".join([*self._parts, foot])
        language = escape(self._language)
        return f'<!doctype html>\n<html lang="{language}">\n<head>\n{head}\n</head>\n<body>\n{body}\n</body>\n</html>\n'
