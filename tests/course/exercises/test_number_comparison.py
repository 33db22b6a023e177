"""Parsing and grading of typed answers; the page and the library share one list of cases."""

import json
import math
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kotha.course.exercises.number_comparison import Expected, Verdict, grade, readings, worked_sum
from kotha.i18n.numbers import bangla_digits

CASES = json.loads((Path(__file__).parents[3] / "web/tests/data/typed.json").read_text(encoding="utf-8"))


def values(text: str) -> list[list[float]]:
    return [[each.value for each in way] for way in readings(text)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("0.37 0.57; 0.39,0.34\n.30, 0.55", [0.37, 0.57, 0.39, 0.34, 0.30, 0.55]),
        ("[[0.37, 0.57], [0.39, 0.34]]", [0.37, 0.57, 0.39, 0.34]),
        ("০.৩৭ ০.৫৭", [0.37, 0.57]),
        ("৮১৯২", [8192]),
        ("৫,৮১,৩৯,৬৪৮", [58_139_648]),
        ("8,192 and 69,632,000", [8192, 69_632_000]),
        ("58.14M", [58.14e6]),
        ("16.4 million", [16.4e6]),
        ("৫.৮ কোটি", [5.8e7]),
        ("৫৮ মিলিয়ন", [58e6]),
        ("1.5e-4", [1.5e-4]),
        ("1.5 × 10^-4", [1.5e-4]),
        ("1.5x10⁻⁴", [1.5e-4]),
        ("১.৫ × ১০^-৪", [1.5e-4]),
        ("2^16", [65_536]),
        ("1/3", [1 / 3]),
        ("33%", [0.33]),
        ("(64, 128, 512)", [64, 128, 512]),
        ("64 x 128 × 512", [64, 128, 512]),
        ("uint16 holds 65536 tokens", [65_536]),
        ("64 × 128 = 8,192", [8192]),
        ("-inf −∞ -infinity", [-math.inf] * 3),
        ("0.2326 GB", [232_600_000]),
        ("0.5 GiB", [2**29]),
        ("−0.5", [-0.5]),
        ("", []),
        ("no idea", []),
    ],
)
def test_numbers_are_read(text: str, expected: list[float]) -> None:
    assert values(text)[0] == pytest.approx(expected)


def test_a_comma_is_read_both_ways() -> None:
    assert values("64,128") == [[64128], [64, 128]]
    assert grade("64,128", Expected((64, 128), columns=2, exact=True)).verdict is Verdict.RIGHT
    assert grade("64,128", Expected((64128,), exact=True)).verdict is Verdict.RIGHT


@pytest.mark.parametrize(
    ("text", "value", "slack", "verdict"),
    [
        ("0.514651", 0.514651, 0, Verdict.RIGHT),
        ("0.5147", 0.514651, 0, Verdict.RIGHT),
        ("0.51", 0.514651, 0, Verdict.RIGHT),
        ("51%", 0.514651, 0, Verdict.RIGHT),
        ("0.52", 0.514651, 0, Verdict.WRONG),
        ("0.5", 0.514651, 0, Verdict.COARSE),
        ("0.5146", 0.514651, 0, Verdict.WRONG),
        ("0.5146", 0.514651, 0.0005, Verdict.RIGHT),
        ("0.5160", 0.514651, 0.0005, Verdict.WRONG),
        ("0.3", 0.30000000000000004, 0, Verdict.RIGHT),
        ("1", 1.0, 0, Verdict.RIGHT),
        ("0", 0.0, 0, Verdict.RIGHT),
        ("1/3", 0.341432, 0.0005, Verdict.WRONG),
        ("16.4M", 16_435_200, 0, Verdict.RIGHT),
        ("16,000,000", 16_435_200, 0, Verdict.RIGHT),
        ("20,000,000", 16_435_200, 0, Verdict.COARSE),
        ("17,000,000", 16_435_200, 0, Verdict.WRONG),
        ("30", 30.108, 0, Verdict.RIGHT),
        ("31", 30.108, 0, Verdict.WRONG),
        ("1.8e-4", 1.76148e-4, 0, Verdict.RIGHT),
        ("2e-4", 1.76148e-4, 0, Verdict.COARSE),
        ("1e999", 1.0, 0, Verdict.WRONG),
        ("1/0", 1.0, 0, Verdict.WRONG),
        ("9" * 5000, 1.0, 0, Verdict.WRONG),
    ],
)
def test_sensible_rounding_is_right_and_imprecise_numbers_are_not(
    text: str, value: float, slack: float, verdict: Verdict
) -> None:
    assert grade(text, Expected((value,), slack=slack)).verdict is verdict


def test_a_score_by_the_workshops_root_is_right() -> None:
    """0.4218 divided by 1.414 instead of √2, with all decimals."""
    expected = Expected((0.4218 / math.sqrt(2),), slack=0.0005)
    assert grade(f"{0.4218 / 1.414:.6f}", expected).verdict is Verdict.RIGHT
    assert grade(f"{0.4218 / 1.4:.6f}", expected).verdict is Verdict.WRONG


def test_exact_counts_must_be_exact() -> None:
    expected = Expected((65_536,), exact=True)
    assert grade("65,536", expected).verdict is Verdict.RIGHT
    for text in ("65,535", "65.5k", "66,000"):
        assert grade(text, expected).verdict is Verdict.WRONG


def test_minus_infinity_has_several_spellings() -> None:
    expected = Expected((0.3, -math.inf), columns=2)
    for text in ("0.3 -inf", "0.30 −∞", "0.3 -999", "০.৩ -৯৯৯"):
        assert grade(text, expected).verdict is Verdict.RIGHT
    assert grade("0.3 0", expected).place == 1
    assert grade("-999 -inf", expected).place == 0


def test_the_wrong_number_is_named_and_a_wrong_count_is_unreadable() -> None:
    expected = Expected((0.37, 0.57, 0.39, 0.34), columns=2)
    assert grade("0.37 0.57 0.93 0.34", expected).place == 2
    found = grade("0.37 0.57", expected)
    assert (found.verdict, len(found.numbers)) == (Verdict.UNREADABLE, 2)


@given(st.floats(min_value=-1e6, max_value=1e6), st.integers(2, 9))
def test_any_number_rounded_to_two_digits_or_more_is_right(value: float, digits: int) -> None:
    rounded = f"{value:.{digits - 1}e}"
    assert grade(rounded, Expected((value,))).verdict is Verdict.RIGHT
    assert grade(bangla_digits(rounded), Expected((value,))).verdict is Verdict.RIGHT


@given(st.floats(min_value=1e-3, max_value=1e6), st.floats(min_value=0.06, max_value=5.0))
def test_a_number_beyond_its_rounding_is_wrong(value: float, off: float) -> None:
    assert grade(f"{value * (1 + off):.3e}", Expected((value,))).verdict is Verdict.WRONG


@given(st.text())
def test_any_text_can_be_graded(text: str) -> None:
    assert grade(text, Expected((0.123456,))).verdict in Verdict


SIZE = 232_558_592
AS_SIZE = Expected((SIZE / 1e9,), others=((SIZE / 2**30,),), bytes=float(SIZE))
# In either unit, and truncated instead of rounded.
SIZES = {
    Verdict.RIGHT: "0.2326|0.23 GB|0.2166|0.2166 GiB|232.6 MB|232,558,592 bytes|০.২৩ জিবি|221.8 MiB|232 MB|233 MB|"
    "২৩২ এমবি|২৩৩ মেগাবাইট|232.5 megabytes|221 MiB|222 MiB|0.232 GB|0.216 GiB|0.232",
    Verdict.WRONG: "0.2166 GB|0.2326 GiB|58.14|0.93|231 MB|234 MB|232 MiB|232 GB|232 KB|232|0 MB|0",
    Verdict.COARSE: "0.2 GB",
}


@pytest.mark.parametrize(("verdict", "texts"), SIZES.items())
def test_a_size_is_accepted_in_every_unit(verdict: Verdict, texts: str) -> None:
    for text in texts.split("|"):
        assert grade(text, AS_SIZE).verdict is verdict, text
    assert grade("8 GB", Expected((8.0,))).verdict is Verdict.WRONG


UNITS = {"bytes": 1, "KB": 1e3, "MB": 1e6, "GB": 1e9, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30, "এমবি": 1e6}


@given(
    n_bytes=st.integers(10**3, 10**13),
    unit=st.sampled_from(list(UNITS.items())),
    form=st.sampled_from(["{:.4g}", "{:.5e}", "{:,.3f}"]),
    bangla=st.booleans(),
)
def test_a_size_is_right_in_any_unit_and_any_digits(
    n_bytes: int, unit: tuple[str, float], form: str, bangla: bool
) -> None:
    expected, number = Expected((n_bytes / 1e9,), bytes=float(n_bytes)), form.format(n_bytes / unit[1])
    if float(number.replace(",", "")) * unit[1] < 0.99 * n_bytes:
        return  # three decimals of a large unit are too few for a small size
    text = f"{bangla_digits(number) if bangla else number} {unit[0]}"
    assert grade(text, expected).verdict in (Verdict.RIGHT, Verdict.COARSE), text
    if form != "{:,.3f}":
        assert grade(text, Expected((n_bytes / 1e9,), bytes=1.1 * n_bytes)).verdict is not Verdict.RIGHT, text


@given(
    value=st.floats(1e-9, 1e12),
    sign=st.sampled_from([-1, 1]),
    zero=st.sampled_from(["0", "0.0", "-0", "০", "0.000", "0 MB"]),
)
def test_zero_is_only_close_to_zero(value: float, sign: int, zero: str) -> None:
    assert grade(zero, Expected((sign * value,), slack=0.0005, bytes=value)).verdict is Verdict.WRONG
    assert grade(zero, Expected((0.0,), bytes=0.0)).verdict is Verdict.RIGHT


@pytest.mark.parametrize("case", CASES["cells"], ids=lambda case: case["typed"])
def test_a_cell_is_graded_as_on_the_page(case: dict[str, Any]) -> None:
    expected = Expected((float(case["value"]),), slack=case.get("slack", 0.0))
    assert grade(case["typed"], expected).verdict.value == case["verdict"]


@pytest.mark.parametrize(
    "text", ["", "0.5", "1.5×10^-4", "2+", "(1", "1)", "0.5 0.3", "e" * 500, "-" * 300 + "1", "abc", "0/0"]
)
def test_an_incomplete_expression_is_not_evaluated(text: str) -> None:
    assert worked_sum(text) is None
