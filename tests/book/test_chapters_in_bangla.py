"""Every block of every Bangla chapter runs, and every number is what the code makes of it."""

from pathlib import Path

import pytest
from scripts.book.chapters import Chapter, chapters
from scripts.book.running import check
from tests.book.long import LONG

BANGLA = [
    pytest.param(each, marks=pytest.mark.slow if each.name in LONG else (), id=each.label)
    for each in chapters()
    if each.language == "bn"
]


@pytest.mark.parametrize("chapter", BANGLA)
def test_a_chapter_is_true(chapter: Chapter, tmp_path: Path) -> None:
    assert check(chapter, tmp_path) == []
