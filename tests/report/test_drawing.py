"""Picture files are well-formed, deterministic, and contain the right numbers."""

import re
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from kotha.errors import UsageError
from kotha.report.drawing import Picture, bars, beside, grid, lines, pieces

SVG = "{http://www.w3.org/2000/svg}"
any_number = st.floats(-1e6, 1e6)


def shades(picture: Picture) -> list[float]:
    cells = re.findall(r'fill-opacity="([\d.]+)"', picture.svg())
    return [float(cell) for cell in cells]


def test_the_furthest_from_zero_is_the_darkest_and_below_zero_has_its_own_colour() -> None:
    picture = grid([[0.0, 0.5], [-1.0, 0.25]])
    assert shades(picture) == [0.0, 0.5, 1.0, 0.25]
    assert picture.svg().count("#b3541e") == 1
    assert "−1.00" in picture.svg()


@pytest.mark.parametrize("kind", [list, np.array, torch.tensor])
def test_a_grid_takes_lists_arrays_and_tensors(kind) -> None:
    assert grid(kind([[1.0, 2.0]])).svg() == grid([[1.0, 2.0]]).svg()


@given(
    st.lists(st.lists(any_number, min_size=3, max_size=3), min_size=1, max_size=4), st.text(max_size=8), st.booleans()
)
def test_pictures_are_well_formed(values, name, numbers) -> None:
    drawn = grid(values, [name] * len(values), [name] * 3, title=name, digits=2 if numbers else None)
    root = ElementTree.fromstring(drawn.svg())
    _, _, width, height = map(float, root.attrib["viewBox"].split())
    for cell in root.findall(f"{SVG}rect")[1:]:
        assert 0 <= float(cell.attrib["x"]) + float(cell.attrib["width"]) <= width
        assert 0 <= float(cell.attrib["y"]) + float(cell.attrib["height"]) <= height


def test_bars_are_as_long_as_their_values() -> None:
    root = ElementTree.fromstring(bars({"ক": 4, "খ": 1, "গ": 0}, title="a").svg())
    assert [float(bar.attrib["width"]) for bar in root.findall(f"{SVG}rect")[1:]] == [320.0, 80.0, 0.0]


def test_pieces_lines_and_combined_pictures() -> None:
    cut = pieces({"টোকেন": ["আমি", " বলি"]}, title="x")
    assert "␣বলি" in cut.svg()
    drawn = lines({"a": [(0, 1.0), (1, 2.0)], "b": [(0, 2.0)]}, x="step", y="loss", title="t")
    both = beside(cut, drawn, title="both")
    assert ElementTree.fromstring(both.svg()).findall(f"{SVG}svg")


def test_a_picture_is_saved_and_displayed(tmp_path: Path) -> None:
    picture = grid([[1]])
    assert picture.save(tmp_path / "a.svg") is picture
    assert (tmp_path / "a.svg").read_text() == picture._repr_svg_()
    with pytest.raises(UsageError, match=r"use a path that ends in \.svg"):
        picture.save(tmp_path / "a.png")


@pytest.mark.parametrize(
    ("draw", "says"),
    [
        (lambda: grid([]), "must have the same length"),
        (lambda: grid([[1], [1, 2]]), "must have the same length"),
        (lambda: bars({}), "all values must be 0 or more"),
        (lambda: bars({"a": -1}), "all values must be 0 or more"),
        (lambda: lines({}, x="", y=""), "0 lines cannot be drawn; give 1 to 4"),
    ],
)
def test_invalid_input_to_pictures_is_rejected(draw, says) -> None:
    with pytest.raises(UsageError, match=says):
        draw()
