"""The checks of the book's numbers detect errors: each test breaks one rule."""

import unicodedata
from pathlib import Path

import pytest
from scripts.book import running
from scripts.book.chapters import LEARN, Chapter, chapters, parse
from scripts.book.numbers import differences, numbers_of, prose_numbers
from scripts.book.running import check, same_picture

PRINTS = "```python\nprice = 12.5\nprint('price', price)\n```\n\n```text\nprice 12.5\n```\n"


def problems(text: str, folder: Path, name: str = "01-x.md") -> list[str]:
    work = folder / "work"
    work.mkdir(exist_ok=True)
    path = folder / name
    path.write_text(f"# A chapter\n\n{text}", encoding="utf-8")
    return check(Chapter(path), work)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (PRINTS + "It costs 12.5, or 25 for two.\n<!-- holds: 25 = 2 * price -->", None),
        (PRINTS + "It costs 12.7.", "12.7 is not checked"),
        (PRINTS.replace("price 12.5", "price 12.9"), "expected 12.9, found 12.5"),
        (PRINTS.replace("price 12.5", "cost 12.5"), "expected:\ncost 12.5\nfound:\nprice 12.5"),
        ("```python\nprint(7)\n```\n", "expected:\n\nfound:\n7"),
        (PRINTS + "Two cost 24.\n<!-- holds: 24 = 2 * price -->", "says 24, but 2 * price is 25.0"),
        (PRINTS + "Two.\n<!-- holds: 25 = 2 * price -->", "checks 25, which is not in the paragraph"),
        (PRINTS + "In 2017 it was so.", "2017 is not checked"),
        (PRINTS + "## Elsewhere\n\nIt cost 12.5.", "12.5 is not checked"),
        (PRINTS + "In 2017 it was so.\n<!-- given: 2017 -->", None),
        (PRINTS + "এর দাম ১২.৫, দুটির ২৫।\n<!-- holds: ২৫ = 2 * price -->", None),
        (PRINTS + "দুটির দাম ২৬।\n<!-- holds: ২৬ = 2 * price -->", "says ২৬"),
        ("<!-- about: 10% -->\n\n```python\nprint(100)\n```\n\n```text\n93\n```\n", None),
        ("<!-- about: 1% -->\n\n```python\nprint(100)\n```\n\n```text\n93\n```\n", "expected 93, found 100"),
        ("![no such](../images/book/none.svg)", "shows none.svg, which the code does not draw"),
        (
            "```python\nwith open('a.svg', 'w') as file:\n    file.write('<svg/>')\n```\n",
            "draws a.svg but does not show it",
        ),
    ],
)
def test_each_rule_is_kept(text: str, says: str | None, tmp_path: Path) -> None:
    found = problems(text, tmp_path)
    assert (found == []) if says is None else (len(found) == 1 and says in found[0]), found


def test_a_block_that_fails_names_its_line(tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError) as error:
        problems("Prose.\n\n```python\nx = 1\nprint(x / 0)\n```\n", tmp_path)
    assert error.traceback[-1].lineno + 1 == 7


def test_commands_run_and_may_be_shown_in_part(tmp_path: Path) -> None:
    shown = "```console\n$ kotha tokenizer view box 'আমি'\n{}\n```\n"
    assert problems(shown.format("আমি\n1 token: 561"), tmp_path) == []
    assert problems(shown.format("…\n1 token: 561"), tmp_path) == []
    assert "no line '1 token: 9'" in problems(shown.format("…\n1 token: 9"), tmp_path)[0]
    with pytest.raises(AssertionError, match="only kotha commands can be run"):
        problems("```console\n$ rm -rf x\n```\n", tmp_path)


def test_a_picture_is_held_to_the_one_that_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(running, "IMAGES", tmp_path)
    (tmp_path / "a.svg").write_text('<svg><text x="3.50">কথা</text></svg>')
    writes = "Path('a.svg').write_text('<svg><text x=\"{}\">{}</text></svg>')"
    draws = f"```python\nfrom pathlib import Path\n_ = {writes}\n```\n"
    shows = "\n![a](../images/book/a.svg)\n"
    assert problems(draws.format("3.51", "কথা") + shows, tmp_path) == []
    assert "differs from what the code draws" in problems(draws.format("9.50", "কথা") + shows, tmp_path)[0]
    assert "differs from what the code draws" in problems(draws.format("3.50", "কলা") + shows, tmp_path)[0]


def test_a_trained_curve_may_move_and_remains_a_curve() -> None:
    head = '<svg viewBox="0 0 9 9">'
    assert same_picture(head + "<path d='1 2'/></svg>", head + "<path d='1 2 3'/></svg>", about=0.1)
    assert not same_picture(head + "<path d='1 2'/></svg>", head + "<path d='1 2 3'/></svg>")


def test_numbers_are_found_in_both_kinds_of_digits() -> None:
    assert numbers_of("৫,৮১,৩৯,৬৪৮ and 58,139,648, 3e-4; −0.5; a-1 [2]") == [
        "58139648",
        "58139648",
        "3e-4",
        "-0.5",
        "2",
    ]
    assert prose_numbers("## ১২. শিরোনাম\n\n1. one [20](x30.md)\n২৫টি `d_model` ৭টি uint16, GPT-2") == ["20", "25"]


def test_whole_numbers_agree_exactly_and_others_to_the_last_digit() -> None:
    assert differences("5 tokens", "6 tokens") == "expected 5, found 6"
    assert differences("0.880", "0.881") is None
    assert differences("0.880", "0.882") == "expected 0.880, found 0.882"


@pytest.mark.parametrize("text", ["```python\nx = 1\n", "<!-- holds: 12 -->", "a\n<!-- about: much -->\n"])
def test_what_cannot_be_read_is_said(text: str) -> None:
    with pytest.raises(ValueError, match="line "):
        parse(text)


def test_every_chapter_is_there_in_both_languages() -> None:
    names: dict[str, set[str]] = {}
    for chapter in chapters():
        names.setdefault(chapter.name, set()).add(chapter.language)
    assert names
    assert all(languages == {"en", "bn"} for languages in names.values()), names


@pytest.mark.parametrize("chapter", chapters(), ids=lambda each: each.label)
def test_a_chapter_has_what_a_chapter_has(chapter: Chapter) -> None:
    asks, change, exercises = {
        "en": ("**The question of this chapter:", "## Change something", "## Exercises"),
        "bn": ("**এই অধ্যায়ের প্রশ্ন:", "## নিজে বদলে দেখুন", "## অনুশীলনী"),
    }[chapter.language]
    assert asks in chapter.source
    assert f"\n{change}\n" in chapter.source
    assert f"\n{exercises}\n" in chapter.source
    assert any(part.pictures for part in chapter.parts), "a picture made by its code"


@pytest.mark.parametrize("path", sorted(LEARN.glob("*.bn.md")), ids=lambda path: path.name)
def test_bangla_is_in_one_spelling(path: Path) -> None:
    written = [part for part in Chapter(path).parts if part.kind != "text"]  # the printed output may show the other one
    assert [part.line for part in written if not unicodedata.is_normalized("NFC", part.text)] == []
