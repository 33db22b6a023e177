"""Figures in the documentation equal the measured ones.

Each table in docs/dev/experiments.md names its file in benchmarks/results and contains the numbers in that file, or its
section states that the results were recorded without a file. Each figure in README.md and docs/dev/design.md is in one
of these files, in docs/dev/experiments.md, or checked by a test named here.
"""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parent.parent
EXPERIMENTS = (ROOT / "docs" / "dev" / "experiments.md").read_text(encoding="utf-8")
SECTIONS = {section.splitlines()[0]: section for section in re.split(r"^## ", EXPERIMENTS, flags=re.MULTILINE)[1:]}
REMEMBERED = re.compile(r"^\*\*Remembered\*\*, \d{4}-\d\d-\d\d", re.MULTILINE)
NUMBER = re.compile(r"(?<![\w.,])\d[\d,]*(?:\.\d+)?(?![\w.]*\w)")
# The factor between a results file and a table, by the unit next to the figure.
UNITS = {"MiB": 2**-20, "GB": 1e-9, "peak": 1e-9, "%": 100.0, "change": 100.0}
# Figures in the documentation that are not measured, but counted by a test.
COUNTED = {
    "58,139,648": "tests/model/test_parameters.py",
}


def numbers(value: Any) -> Iterator[float]:
    """Return every number in a results file, and the totals of groups."""
    if isinstance(value, dict | list):
        parts = list(value.values()) if isinstance(value, dict) else value
        for each in parts:
            yield from numbers(each)
        if len(parts) > 1 and all(isinstance(each, dict) and each.keys() == parts[0].keys() for each in parts):
            for key in parts[0]:
                if all(isinstance(each[key], int) for each in parts):
                    yield float(sum(each[key] for each in parts))
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield float(value)


def results(names: list[str]) -> list[float]:
    return [
        number
        for name in names
        for path in sorted((ROOT / "benchmarks" / "results").glob(f"{name}.json"))
        for number in numbers(json.loads(path.read_text(encoding="utf-8")))
    ]


def shown_as(value: float, shown: str) -> bool:
    """Return whether a value, without its sign, rounds to these digits."""
    plain = shown.replace(",", "")
    return abs(abs(round(value, len(plain.partition(".")[2]))) - float(plain)) < 1e-9


def tables(section: str) -> Iterator[list[list[str]]]:
    for table in re.findall(r"(?:^\|.*\n)+", section, re.MULTILINE):
        yield [[cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines()]


@pytest.mark.parametrize("name", SECTIONS)
def test_a_table_of_experiments_says_what_its_results_file_says(name: str) -> None:
    section = SECTIONS[name]
    cited = re.findall(r"`benchmarks/results/(\w+)\.json`", section)
    if REMEMBERED.search(section):
        return
    assert cited, f"“{name}” names no file in benchmarks/results; name it, or say **Remembered**, with the date"
    measured = results(cited)
    for header, _, *rows in tables(section):
        for row in rows:
            if "(remembered)" in row[0]:
                continue
            cells = [number for cell in row[1:] for number in NUMBER.findall(cell)]
            for column, cell in zip(header[1:], row[1:], strict=True):
                if "(remembered)" in column:
                    continue
                scales = [
                    1.0,
                    *(scale for unit, scale in UNITS.items() if unit in column or unit in cell or unit in row[0]),
                ]
                for shown in NUMBER.findall(cell):
                    found = any(shown_as(value * scale, shown) for value in measured for scale in scales)
                    assert found or is_ratio(shown, cells), f"{name}: {row[0]}, {column}: {shown} is not in {cited}"


def is_ratio(shown: str, cells: list[str]) -> bool:
    """Return whether a figure is the ratio of two rounded figures in its row, so that its last digit may differ."""
    plain = [float(cell.replace(",", "")) for cell in cells if cell != shown]
    step = 10.0 ** -len(shown.partition(".")[2])
    return any(b and abs(a / b - float(shown.replace(",", ""))) <= step for a in plain for b in plain)


@pytest.mark.parametrize("name", ["README.md", "docs/dev/design.md", "docs/explanation/family.md", "CHANGELOG.md"])
def test_a_figure_of_the_documents_was_measured_or_is_counted(name: str) -> None:
    text = (ROOT / name).read_text(encoding="utf-8")
    text = re.sub(r"```.*?```|`[^`\n]*`|https?://\S+|Python \d\.\d+", "", text, flags=re.DOTALL)
    figures = {figure for figure in NUMBER.findall(text) if "." in figure} | set(
        re.findall(r"(?<![\d.,])\d[\d,]*(?= %)", text)
    )
    figures |= set(re.findall(r"(?<![\w.,])\d{1,3}(?:,\d{3})+(?![\w.,]*\d)", text))
    measured = results(["*"])
    unknown = []
    for figure in sorted(figures):
        counted = COUNTED.get(figure)
        if counted is not None:
            held = (ROOT / counted).read_text(encoding="utf-8")
            assert figure.replace(",", "_") in held, f"{figure} is not in {counted}"
        elif not re.search(rf"(?<![\d.,]){re.escape(figure)}(?![\d.,]*\d)", EXPERIMENTS):
            scales = [100.0] if f"{figure} %" in text else [1.0]
            unknown += (
                [] if any(shown_as(value * scale, figure) for value in measured for scale in scales) else [figure]
            )
    assert not unknown, f"{name} says {unknown}, and nothing in benchmarks/results or docs/dev/experiments.md does"


def test_a_result_of_the_readme_is_in_the_file_that_its_row_names() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    section = readme.partition("## Results")[2].partition("\n## ")[0]
    (table,) = tables(section)
    for claim, figures, file in table[2:]:
        measured = results([file.strip("`")])
        for shown in NUMBER.findall(re.sub(r"\d+ minutes|\d+k\b|GPT-2", "", figures)):
            scales = [1.0, 100.0] if "%" in figures else [1.0]
            found = shown == "0" or any(shown_as(value * scale, shown) for value in measured for scale in scales)
            assert found, f"{claim}: {shown} is not in {file}"
    file = ROOT / "benchmarks" / "results" / "fault_injection_kill.json"
    kills = json.loads(file.read_text(encoding="utf-8"))["figures"]
    assert sum(len(case["wrong"]) for case in kills["cases"]) == 0
    assert sum(case["faults"] for case in kills["cases"]) == 1283
