"""Exercise sheets over HTTP match the library, also as spreadsheets."""

import io
import json
import zipfile
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest
from tests.inside.small_models import TEXT
from tests.loopback import http
from tests.server.conftest import Address

from kotha.artifacts import model_folder as bundle
from kotha.course.worksheet.builtin_sheets import PAPERS, Paper, paper_sheet, student_sheet
from kotha.course.worksheet.model import model_sheet


def post(house: Address, path: str = "", **asked: Any) -> httpx.Response:
    return http.post(f"{house.url}/api/exercise{path}", json=asked, timeout=60)


def matrix(said: Any, name: str) -> Any:
    step = next(each for each in said["steps"] if each["name"] == name)
    return np.array([[-np.inf if value is None else value for value in row] for row in step["values"]])


@pytest.mark.parametrize("asked", [{}, {"size": "4x6x3", "seed": 7}])
def test_a_sheet_without_a_model(house: Address, asked: dict[str, Any]) -> None:
    result, sheet = post(house, **asked).json(), student_sheet(asked.get("size"), asked.get("seed"))
    assert [step["name"] for step in result["steps"]] == list(sheet.steps)
    for name, values in sheet.matrices.items():
        assert np.array_equal(matrix(result, name), values)
    made = {step["name"]: (step["operation"], step["operands"]) for step in result["steps"]}
    assert made["X"] == (None, []) and made["products"] == ("product_by_rows", ["Q", "K"])
    assert made["masked"] == ("masked", ["scores", "mask"])


def test_the_page_s_tests_stand_on_the_same_sheet(house: Address) -> None:
    kept = Path(__file__).parents[2] / "web" / "tests" / "data" / "workshop.json"
    assert json.loads(kept.read_text(encoding="utf-8")) == post(house).json()


@pytest.mark.parametrize("paper", PAPERS[1:])
def test_a_sheet_by_its_name_is_the_library_s_and_the_one_of_the_page_s_tests(house: Address, paper: Paper) -> None:
    result, sheet = post(house, paper=paper).json(), paper_sheet(paper)
    for name, values in sheet.matrices.items():
        assert np.array_equal(matrix(result, name), values)
    kept = Path(__file__).parents[2] / "web" / "tests" / "data" / "papers.json"
    steps = [{name: value for name, value in step.items() if name != "title"} for step in result["steps"]]
    assert_alike(steps, json.loads(kept.read_text(encoding="utf-8"))[paper]["steps"])


def assert_alike(one: object, other: object) -> None:
    """Whether two results are equal, except for the last bit of powers, which processors round differently."""
    if isinstance(one, dict) and isinstance(other, dict):
        assert one.keys() == other.keys()
        for name, value in one.items():
            assert_alike(value, other[name])
    elif isinstance(one, list) and isinstance(other, list):
        assert len(one) == len(other)
        for value, kept in zip(one, other, strict=True):
            assert_alike(value, kept)
    else:
        assert one == (pytest.approx(other, rel=1e-13, abs=1e-13) if isinstance(other, float) else other)


def test_a_named_sheet_has_its_own_numbers_and_a_block_other_ones_too(house: Address) -> None:
    drawn = post(house, paper="block", seed=5).json()
    assert np.array_equal(matrix(drawn, "attended"), paper_sheet("block", 5).matrices["attended"])
    assert post(house, paper="bank", language="bn").json()["tokens"] == ["পাতা"]
    for asked in ({"size": "4x6x3"}, {"model": "gpt", "text": "নদী"}):
        assert post(house, paper="block", **asked).status_code == 400
    assert post(house, paper="robot", seed=5).status_code == 400
    given = {"W_O": [[1.0] * 4] * 4}
    file = post(house, "/spreadsheet", paper="block", matrices=given)
    assert file.status_code == 200 and zipfile.is_zipfile(io.BytesIO(file.content))
    refused = post(house, "/spreadsheet", paper="block", matrices={"W_O": [[1.0] * 3] * 4})
    assert refused.status_code == 400 and "W_O has shape (4, 3)" in refused.json()["error"]["message"]


@pytest.mark.parametrize(
    ("model", "asked"), [("gpt", {"layer": 1, "head": 2}), ("bert", {}), ("seq2seq", {"target": "মা", "part": "cross"})]
)
def test_a_sheet_of_a_head_is_small_enough_for_paper(house: Address, model: str, asked: dict[str, Any]) -> None:
    result = post(house, model=model, text="নদী", **asked).json()
    sheet = model_sheet(bundle.load(house.folder / model), "নদী", **asked)
    for name in ("scores", "weights"):
        assert matrix(result, name) == pytest.approx(sheet.steps[name].values, abs=1e-6)
    n_columns = matrix(result, "output").shape[1]
    assert n_columns <= 6 and matrix(result, "output") == pytest.approx(
        sheet.steps["output"].values[:, :n_columns], abs=1e-6
    )
    known = {step["name"] for step in result["steps"]}
    assert all(operand in known for step in result["steps"] for operand in step["operands"])


def test_invalid_sheets_are_rejected_with_a_message(house: Address) -> None:
    def refused(**asked: Any) -> str:
        response = post(house, **asked)
        assert response.status_code == 400, response.text
        return str(response.json()["error"]["message"])

    assert "given together" in refused(model="gpt")
    assert "give one of them" in refused(model="gpt", text=TEXT, size="3x4x2")
    assert "is not TOKENSxWIDTHxHEAD" in refused(size="99x4x2")
    assert "cannot read text" in refused(model="vit", text=TEXT)
    assert "shorten it" in refused(model="gpt", text=TEXT * 20)


def steps_page(said: httpx.Response) -> str:
    with zipfile.ZipFile(io.BytesIO(said.content)) as book:
        return book.read("xl/worksheets/sheet1.xml").decode()


def test_a_spreadsheet_is_sent_as_a_file(house: Address) -> None:
    pytest.importorskip("xlsxwriter", reason="writes spreadsheets")
    result = post(house, "/spreadsheet")
    assert result.headers["content-type"].endswith("spreadsheetml.sheet")
    assert "<v>0.8</v>" in steps_page(result) and "<f>IF(ISNUMBER(" in steps_page(result)
    given = {"X": [[2.5, 1.0, 0.0], [1.0, 0.0, 0.0]]}
    assert "<v>2.5</v>" in steps_page(post(house, "/spreadsheet", size="2x3x2", matrices=given))
    assert "X has shape (2, 3)" in post(house, "/spreadsheet", matrices=given).text
    assert "the same length" in post(house, "/spreadsheet", matrices={"X": [[1.0], [1.0, 2.0]]}).text
    assert "without a model" in post(house, "/spreadsheet", matrices=given, model="gpt", text="নদী").text
    assert "SQRT(" in steps_page(post(house, "/spreadsheet", model="gpt", text="নদী"))
