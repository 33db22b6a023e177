"""Numbers, sizes and durations as text."""

from pathlib import Path

import pytest
from icu4py.messageformat import MessageFormat

from kotha.i18n.catalogue import translate
from kotha.i18n.message import Bilingual
from kotha.i18n.numbers import DIGITS, Duration, Size, ascii_digits, bangla_digits, in_words, number

SOURCE = Path(__file__).parents[2] / "src" / "kotha"


def test_bangla_digits_are_defined_once() -> None:
    table = "".join(bangla for _, bangla in DIGITS)
    assert [path.name for path in SOURCE.rglob("*.py") if table in path.read_text(encoding="utf-8")] == ["numbers.py"]


def test_digits_round_trip() -> None:
    assert bangla_digits("2026-11-15: 8,192.5") == "২০২৬-১১-১৫: ৮,১৯২.৫"
    assert ascii_digits(bangla_digits("0123456789")) == "0123456789"


@pytest.mark.parametrize(
    ("n_bytes", "words"),
    [
        (0, "0 bytes"),
        (999, "999 bytes"),
        (1000, "1 kB"),
        (999_950, "1 MB"),
        (58_139_648 * 4, "233 MB"),
        (3_207_862_885, "3.2 GB"),
        (99_960_000_000, "100 GB"),
    ],
)
def test_sizes_in_words(n_bytes: int, words: str) -> None:
    assert str(Size(n_bytes)) == words


@pytest.mark.parametrize(
    ("seconds", "english", "bangla"),
    [
        (0, "0 seconds", "০ সেকেন্ড"),
        (0.996, "1 second", "১ সেকেন্ড"),
        (9.96, "10 seconds", "১০ সেকেন্ড"),
        (119.9, "120 seconds", "১২০ সেকেন্ড"),
        (150, "2.5 minutes", "২.৫ মিনিট"),
        (7200, "2 hours", "২ ঘণ্টা"),
        (864_000, "10 days", "১০ দিন"),
    ],
)
def test_durations_in_words(seconds: float, english: str, bangla: str) -> None:
    assert str(Duration(seconds)) == english
    assert in_words(Duration(seconds), "bn") == bangla


def test_names_keep_their_digits_and_numbers_do_not() -> None:
    filled = Bilingual("{n:,} {name}", "{n:,} {name}", n=65_536, name="uint16")
    assert (translate(filled, "en"), translate(filled, "bn")) == ("65,536 uint16", "৬৫,৫৩৬ uint16")


@pytest.mark.parametrize(
    ("template", "filled"),
    [
        ("মোট {n:,}টি টোকেন।", "মোট ২৩,১২,৭৪১টি টোকেন।"),
        ("2^16 = {n:,}। তাই {n:,}টি।", "2^16 = 2,312,741। তাই ২৩,১২,৭৪১টি।"),
        ("আকার ({n}, {n})।", "আকার (2312741, 2312741)।"),
        ("আকার ({n} টি)?\n{n:.1f} পেল", "আকার (২৩১২৭৪১ টি)?\n২৩১২৭৪১.০ পেল"),
        ("`--steps` দিন: {n:,}", "`--steps` দিন: 2,312,741"),
    ],
)
def test_formulas_keep_latin_digits(template: str, filled: str) -> None:
    assert translate(Bilingual("", template, n=2_312_741), "bn") == filled


@pytest.mark.parametrize("value", [0, 7, 950, 1_000, 99_999, 100_000, 2_312_741, 58_139_648, 10**12, -45_678])
def test_whole_numbers_equal_icu(value: int) -> None:
    assert number(value, ",", "bn") == MessageFormat("{n, number}", "bn_BD").format({"n": value})
