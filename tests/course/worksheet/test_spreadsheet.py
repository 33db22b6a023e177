"""Spreadsheets computed by LibreOffice: cells match torch, and a changed number updates the results."""

import csv
import shutil
import subprocess
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from tests.course.worksheet.made import MODERN, as_model, random_model
from torch import Tensor, nn

from kotha.course.worksheet.builtin_sheets import PAPERS, paper_sheet, workshop_matrices, workshop_sheet
from kotha.course.worksheet.model import read_head
from kotha.course.worksheet.sheet import Sheet
from kotha.course.worksheet.spreadsheet import INPUTS, README, STEPS, Areas, spreadsheet
from kotha.errors import UsageError
from kotha.inside.trace import trace
from kotha.model.config import BERTConfig, GPTConfig, Seq2SeqConfig
from kotha.model.family import build

SMALL: dict[str, Any] = {"n_layers": 1, "d_ff": 24, "vocab_size": 50, "context_length": 32}
# Head widths below and above the limit for written-out sums.
MODELS: dict[str, tuple[Any, str]] = {
    "classic": (GPTConfig(**SMALL, d_model=12, n_heads=2), "blocks.0.attention"),
    "modern": (GPTConfig(**SMALL, d_model=96, n_heads=4, **MODERN, attention_bias=False), "blocks.0.attention"),
    "bert": (BERTConfig(**SMALL, d_model=24, n_heads=2), "blocks.0.attention"),
    "cross": (Seq2SeqConfig(**SMALL, d_model=12, n_heads=2), "decoder.0.cross"),
}
# Recompute every formula instead of using the values stored in the file.
RECALCULATE = """<?xml version="1.0" encoding="UTF-8"?>
<oor:items xmlns:oor="http://openoffice.org/2001/registry" xmlns:xs="http://www.w3.org/2001/XMLSchema">
<item oor:path="/org.openoffice.Office.Calc/Formula/Load">
<prop oor:name="OOXMLRecalcMode" oor:op="fuse"><value>0</value></prop></item></oor:items>"""
# CSV options: comma, double quotes, UTF-8, from the first line, raw instead of formatted numbers, one file per page.
AS_CSV = "csv:Text - txt - csv (StarCalc):44,34,76,1,,0,false,false,false,false,false,-1"
CHANGED = 0.25


def made(name: str) -> tuple[nn.Module, list[Tensor], str]:
    config, place = MODELS[name]
    return *random_model(config, 5, 6, 4 if name == "cross" else None), place


def sheet_of(name: str) -> Sheet:
    if name in PAPERS:
        return paper_sheet(name)  # type: ignore[arg-type]
    model, inputs, place = made(name)
    labels = [f"=টোকেন{number}" for number in range(6)]  # labels that look like formulas stay labels
    return read_head(model, inputs, place, 1, labels, labels[:4] if name == "cross" else labels)


def change_first_input(source: Path, target: Path, area: Any) -> None:
    """Change X's first number in the file without touching cached values."""
    with zipfile.ZipFile(source) as old, zipfile.ZipFile(target, "w") as new:
        for item in old.namelist():
            data = old.read(item)
            if item == "xl/worksheets/sheet1.xml":
                cell = f'<c r="B{area.row + 1}"'.encode()
                before, found, after = data.partition(cell)
                assert found, "X is on the first page"
                number, _, rest = after.partition(b"</v>")
                data = before + found + number.partition(b"<v>")[0] + b"<v>%g</v>" % CHANGED + rest
            new.writestr(item, data)


@pytest.fixture(scope="module")
def computed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, list[list[str]]]]:
    """Return every spreadsheet by name, as pages of cells computed by LibreOffice."""
    soffice = shutil.which("soffice")
    if soffice is None:
        pytest.skip("no soffice; Debian's package `libreoffice-calc-nogui` brings one")
    folder = tmp_path_factory.mktemp("sheets with a space")
    for name in (*PAPERS, *MODELS):
        (folder / f"{name}.xlsx").write_bytes(spreadsheet(sheet_of(name)))
    changed = folder / "changed.xlsx"
    change_first_input(folder / "attention.xlsx", changed, Areas(sheet_of("attention")).of["X"])
    profile = folder / "profile" / "user"
    profile.mkdir(parents=True)
    (profile / "registrymodifications.xcu").write_text(RECALCULATE, encoding="utf-8")
    command = [soffice, f"-env:UserInstallation={profile.parent.as_uri()}", "--headless", "--convert-to", AS_CSV]
    command += ["--outdir", str(folder / "out"), *map(str, sorted(folder.glob("*.xlsx")))]
    subprocess.run(command, check=True, capture_output=True, timeout=300)
    pages: dict[str, dict[str, list[list[str]]]] = {}
    for file in (folder / "out").glob("*.csv"):
        name, _, page = file.stem.partition("-")
        with file.open(encoding="utf-8", newline="") as stream:
            pages.setdefault(name, {})[page] = list(csv.reader(stream))
    return pages


def matrix(pages: dict[str, list[list[str]]], sheet: Sheet, name: str) -> Any:
    area = Areas(sheet).of[name]
    rows = pages[area.page][area.row : area.row + area.height]
    numbers = [[cell.replace("−∞", "-inf") for cell in row[area.column : area.column + area.width]] for row in rows]
    return np.array(numbers, dtype=float)


@pytest.mark.parametrize("name", ["attention", *MODELS])
def test_libreoffice_computes_what_torch_computes(computed: Any, name: str) -> None:
    sheet = sheet_of(name)
    model, inputs, place = (
        (as_model(workshop_matrices()), [torch.arange(3)[None]], "blocks.0.attention")
        if name == "attention"
        else made(name)
    )
    with trace(model) as seen:
        model(*inputs)
    head = 0 if name == "attention" else 1
    for step, where in {"scores": "scores", "weights": "weights", "output": "head_outputs"}.items():
        found = matrix(computed[name], sheet, step)
        assert found == pytest.approx(seen[f"{place}.{where}"][0, head].numpy(), abs=1e-6), step


@pytest.mark.parametrize("name", [*PAPERS, *MODELS])
def test_libreoffice_computes_every_step_of_the_sheet(computed: Any, name: str) -> None:
    sheet = sheet_of(name)
    for step in sheet.steps:
        found, expected = matrix(computed[name], sheet, step), sheet.matrices[step]
        assert np.array_equal(np.isneginf(found), np.isneginf(expected)), step
        seen_by_all = ~np.isneginf(expected)
        assert found[seen_by_all] == pytest.approx(expected[seen_by_all], rel=1e-9, abs=1e-9), step


def test_a_changed_number_updates_all_results(computed: Any) -> None:
    sheet = sheet_of("attention")
    model = as_model(workshop_matrices())
    with torch.no_grad():
        model.tokens.weight[0, 0] = CHANGED
    with trace(model) as seen:
        model(torch.arange(3)[None])
    expected = seen["blocks.0.attention.head_outputs"][0, 0].numpy()
    found = matrix(computed["changed"], sheet, "output")
    assert matrix(computed["changed"], sheet, "X")[0, 0] == CHANGED
    assert found == pytest.approx(expected, abs=1e-6)
    assert np.abs(found - sheet.matrices["output"]).max() > 1e-2


def test_labels_are_text_and_pages_are_named(computed: Any) -> None:
    assert set(computed["attention"]) == {STEPS, README}
    assert set(computed["modern"]) == {STEPS, INPUTS, README}
    area = Areas(sheet_of("classic")).of["output"]
    assert computed["classic"][STEPS][area.row][0] == "=টোকেন0"
    assert "বাংলাদেশ" in {row[0] for row in computed["attention"][STEPS]}
    assert any(row and "change one" in row[0] for row in computed["attention"][README])


def test_every_step_is_a_formula_and_only_given_cells_are_numbers(tmp_path: Path) -> None:
    file = tmp_path / "sheet.xlsx"
    file.write_bytes(spreadsheet(workshop_sheet()))
    with zipfile.ZipFile(file) as packed:
        page = packed.read("xl/worksheets/sheet1.xml").decode()
    assert "<f>B5*B11+C5*B12+D5*B13+E5*B14</f><v>0.37</v>" in page.replace("0.37000000000000005", "0.37")
    sheet = workshop_sheet()
    formulas = sum(step.values.size for step in sheet.steps.values() if step.operation is not None)
    assert page.count("<f>") == formulas
    assert "SUMPRODUCT" not in page


@pytest.mark.parametrize(
    ("config", "n_tokens", "wording"),
    [
        (
            GPTConfig(**SMALL, d_model=8, n_heads=2),
            17,
            "17 tokens, 8 numbers per token and 4 per head is too large to be readable .at most 16, 2048, 128.",
        ),
        (GPTConfig(**SMALL, d_model=8, n_heads=1, d_head=130), 3, "8 numbers per token and 130 per head is too large"),
        (
            GPTConfig(**SMALL, d_model=2050, n_heads=1, d_head=2),
            3,
            "2,050 numbers per token and 2 per head is too large",
        ),
    ],
)
def test_a_spreadsheet_too_large_to_follow_is_rejected(config: GPTConfig, n_tokens: int, wording: str) -> None:
    model = build(config)
    sheet = read_head(model, [torch.arange(n_tokens)[None]], "blocks.0.attention", 0, list("x" * n_tokens))
    with pytest.raises(UsageError, match=wording):
        spreadsheet(sheet)
