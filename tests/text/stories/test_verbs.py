"""The forms of verbs, compared with a handwritten table."""

from pathlib import Path

import pytest

from kotha.text.stories.grammar import FORMS, PERSONS, TENSES, conjugate, nonfinite


def rows(table: str) -> list[tuple[str, list[str]]]:
    """The headwords and forms of a table; its first line is a header."""
    lines = (line.split(":") for line in table.strip().splitlines()[1:])
    return [(head.strip(), forms.split()) for head, forms in lines]


FINITE, COMMANDS, NONFINITE = map(rows, Path(__file__).with_name("verbs.txt").read_text(encoding="utf-8").split("\n\n"))


@pytest.mark.parametrize(("name", "expected"), FINITE)
def test_person_rank_and_tense(name: str, expected: list[str]) -> None:
    verb, tense = name.split()
    assert [conjugate(verb, tense, person) for person in PERSONS] == expected


@pytest.mark.parametrize(("verb", "expected"), COMMANDS)
def test_commands(verb: str, expected: list[str]) -> None:
    ranks = ("তুই", "তুমি", "আপনি")
    assert [conjugate(verb, tense, rank) for tense in ("order", "request") for rank in ranks] == expected


@pytest.mark.parametrize(("verb", "expected"), NONFINITE)
def test_forms_without_person(verb: str, expected: list[str]) -> None:
    assert [nonfinite(verb, form) for form in ("joined", "to", "if", "of")] == expected


def test_the_tables_hold_enough_forms() -> None:
    assert sum(len(forms) for table in (FINITE, COMMANDS, NONFINITE) for _, forms in table) >= 150


def test_the_last_word_of_a_phrase_is_the_verb() -> None:
    assert conjugate("জামা সেলাই করা", "was", "তিনি") == "জামা সেলাই করছিলেন"
    assert nonfinite("জাল ফেলা", "joined") == "জাল ফেলে"


@pytest.mark.parametrize("tense", sorted(TENSES))
def test_ranks_are_always_distinct(tense: str) -> None:
    for verb in ("করা", "লেখা", "খাওয়া", "যাওয়া", "দেওয়া", "আসা", "হওয়া", "দাঁড়ানো"):
        assert conjugate(verb, tense, "সে" if tense != "request" else "তুমি") != conjugate(verb, tense, "তিনি")
    assert FORMS.isdisjoint(TENSES)
