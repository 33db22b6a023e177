"""The errata of the notes: the code runs, and prints every number that the page gives."""

from pathlib import Path

import pytest
from scripts.book.chapters import LEARN, Chapter
from scripts.book.running import check


@pytest.mark.parametrize("name", ["errata.md", "errata.bn.md"])
def test_the_errata_are_true(name: str, tmp_path: Path) -> None:
    assert check(Chapter(LEARN / name), tmp_path) == []
