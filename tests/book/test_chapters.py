"""Every code block of every chapter runs, and every number is computed by the code.

A chapter with long training is executed in one language, and in the other language only in the extended suite. The
other edition is always checked for equal code, equal printed numbers, equal pictures, and no number without a source.
Only the words in its printed output are left to the extended suite.
"""

import ast
from pathlib import Path

import pytest
from scripts.book.chapters import Chapter, chapters
from scripts.book.numbers import numbers_of
from scripts.book.running import Outcome, _compare_prose, check

# Slow chapters, and the language in which each always runs; the languages alternate, so that both are tested.
LONG = {"06-gpt": "en", "07-training": "bn", "09-family": "en", "10-using": "bn", "11-limits": "en", "build": "bn"}
RUNS = [
    pytest.param(each, marks=[pytest.mark.slow] * (LONG.get(each.name, each.language) != each.language), id=each.label)
    for each in chapters()
]


@pytest.mark.parametrize("chapter", RUNS)
def test_a_chapter_is_true(chapter: Chapter, tmp_path: Path) -> None:
    assert check(chapter, tmp_path) == []


class _WithoutWords(ast.NodeTransformer):
    """Ignores strings (picture names, printed text) and the order of the placeholders in them."""

    def visit_Constant(self, node: ast.Constant) -> ast.Constant:
        return ast.Constant("") if isinstance(node.value, str) else node

    def visit_JoinedStr(self, node: ast.JoinedStr) -> ast.Tuple:
        held = [self.visit(each.value) for each in node.values if isinstance(each, ast.FormattedValue)]
        return ast.Tuple(sorted(held, key=ast.dump), ast.Load())


def code(block: str) -> str:
    return ast.dump(_WithoutWords().visit(ast.parse(block)))


def seen(chapter: Chapter) -> list[object]:
    """Return the content that a chapter has in both languages, from top to bottom."""
    found: list[object] = []
    for part in chapter.parts:
        if part.kind == "python":
            found.append(code(part.text))
        elif part.kind == "text":
            found.append((sorted(numbers_of(part.text)), part.about))
        elif part.kind == "console":
            found += [line for line in part.text.splitlines() if line.startswith("$ ")]
        found += [(name.replace(".bn.", "."), about) for name, about in part.pictures]
    return found


@pytest.mark.parametrize("name", LONG)
def test_a_long_chapter_is_the_same_in_both_languages_but_for_its_words(name: str) -> None:
    english, bangla = (each for language in ("en", "bn") for each in chapters() if each.label == f"{name}.{language}")
    assert len(seen(english)) > 5 and seen(bangla) == seen(english)
    for edition in (english, bangla):
        _compare_prose(edition, outcome := Outcome())
        assert outcome.problems == []


def test_a_number_that_differs_is_seen_and_a_word_is_not() -> None:
    assert code("print(f'loss {a:.2f}', 3)") == code("print(f'লস {a:.1f}', 3)")
    assert code("print(f'loss {a}', 3)") != code("print(f'loss {b}', 3)")
    assert code("print('x', 3)") != code("print('x', 4)")
