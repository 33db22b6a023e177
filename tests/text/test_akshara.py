"""Aksharas: compared with manual segmentation and with ICU, and tested for arbitrary text."""

import json
from pathlib import Path

import pytest
import regex
from hypothesis import given, settings
from hypothesis import strategies as st
from icu4py.breakers import CharacterBreaker
from tests.text.conftest import ADVERSARIAL, anything

from kotha.text.akshara import aksharas, is_whole, starts_dependent, units

CASES = [
    [json.loads(f'"{segment}"') for segment in line.split("|")]
    for line in (Path(__file__).parent / "akshara_cases.txt").read_text(encoding="utf-8").splitlines()
    if line and not line.startswith("# ")
]

# Code points relevant to GB9c and its exceptions, from several scripts.
JOINING = [*"কষরযঅএৎািোঁংঃ়্", *"\u200c\u200d\u0301\r\n a", *"कष\u094d\u093cగ\u0c4dക\u0d4dக\u0bcd"]
CLUSTERS = [*JOINING, *"👩❤\ufe0f\U0001f3fd🇧🇩\u1100\u1161\u11a8가\u0600\u0e33\u200b\ufeff\u20e3#", *ADVERSARIAL]


def icu(text: str) -> list[str]:
    return list(CharacterBreaker(text, "bn"))


def test_there_are_enough_distinct_cases():
    texts = ["".join(segments) for segments in CASES]
    assert len(texts) >= 200
    assert len(set(texts)) == len(texts)


@pytest.mark.parametrize("segments", CASES, ids=lambda segments: ascii("|".join(segments)))
def test_every_case_is_split_as_written_and_as_in_icu(segments):
    text = "".join(segments)
    assert aksharas(text) == segments
    assert icu(text) == segments


@settings(max_examples=500, deadline=None)
@given(st.lists(st.sampled_from(CLUSTERS), max_size=12).map("".join))
def test_letters_are_icus_letters(text):
    assert aksharas(text) == icu(text)


@settings(max_examples=300, deadline=None)
@given(st.lists(st.sampled_from(JOINING), max_size=8).map("".join))
def test_conjuncts_are_icus_conjuncts(text):
    assert aksharas(text) == icu(text)


def test_every_bangla_code_point_behaves_as_in_icu():
    for code in range(0x0980, 0x0A00):
        text = f"ক{chr(code)}a{chr(code)}্{chr(code)}ক্{chr(code)}ক"
        assert aksharas(text) == icu(text), hex(code)


@settings(max_examples=300, deadline=None)
@given(anything())
def test_nothing_is_lost(text):
    assert "".join(aksharas(text)) == text


@settings(max_examples=300, deadline=None)
@given(anything())
def test_units_are_runs_of_letters(text):
    assert "".join(units(text)) == text
    assert [letter for unit in units(text) for letter in aksharas(unit)] == aksharas(text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("অ্যাপ", ["অ্যা", "প"]),
        ("এ্যাকশন", ["এ্যা", "ক", "শ", "ন"]),
        ("অ্যাঁ", ["অ্যাঁ"]),
        ("অ্য", ["অ্য"]),
        ("ক্যা", ["ক্যা"]),
        ("আ্যা", ["আ্", "যা"]),  # not in use, so it is split by Unicode's rules
        ("অ্ক", ["অ্", "ক"]),
        ("অ্", ["অ্"]),
        ("", []),
    ],
)
def test_units_keep_a_vowel_with_its_ya_phala(text, expected):
    assert units(text) == expected


def test_regex_alone_would_split_a_conjunct():
    assert regex.findall(r"\X", "ক্ষ") == ["ক্", "ষ"]
    assert aksharas("ক্ষ") == ["ক্ষ"]


def test_empty_text_has_no_letters():
    assert aksharas("") == []


@pytest.mark.parametrize("piece", ["া", "ি", "্", "়", "ঁ", "ং", "ঃ", "\u200d", "\u200c", "\u0301", "ার", "্যাব"])
def test_pieces_that_start_with_a_dependent_sign(piece):
    assert starts_dependent(piece)
    assert not is_whole(piece)


@pytest.mark.parametrize("piece", ["ক", "মা", "আর", "ৎ", "।", " ", "a", "১", "😀", "ক্ষ", " ক", "দ্\u200c"])
def test_pieces_that_stand_alone(piece):
    assert not starts_dependent(piece)
    assert is_whole(piece)


@pytest.mark.parametrize("piece", ["ক্", "ক্\u200d", "অ্", "মাক্", ""])
def test_pieces_with_an_open_end_are_not_whole(piece):
    assert not starts_dependent(piece)
    assert not is_whole(piece)


@pytest.mark.timeout(60)
def test_many_hasantas_are_one_akshara_and_split_in_linear_time():
    """With a quadratic pattern, three hundred thousand hasantas would take twenty minutes."""
    pile = "ক" + "্" * 300_000
    assert aksharas(pile + "ষ") == units(pile + "ষ") == [pile + "ষ"]
    assert units("্" * 300_000) == ["্" * 300_000]
