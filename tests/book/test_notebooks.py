"""The chapters as notebooks: up to date, and one executed in a real kernel (in the extended suite, all of them)."""

from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbclient import NotebookClient
from scripts.book.chapters import Chapter, chapters
from scripts.book.notebooks import NOTEBOOKS, notebook_of, path_of, text_of


@pytest.mark.parametrize("chapter", chapters(), ids=lambda each: each.label)
def test_a_notebook_is_that_of_its_chapter(chapter: Chapter) -> None:
    fresh = "run `python -m scripts.book notebooks`"
    assert path_of(chapter).read_text(encoding="utf-8") == text_of(notebook_of(chapter)), fresh


def test_there_is_no_other_notebook() -> None:
    assert {path_of(chapter) for chapter in chapters()} == set(NOTEBOOKS.glob("*.ipynb"))


def test_a_notebook_has_the_code_and_neither_outputs_nor_comments() -> None:
    chapter = next(each for each in chapters() if each.label == "01-text.en")
    notebook = notebook_of(chapter)
    code = [cell.source for cell in notebook.cells if cell.cell_type == "code"]
    assert code == [part.text for part in chapter.parts if part.kind == "python"]
    prose = "\n".join(cell.source for cell in notebook.cells if cell.cell_type == "markdown")
    assert "<!--" not in prose
    assert "51 bytes\n" not in prose
    assert "```console" in prose
    assert "](01-text.bn.ipynb)" in prose


def executed(chapter: Chapter, folder: Path) -> list[Any]:
    notebook = nbformat.read(path_of(chapter), as_version=4)
    NotebookClient(notebook, timeout=300, resources={"metadata": {"path": str(folder)}}).execute()
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


def test_the_first_chapter_runs_as_a_notebook_and_shows_its_picture(tmp_path: Path) -> None:
    cells = executed(next(each for each in chapters() if each.label == "01-text.bn"), tmp_path)
    assert any("image/svg+xml" in output.get("data", {}) for cell in cells for output in cell.outputs)


@pytest.mark.slow
@pytest.mark.parametrize("chapter", chapters(), ids=lambda each: each.label)
def test_every_chapter_runs_as_a_notebook(chapter: Chapter, tmp_path: Path) -> None:
    assert not [each for cell in executed(chapter, tmp_path) for each in cell.outputs if each.output_type == "error"]
