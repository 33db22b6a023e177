"""Stop strings, checked one grapheme cluster at a time."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.text.conftest import ADVERSARIAL

from kotha.generation.request import Stops
from kotha.text.akshara import units


@pytest.mark.parametrize(
    ("stop", "parts", "shown", "found"),
    [
        (["।"], ["মা", " আসে", "।", " তার"], "মা আসে", "।"),
        (["শেষ।"], ["এই ", "শে", "ষ", " হ", "শেষ।", "x"], "এই শেষ হ", "শেষ।"),  # a false start first
        (["ক"], ["কি", "ক্ষ", "খ"], "কিক্ষখ", None),  # part of a cluster does not match
        (["ক"], ["কি", "ক", "খ"], "কি", "ক"),
        (["abc", "b"], ["xa", "b"], "xa", "b"),  # a shorter stop string inside the start of a longer one
        (["aab"], ["a", "a", "a", "b"], "a", "aab"),
        (["\n\n"], ["a\n", "b\n", "\n", "c"], "a\nb", "\n\n"),
        ([], ["a", "b"], "ab", None),
    ],
)
def test_text_ends_before_a_stop_string(stop: list[str], parts: list[str], shown: str, found: str | None) -> None:
    stops = Stops(stop)
    assert "".join(stops.push(part) for part in parts) + stops.finish() == shown
    assert stops.found == found


@given(
    letters=st.lists(st.sampled_from([*"কখগ", "কি", "ক্ষ", " "]), max_size=30),
    stop=st.lists(st.lists(st.sampled_from([*"কখগ", "কি"]), min_size=1, max_size=3).map("".join), max_size=3),
    seed=st.integers(0, 100),
)
def test_output_does_not_depend_on_how_the_text_is_split(letters: list[str], stop: list[str], seed: int) -> None:
    chooser, pieces, rest = random.Random(seed), [], list(letters)
    while rest:
        size = chooser.randint(1, 4)
        pieces.append("".join(rest[:size]))
        rest = rest[size:]
    whole, parts = Stops(stop), Stops(stop)
    expected = whole.push("".join(letters)) + whole.finish()
    assert "".join(parts.push(piece) for piece in pieces) + parts.finish() == expected
    assert parts.found == whole.found
    for text in stop:
        ends = [units(expected)[place:] for place in range(len(units(expected)))]
        assert not any(end[: len(units(text))] == units(text) for end in ends), "it is never shown"


def test_text_without_a_stop_string_passes_unchanged() -> None:
    text = "".join(ADVERSARIAL)
    stops = Stops(["ZZZ"])
    assert stops.push(text) + stops.finish() == text
