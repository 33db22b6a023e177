"""Write chapters as notebooks: the same prose and code, without outputs, for programs that open ``.ipynb`` files.

Outputs are omitted, because readers run the code themselves, and so are the comments that check numbers. Commands are
kept as text, because they are run in a terminal. jupytext can also open the Markdown of a chapter directly.
"""

import json
import re
from pathlib import Path
from typing import Any

import jupytext
import nbformat
from scripts.book.chapters import ROOT, Chapter, chapters
from scripts.book.running import output_of

NOTEBOOKS = ROOT / "docs" / "notebooks"
_DIRECTIVES = re.compile(r"<!--\s*(?:holds|given|about):.*?-->\n?", re.DOTALL)
_ITSELF = re.compile(r" · \[[^\]]*\]\(\.\./notebooks/[^)]*\)")
_CHAPTERS = re.compile(
    r"\]\(((?:\d\d-[\w-]+|build)(?:\.bn)?)\.md"
)  # links to other chapters; they become links to notebooks
_OTHERS = re.compile(r"\]\(([\w-]+(?:\.bn)?\.md[^)]*)\)")  # links to other pages, relative to the chapters
_FOLDED = re.compile(r"</?(?:details|summary)[^>]*>")


def path_of(chapter: Chapter, folder: Path = NOTEBOOKS) -> Path:
    """Return the path of a chapter's notebook."""
    return folder / chapter.path.with_suffix(".ipynb").name


def notebook_of(chapter: Chapter) -> Any:
    """Return a chapter as a notebook; the result is deterministic."""
    outputs = {id(output_of(chapter, place)) for place, part in enumerate(chapter.parts) if part.kind == "python"}
    kept = []
    for part in chapter.parts:
        if part.kind == "prose":
            kept.append(_FOLDED.sub(_heading, _DIRECTIVES.sub("", part.text)).strip("\n"))
        elif id(part) not in outputs:
            kept.append(f"```{part.kind}\n{part.text}\n```")
    notebook = jupytext.reads("\n\n".join(text for text in kept if text), fmt="md")
    for place, cell in enumerate(notebook.cells):
        cell["id"] = f"part-{place:02}"
        cell["metadata"] = {}
        if cell["cell_type"] == "markdown":
            cell["source"] = _OTHERS.sub(
                r"](../learn/\1)", _CHAPTERS.sub(r"](\1.ipynb", _ITSELF.sub("", cell["source"]))
            )
    notebook["metadata"] = {
        "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
        "language_info": {"name": "python"},
    }
    notebook["nbformat"], notebook["nbformat_minor"] = 4, 5
    nbformat.validate(notebook)
    return notebook


def _heading(found: re.Match[str]) -> str:
    """Give collapsible text its own heading, because notebooks cannot collapse text."""
    return "### " if found[0].startswith("<summary") else ""


def text_of(notebook: Any) -> str:
    """Return the text of a notebook file."""
    return json.dumps(notebook, ensure_ascii=False, indent=1, sort_keys=True) + "\n"


def write_notebooks(folder: Path = NOTEBOOKS) -> int:
    """Write the notebooks of all chapters, and remove those of removed chapters; return their number."""
    folder.mkdir(parents=True, exist_ok=True)
    made = {path_of(chapter, folder): text_of(notebook_of(chapter)) for chapter in chapters()}
    for stale in set(folder.glob("*.ipynb")) - made.keys():
        stale.unlink()
    for path, text in made.items():
        path.write_text(text, encoding="utf-8")
    return len(made)
