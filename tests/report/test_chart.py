"""Charts are well-formed, inside their frame, and have the expected coordinates."""

import math
import re
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kotha.report.chart import BOTTOM, HEIGHT, LEFT, RIGHT, TOP, WIDTH, Point, chart, number, thin

any_float = st.floats(allow_nan=True, allow_infinity=True)
all_points = st.lists(st.tuples(any_float, st.none() | any_float), max_size=30)


def svg(series: dict[str, list[Point]], x: str = "x", y: str = "y", **how: bool) -> str:
    return f"<svg>{chart(series, x, y, **how)}</svg>"


def drawn(svg: str) -> tuple[list[float], list[float]]:
    """Return all x and y coordinates of a chart's texts, dots and lines (whose paths have only M, L, H, V and v)."""
    xs, ys = [], []
    for element in ElementTree.fromstring(svg).iter():
        xs += [float(element.get(name)) for name in ("x", "cx") if element.get(name)]
        ys += [float(element.get(name)) for name in ("y", "cy") if element.get(name)]
        for command, values in re.findall(r"([MLHVv])([^MLHVv]*)", element.get("d", "")):
            numbers = [float(value) for value in values.split()]
            if command in "ML":
                xs += numbers[0::2]
                ys += numbers[1::2]
            else:
                {"H": xs, "V": ys, "v": []}[command].extend(numbers)
    return xs, ys


@given(st.dictionaries(st.text(), all_points, max_size=3), st.text(), st.booleans(), st.booleans())
def test_charts_are_well_formed_and_inside_the_frame(lines, label, log_y, from_zero) -> None:
    made = svg(lines, label, label, log_y=log_y, from_zero=from_zero)
    xs, ys = drawn(made)
    assert all(0 <= x <= WIDTH for x in xs)
    assert all(0 <= y <= HEIGHT for y in ys)
    assert made.encode("utf-8")


@pytest.mark.parametrize("value", [0.0, 5.0, -5.0, 1e-320, 1e308, -1e308])
@pytest.mark.parametrize("log_y", [False, True])
def test_constant_lines_and_single_points_have_a_scale(value: float, log_y: bool) -> None:
    for points in ([(1, value)], [(1, value), (2, value)]):
        xs, ys = drawn(svg({"s": points}, log_y=log_y))
        assert all(0 <= x <= WIDTH for x in xs)
        assert all(0 <= y <= HEIGHT for y in ys)


def test_coordinates_by_hand() -> None:
    made = svg({"s": [(0, 0.0), (5, 2.5), (10, 10.0)]}, "step", "loss")
    left, right, top, bottom = LEFT, WIDTH - RIGHT, TOP, HEIGHT - BOTTOM
    middle, quarter = (left + right) / 2, bottom - (bottom - top) / 4
    assert f'd="M{left} {bottom}L{middle:g} {quarter:g} {right} {top}"' in made
    labels = [text.text for text in ElementTree.fromstring(made).iter("text")]
    assert labels == ["0", "2", "4", "6", "8", "10"] * 2 + ["loss", "step"]


def test_a_log_scale_gives_each_factor_the_same_height() -> None:
    made = svg({"s": [(0, 0.1), (1, 1.0), (2, 10.0), (3, 0.0)]}, log_y=True)
    middle = (TOP + HEIGHT - BOTTOM) / 2
    assert re.search(rf'd="M{LEFT} {HEIGHT - BOTTOM}L[\d.]+ {middle:g} [\d.]+ {TOP}"', made), "and zero is a gap"


@pytest.mark.parametrize("gap", [None, math.nan, math.inf])
def test_nan_is_a_gap(gap: float | None) -> None:
    made = ElementTree.fromstring(svg({"s": [(0, 0.0), (1, 1.0), (2, gap), (3, 2.0)]}))
    (line,) = [path.get("d") for path in made.iter("path") if "L" in path.get("d")]
    assert line.count("M") == 2
    assert line.endswith(f"M{WIDTH - RIGHT} {TOP}L{WIDTH - RIGHT} {TOP}"), "a point alone is drawn as a dot"


def test_labels_cannot_inject_markup() -> None:
    attack = "<script>alert('x')</script>&\"\x00"
    made = svg({attack: [(0, 1.0)], "other": [(0, 2.0)]}, attack, attack)
    assert "<script" not in made
    assert "".join(ElementTree.fromstring(made).itertext()).count("<script>alert('x')</script>&\"\ufffd") == 3


def test_a_thinned_line_keeps_its_ends_peaks_and_gaps() -> None:
    points = [(step, math.sin(step / 900)) for step in range(20_000)]
    points[7_777], points[12_345], points[15_000] = (7_777, 50.0), (12_345, -50.0), (15_000, None)
    thinned = thin(points)
    assert len(thinned) < 610
    assert {points[0], points[-1], points[7_777], points[12_345], points[15_000]} <= set(thinned)
    assert [x for x, _ in thinned] == sorted(x for x, _ in thinned)
    assert thin(points[:600]) == points[:600]


@given(st.lists(st.none() | st.floats(allow_nan=False), min_size=1, max_size=20), st.integers(601, 2000))
def test_thinning_keeps_the_extremes(pattern, length) -> None:
    values = [pattern[place * place % len(pattern)] for place in range(length)]
    present = [value for value in values if value is not None]
    kept = [value for _, value in thin(list(enumerate(values))) if value is not None]
    assert (min(kept, default=0), max(kept, default=0)) == (min(present, default=0), max(present, default=0))


def test_numbers_on_axes_are_short() -> None:
    assert [number(value) for value in (1e15, -0.5, 0.1 + 0.2, 1e-5)] == ["1e15", "-0.5", "0.3", "1e-5"]


def test_integer_axes_have_integer_labels() -> None:
    few = svg({"a": [(0, 0.1), (1, 0.3), (2, 0.2)]})
    shares = svg({"a": [(0, 10.0), (0.5, 30.0), (2, 20.0)]})
    assert ">1.5<" not in few and ">1.5<" in shares
