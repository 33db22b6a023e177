"""Every block of every Bangla chapter runs, and every number is what the code makes of it."""

from pathlib import Path

import pytest
from scripts.book.chapters import Chapter, chapters
from scripts.book.running import check


@pytest.mark.parametrize("chapter", [each for each in chapters() if each.language == "bn"], ids=lambda each: each.label)
def test_a_chapter_is_true(chapter: Chapter, tmp_path: Path) -> None:
    assert check(chapter, tmp_path) == []
