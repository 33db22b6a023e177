"""One offline HTML page: a title, sections, tables. No script, no font and no style from elsewhere.

Everything that goes in as text is escaped here, so a corpus cannot write into a page. Bangla is set in whichever Bangla
font the reader's system has; the names cover Debian, Windows, macOS and Android.
"""

from collections.abc import Iterable, Sequence
from html import escape

_STYLE = """
:root { --ink: #1c1b19; --paper: #fdfcf8; --line: #ded9cc; --soft: #6b665b; --accent: #0b6e4f; --warm: #b3541e; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #ece8df; --paper: #191816; --line: #3a3731; --soft: #a39c8d; --accent: #5fc9a2; --warm: #e8965f; }
}
* { box-sizing: border-box; }
body { margin: 0 auto; padding: 2.5rem 1.25rem 4rem; max-width: 68rem; color: var(--ink); background: var(--paper);
  font: 1.02rem/1.65 "Noto Sans Bengali", "Noto Serif Bengali", "Nirmala UI", "Bangla Sangam MN", "Vrinda",
  system-ui, sans-serif; }
h1 { font-size: 1.9rem; line-height: 1.25; margin: 0 0 .25rem; }
h2 { font-size: 1.2rem; margin: 2.4rem 0 .6rem; }
p.lead { color: var(--soft); margin: 0 0 1.5rem; max-width: 46rem; }
p { max-width: 46rem; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; font-size: .95rem; }
th, td { text-align: right; padding: .45rem .7rem; border-bottom: 1px solid var(--line); vertical-align: top; }
th:first-child, td:first-child { text-align: left; }
thead th { font-weight: 600; border-bottom: 2px solid var(--ink); }
td.best { color: var(--accent); font-weight: 700; }
td.worst { color: var(--warm); }
.pieces { line-height: 2.3; }
.piece { display: inline-block; line-height: 1.5; padding: .12rem .3rem; border-radius: .3rem; margin-right: 2px;
  white-space: pre; border: 1px solid transparent; }
.piece:nth-child(odd) { background: color-mix(in srgb, var(--accent) 16%, transparent); }
.piece:nth-child(even) { background: color-mix(in srgb, var(--warm) 14%, transparent); }
.piece.part { border-color: var(--warm); font-family: ui-monospace, monospace; font-size: .82em; }
.story { border-left: 3px solid var(--accent); padding: .1rem 0 .1rem 1rem; margin: 1rem 0; white-space: pre-line; }
footer { margin-top: 3rem; padding-top: .8rem; color: var(--soft); font-size: .88rem;
  border-top: 1px solid var(--line); }
code { font-family: ui-monospace, "DejaVu Sans Mono", monospace; font-size: .9em; }
"""


class Page:
    """A page that is built from top to bottom and then asked for its HTML."""

    def __init__(self, title: str, lead: str = "", language: str = "en") -> None:
        self._title, self._language = title, language
        self._parts = [f"<h1>{escape(title)}</h1>"]
        if lead:
            self._parts.append(f'<p class="lead">{escape(lead)}</p>')

    def heading(self, text: str) -> None:
        """Start a section."""
        self._parts.append(f"<h2>{escape(text)}</h2>")

    def paragraph(self, text: str) -> None:
        """A paragraph of plain text."""
        self._parts.append(f"<p>{escape(text)}</p>")

    def story(self, text: str) -> None:
        """A passage of a corpus, its lines kept."""
        self._parts.append(f'<div class="story" lang="bn">{escape(text)}</div>')

    def table(self, header: Sequence[str], rows: Iterable[Sequence[str]], marks: dict[tuple[int, int], str]) -> None:
        """A table; ``marks`` gives cells (row, column) a class such as ``best`` or ``worst``."""
        head = "".join(f"<th>{escape(cell)}</th>" for cell in header)
        body = ""
        for row, cells in enumerate(rows):
            tags = (f' class="{marks[row, column]}"' if (row, column) in marks else "" for column in range(len(cells)))
            body += (
                "<tr>"
                + "".join(f"<td{tag}>{escape(cell)}</td>" for tag, cell in zip(tags, cells, strict=True))
                + "</tr>"
            )
        self._parts.append(
            f'<div class="scroll"><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>'
        )

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
