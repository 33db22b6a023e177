"""The notebook in examples/, executed cell by cell in a real kernel, with a shorter training run."""

from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbclient import NotebookClient

NOTEBOOK = Path(__file__).parent.parent / "examples" / "first-steps.ipynb"


@pytest.fixture(scope="module")
def cells(tmp_path_factory: pytest.TempPathFactory) -> list[Any]:
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    assert not any(cell.get("outputs") for cell in notebook.cells), "it is kept without outputs"
    (training,) = [cell for cell in notebook.cells if "steps=100" in cell.source]
    training.source = training.source.replace("steps=100", "steps=3")
    folder = tmp_path_factory.mktemp("notebook")
    NotebookClient(notebook, timeout=300, resources={"metadata": {"path": str(folder)}}).execute()
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


def outputs(cells: list[Any], calls: str) -> list[Any]:
    """Return the output of the only cell that makes a call."""
    (cell,) = [cell for cell in cells if calls in cell.source]
    return list(cell.outputs)


def test_no_cell_fails(cells: list[Any]) -> None:
    assert not [output for cell in cells for output in cell.outputs if output.output_type == "error"]


@pytest.mark.parametrize("calls", ["kotha.train(", "lm.attention("])
def test_pages_show_themselves(cells: list[Any], calls: str) -> None:
    *_, shown = [each.data["text/html"] for each in outputs(cells, calls) if "data" in each]  # after the progress
    assert shown.startswith("<iframe ")
    assert 'sandbox="allow-scripts"' in shown


def test_training_shows_its_evaluations(cells: list[Any]) -> None:
    progress, _ = [each.data["text/html"] for each in outputs(cells, "kotha.train(") if "data" in each]
    assert "validation" in progress and "<progress" not in progress


def test_a_score_shows_itself_as_a_table(cells: list[Any]) -> None:
    *_, shown = [each.data["text/html"] for each in outputs(cells, "lm.evaluate(") if "data" in each]
    assert shown.startswith("<table>") and "bits per byte" in shown


def test_what_is_shown_is_bangla(cells: list[Any]) -> None:
    written = "".join(each.text for each in outputs(cells, "lm.generate("))
    assert written.startswith("নদীর ধারে")
    assert sum("\u0980" <= letter <= "\u09ff" for letter in written) > 40
    *_, attention = outputs(cells, "lm.attention(")
    assert "গ্রাম" in attention.data["text/html"]
