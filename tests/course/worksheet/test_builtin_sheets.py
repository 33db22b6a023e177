"""Built-in and user-made sheets, compared with torch and with the notes, and tested with malicious files."""

import json
import math
from pathlib import Path

import numpy as np
import pytest
import torch
from tests.course.worksheet.made import told_by
from torch.nn import functional

from kotha.course.worksheet.builtin_sheets import paper_sheet, positions, positions_picture, workshop_sheet
from kotha.course.worksheet.own_matrices import sheet_of, sheet_of_file
from kotha.course.worksheet.page import sheet_view
from kotha.course.worksheet.sheet import Sheet
from kotha.errors import DataError, UsageError
from kotha.model.position import SinusoidalPositions

ONE = [[1.0, 0.0], [0.0, 1.0]]
PLAIN = {"X": ONE, "W_Q": ONE, "W_K": ONE, "W_V": ONE}


def tensor(matrix: np.ndarray) -> torch.Tensor:
    return torch.from_numpy(matrix)


def by_torch(given: dict[str, np.ndarray]) -> dict[str, torch.Tensor]:
    """Compute the block with torch's own attention, LayerNorm and softmax."""
    m = {name: tensor(matrix) for name, matrix in given.items()}
    x = m["X"]
    outputs = [
        functional.scaled_dot_product_attention(
            *((x @ m[f"W_{letter}_{head}"])[None] for letter in "QKV"), is_causal=True
        )[0]
        for head in (1, 2)
    ]
    attended = torch.cat(outputs, dim=1) @ m["W_O"]
    first = functional.layer_norm(x + attended, (x.shape[1],), eps=1e-5)
    fed = functional.relu(first @ m["W_1"]) @ m["W_2"]
    second = functional.layer_norm(first + fed, (x.shape[1],), eps=1e-5)
    logits = second @ m["W_vocabulary"]
    return {
        "output_1": outputs[0],
        "output_2": outputs[1],
        "attended": attended,
        "normed_1": first,
        "fed": fed,
        "normed_2": second,
        "logits": logits,
        "chances": logits.softmax(dim=-1),
        "guess": logits.argmax(dim=-1, keepdim=True).double() + 1,
    }


@pytest.mark.parametrize("seed", [None, 0, 7])
def test_every_matrix_of_the_block_matches_torch(seed: int | None) -> None:
    matrices = paper_sheet("block", seed).matrices
    for name, computed in by_torch(matrices).items():
        np.testing.assert_allclose(matrices[name], computed.numpy(), atol=1e-9, err_msg=name)


def test_the_block_s_first_head_matches_the_workshop_and_its_prediction_the_book() -> None:
    steps = paper_sheet("block").steps
    np.testing.assert_allclose(steps["output_1"].values, workshop_sheet().steps["output"].values)
    np.testing.assert_allclose(steps["attended"].values[0], [0.724, 0.33, 0.382, 0.668], atol=5e-4)
    assert steps["chances"].columns[int(steps["guess"].values[-1, 0]) - 1] == "বৃদ্ধি"


def test_the_example_of_112_and_96() -> None:
    steps = paper_sheet("thinking").steps
    assert steps["scores"].values.tolist() == [[14.0, 12.0]]
    expected = torch.tensor([14.0, 12.0], dtype=torch.float64).softmax(dim=0).tolist()
    assert steps["weights"].values[0].tolist() == pytest.approx(expected)
    assert [f"{value:.2f}" for value in steps["weights"].values[0]] == ["0.88", "0.12"]


def test_the_robot_example_is_causal() -> None:
    steps = paper_sheet("robot").steps
    scores, ahead = tensor(steps["scores"].values), torch.ones(4, 4).triu(1).bool()
    expected = scores.masked_fill(ahead, -math.inf).softmax(dim=-1)
    np.testing.assert_allclose(steps["weights"].values, expected.numpy())
    assert (steps["weights"].values[ahead.numpy()] == 0).all()


def test_the_output_moves_towards_the_neighbouring_word() -> None:
    steps = paper_sheet("bank").steps
    beside_account, beside_river = steps["output_1"].values[0], steps["output_2"].values[0]
    assert beside_account[0] > beside_account[1] and beside_river[1] > beside_river[0]
    assert steps["X"].values[0, 0] == steps["X"].values[0, 1], "alone it has no preference"


@pytest.mark.parametrize(("n_places", "width"), [(6, 4), (20, 512)])
def test_positions_match_the_model(n_places: int, width: int) -> None:
    ours = positions(n_places, width)
    theirs = SinusoidalPositions()(torch.zeros(1, n_places, width), torch.arange(n_places))[0]
    np.testing.assert_allclose(ours, theirs.numpy(), atol=1e-6)
    if width == 4:
        np.testing.assert_allclose(paper_sheet("positions").matrices["positions"], ours, atol=1e-12)


def test_the_picture_of_positions_has_a_cell_for_each_number() -> None:
    assert positions_picture().svg().count("<rect") == 20 * 512 + 1


@pytest.mark.parametrize("name", ["block", "thinking", "robot", "bank", "positions"])
@pytest.mark.parametrize("language", ["en", "bn"])
def test_every_sheet_can_be_viewed_and_saved(name: str, language: str, tmp_path: Path) -> None:
    view = sheet_view(paper_sheet(name, language=language), language=language)  # type: ignore[arg-type]
    assert view.steps and all(step.rows for step in view.steps)
    assert any(step.sums for step in view.steps), "some arithmetic is shown"
    assert json.loads(json.dumps(view.to_dict(), allow_nan=False))["steps"]
    page = view.save(tmp_path / "sheet.html").read_text(encoding="utf-8")
    result = told_by(page)
    assert result["title"][language] == view.title and "self-attention" not in view.title.lower()
    assert result["called"] == name and len(result["solved"]) == len(view.steps)
    assert [step["sums"] for step in result["solved"]] == [step.sums for step in view.steps]
    assert len(page.encode()) < 400_000
    assert view.save_spreadsheet(tmp_path / "sheet.xlsx").stat().st_size > 1000


def test_only_the_block_accepts_a_seed() -> None:
    first, second, again = (paper_sheet("block", seed).matrices["W_O"] for seed in (1, 2, 1))
    assert not np.array_equal(first, second) and np.array_equal(first, again)
    with pytest.raises(UsageError, match="the sheet 'robot' has fixed numbers"):
        paper_sheet("robot", 1)


def test_the_bangla_sheet_uses_a_bangla_homonym() -> None:
    assert str(paper_sheet("bank", language="bn").title).startswith("পাতা")


# -- the user's own matrices ------------------------------------------------------------------------------------------


def same(one: Sheet, other: Sheet) -> bool:
    return all(np.array_equal(step.values, other.steps[name].values) for name, step in one.steps.items())


def test_own_matrices_as_json_and_as_csv_in_either_digits(tmp_path: Path) -> None:
    result = {**PLAIN, "X": [[1.0, -0.5], [0.25, 2.0]], "tokens": ["ক", "খ"], "mask": "none"}
    (tmp_path / "own.json").write_text(json.dumps(result), encoding="utf-8")
    blocks = [
        "tokens\nক,খ",
        "X\n১,−০.৫,,\n0.25,2,,",
        *(f"{name}\n1,0\n0,1" for name in ("W_Q", "W_K", "W_V")),
        "mask\nnone",
    ]
    (tmp_path / "own.csv").write_text("\n\n".join(blocks), encoding="utf-8-sig")
    sheet = sheet_of_file(tmp_path / "own.json")
    assert same(sheet, sheet_of_file(tmp_path / "own.csv"))
    x = torch.tensor(result["X"], dtype=torch.float64)
    expected = functional.scaled_dot_product_attention(x[None], x[None], x[None])[0]
    np.testing.assert_allclose(sheet.steps["output"].values, expected.numpy())
    assert sheet_of_file(tmp_path / "own.csv").tokens == ("ক", "খ")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"W_Q": None}, "W_Q is missing"),
        ({"W_Q": [[1.0, 2.0]]}, "W_Q has 1 rows but X has 2 columns"),
        ({"W_K": [[1.0], [2.0]]}, "W_Q has 2 columns but W_K has 1"),
        ({"X": [[1.0, 2.0], [1.0]]}, r"X: row 2 is \[1.0\]; each row must have 2 numbers, each at most 1,000,000"),
        ({"X": [[1.0, "=cmd()"], [1.0, 1.0]]}, r"X: row 1 is \[1.0, '=cmd\(\)'\]; each row must have 2 numbers"),
        ({"X": [[1.0, True], [1.0, 1.0]]}, r"row 1 is \[1.0, True\]"),
        ({"X": [[math.nan, 0.0], [1.0, 1.0]]}, r"row 1 is \[nan, 0.0\]"),
        ({"X": [[10**400, 0.0], [1.0, 1.0]]}, "row 1 is .*at most 1,000,000"),
        ({"X": [[1e300, 0.0], [1.0, 1.0]]}, r"row 1 is \[1e\+300, 0.0\]"),
        ({"X": [[0.0, 0.0]] * 25}, "X is 25 × 2, too large to compute by hand"),
        ({"X": []}, "X is missing or not a matrix"),
        ({"X": {"a": 1}}, "X is missing or not a matrix"),
        ({"W_O": ONE}, "unknown key 'W_O'"),
        ({"tokens": ["a"]}, "tokens must be 2 strings of 1 to 40 characters"),
        ({"tokens": ["a", "x" * 99]}, "tokens must be"),
        ({"mask": "other"}, "mask='other' is not supported"),
        ({"mask": [1]}, "is not supported"),
    ],
)
def test_invalid_matrices_are_rejected_by_name(change: dict[str, object], message: str) -> None:
    with pytest.raises(DataError, match=message):
        sheet_of({**PLAIN, **change})


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.csv", b"X\n1,x\n", r"X: row 1 is \[1.0, 'x'\]"),
        ("a.csv", b"X\n1\n\nX\n2\n", "line 4: expected the name of a matrix, found 'X'"),
        ("a.csv", b"nothing\n", "found 'nothing'"),
        ("a.csv", b"\xff\xfe\x00", "cannot be read"),
        ("a.csv", b"X\n1,inf\n", r"X: row 1 is \[1.0, inf\]"),
        ("a.json", b"[1]", "it is not a JSON object"),
        ("a.json", b"{", "is corrupted"),
        ("a.json", b'{"X": 1, "X": 2}', "occurs twice"),
        ("a.csv", b"1" * 300_000, "too large for a worksheet"),
        ("a.json", b" " * 300_000, "too large for a"),
    ],
)
def test_a_broken_file_is_rejected(tmp_path: Path, name: str, content: bytes, message: str) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(DataError, match=message):
        sheet_of_file(tmp_path / name)


def test_a_missing_file(tmp_path: Path) -> None:
    for name, error in (("none.csv", FileNotFoundError), ("none.json", DataError)):
        with pytest.raises(error):
            sheet_of_file(tmp_path / name)


def test_hostile_labels_stay_text(tmp_path: Path) -> None:
    result = {**PLAIN, "tokens": ["<script>", "=1+1"]}
    (tmp_path / "own.json").write_text(json.dumps(result), encoding="utf-8")
    page = sheet_view(sheet_of_file(tmp_path / "own.json")).save(tmp_path / "own.html").read_text(encoding="utf-8")
    result = told_by(page)
    assert result["solved"][0]["rows"]["en"] == result["asked"]["en"][0]["rows"] == ["<script>", "=1+1"]
    assert "\\u003cscript" in page and result["called"] == "own"
