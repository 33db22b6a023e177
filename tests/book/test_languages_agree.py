"""A chapter that trains for long runs in English always, in Bangla when there is time: the code of both is the same."""

import ast

import pytest
from scripts.book.chapters import Chapter, chapters
from tests.book.long import LONG


class _WithoutWords(ast.NodeTransformer):
    """Strings may differ: names of a picture, what is printed. What their braces hold may not, but for its order."""

    def visit_Constant(self, node: ast.Constant) -> ast.Constant:
        return ast.Constant("") if isinstance(node.value, str) else node

    def visit_JoinedStr(self, node: ast.JoinedStr) -> ast.Tuple:
        held = [self.visit(each.value) for each in node.values if isinstance(each, ast.FormattedValue)]
        return ast.Tuple(sorted(held, key=ast.dump), ast.Load())


def code(chapter: Chapter) -> list[str]:
    blocks = [part.text for part in chapter.parts if part.kind == "python"]
    return [ast.dump(_WithoutWords().visit(ast.parse(block))) for block in blocks]


def commands(chapter: Chapter) -> list[str]:
    texts = [part.text for part in chapter.parts if part.kind == "console"]
    return [line for text in texts for line in text.splitlines() if line.startswith("$ ")]


@pytest.mark.parametrize("name", LONG)
def test_a_long_chapter_runs_the_same_code_in_both_languages(name: str) -> None:
    english, bangla = (
        next(each for each in chapters() if each.name == name and each.language == language)
        for language in ("en", "bn")
    )
    assert code(bangla) == code(english)
    assert commands(bangla) == commands(english)


def test_a_number_that_differs_is_seen_and_a_word_is_not() -> None:
    def seen(block: str) -> str:
        return ast.dump(_WithoutWords().visit(ast.parse(block)))

    assert seen("print(f'loss {a:.2f}', 3)") == seen("print(f'লস {a:.1f}', 3)")
    assert seen("print(f'loss {a}', 3)") != seen("print(f'loss {b}', 3)")
    assert seen("print('x', 3)") != seen("print('x', 4)")
