"""The book, the studio and all catalogues use the glossary's terms."""

import json
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from scripts.book.chapters import LEARN, Chapter, chapters
from tests.book.test_digits import mixed

ROOT = Path(__file__).parents[2]
PAGE = LEARN / "glossary.md"
# Labels in which the English word has another sense.
OTHER_SENSES = {
    "design.json, part.head",  # the last layer
    "hand.json, mini.value",  # of any number
    "plan.json, part.last",  # the last layer
    "prepare.json, train",  # the split
    "train.json, summary.precision",  # of numbers
    "shell.json, key.field",  # to the server
    "shell.json, tokens",  # rooms, whose Bangla names are nouns
    "shell.json, train",
}


class Term(NamedTuple):
    english: str
    bangla: str
    meanings: tuple[str, ...]
    chapter: str
    avoided: tuple[str, ...]


@cache
def terms() -> list[Term]:
    lines = [line for line in PAGE.read_text(encoding="utf-8").splitlines() if line.startswith("| ")][1:]
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    return [
        Term(row[0], row[1], tuple(row[2].split("<br>")), row[3], tuple(filter(None, row[4].split(", "))))
        for row in cells
    ]


@cache
def spoken() -> dict[str, str]:
    """Return every Bangla text with its location: the book's prose, messages in the catalogues, and Python files.

    Stories, and what a reader types, may use any word.
    """
    found = {
        path.relative_to(ROOT).as_posix(): "\n".join(
            re.sub(r"`[^`]*`", "", part.plain) for part in Chapter(path).parts if part.kind == "prose"
        )
        for path in sorted((ROOT / "docs").rglob("*.bn.md"))
    }
    for path in sorted((ROOT / "src" / "kotha").rglob("*.json")):
        if "static" not in path.parts and path.parent.name != "box":
            messages = json.loads(path.read_text(encoding="utf-8"))
            texts = messages.values() if path.parent.name == "bn" else _bangla(messages)
            found[path.relative_to(ROOT).as_posix()] = "\n".join(texts)
    for path in sorted((ROOT / "src" / "kotha").rglob("*.py")):
        if "stories" not in path.parts:
            found[path.relative_to(ROOT).as_posix()] = path.read_text(encoding="utf-8")
    return found


def _bangla(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        for key, each in value.items():
            yield from [each] if key == "bn" and isinstance(each, str) else _bangla(each)
    elif isinstance(value, list):
        for each in value:
            yield from _bangla(each)


def pairs() -> list[tuple[str, str, str]]:
    """Return the entries of the catalogues in both languages: location, English, Bangla."""
    found = []
    for path in sorted((ROOT / "src" / "kotha").rglob("*/words/*.json")):
        for key, entry in json.loads(path.read_text(encoding="utf-8")).items():
            if isinstance(entry, dict) and set(entry) == {"en", "bn"}:
                found.append((f"{path.name}, {key}", entry["en"], entry["bn"]))
    return found


def test_the_page_has_what_the_tests_read() -> None:
    assert len(terms()) > 100
    assert len({term.english for term in terms()}) == len(terms()), "an English word stands there once"
    assert any("টোকেন" in text for text in spoken().values())
    assert len(pairs()) > 500


@pytest.mark.parametrize("word", sorted({word for term in terms() for word in term.avoided}))
def test_nobody_writes_a_word_that_a_better_one_is_agreed_on_for(word: str) -> None:
    whole = re.compile(rf"(?<![\u0980-\u09ff]){re.escape(word)}")
    assert [where for where, text in spoken().items() if whole.search(text)] == []


@pytest.mark.parametrize("term", terms(), ids=lambda each: each.english)
def test_a_term_is_explained_in_a_line_of_each_language(term: Term) -> None:
    assert len(term.meanings) == 2, "first English, then Bangla"
    english, bangla = term.meanings
    assert re.fullmatch(r"[A-Z].+[.]", english)
    assert re.search(r"[\u0980-\u09ff].*।$", bangla)
    assert max(len(english), len(bangla)) < 120
    assert mixed(bangla) == []
    others = {word: each.bangla for each in terms() for word in each.avoided}
    assert [word for word in others if re.search(rf"(?<![\u0980-\u09ff]){re.escape(word)}", bangla)] == []


@pytest.mark.parametrize("term", [each for each in terms() if each.chapter], ids=lambda each: each.english)
def test_a_chapter_that_is_named_explains_the_word_or_is_the_first_to_use_it(term: Term) -> None:
    number, name = re.fullmatch(r"\[(\d+)\]\((.+)\.md\)", term.chapter).groups()  # type: ignore[union-attr]
    whole = re.escape(term.bangla)
    if re.fullmatch(r"[\w-]+", term.bangla, re.ASCII):  # the symbol K must not match inside Kotha
        whole = rf"(?<![A-Za-z-]){whole}(?![A-Za-z])"
    explaining, using = (
        [
            each.name
            for each in chapters()
            if each.language == "bn" and re.search(pattern, spoken()[f"docs/learn/{each.path.name}"])
        ]
        for pattern in (rf"\*\*{whole}\*\*", whole)
    )
    assert (explaining + using)[:1] == [name], f"{term.bangla} is first in {(explaining + using)[:1]}"
    assert name.startswith(f"{int(number):02}-")


def test_a_term_that_is_put_in_brackets_is_that_of_the_glossary() -> None:
    """In “**লস** (loss)”, the Bangla term is the glossary's term for the English one."""
    wanted = {term.english.lower(): term.bangla for term in terms()}
    seen = 0
    for where, text in spoken().items():
        for bangla, english in re.findall(r"([\u0980-\u09ff\-]+)\*{0,2} \(([a-z][a-z -]+)\)", text):
            if english in wanted:
                seen += 1
                last = wanted[english].removesuffix(" করা").split()[-1]
                assert bangla.startswith(last), f"{where}: {bangla} ({english}), and it is {wanted[english]}"
    assert seen > 10


def test_a_label_that_is_a_term_says_it_as_the_glossary_does() -> None:
    wanted = {term.english.lower(): term.bangla.removesuffix(" করা") for term in terms()}
    labels = [each for each in pairs() if each[1].lower() in wanted and each[0] not in OTHER_SENSES]
    assert len(labels) > 5
    assert [each for each in labels if wanted[each[1].lower()] not in each[2]] == []
