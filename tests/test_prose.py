"""The prose contains none of the words in scripts/prose.txt."""

import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT / "scripts"))

import prose  # noqa: E402 - in scripts/


def test_the_word_list_finds_nothing() -> None:
    assert prose.matches(prose.files()) == []


def test_the_word_list_is_matched_outside_code(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("It goes on with `goes on with`.\n```\nleft out: code\n```\nleft out: prose\n", encoding="utf-8")
    assert [line.partition(":")[2].partition(":")[0] for line in prose.matches([page])] == ["1", "5"]
    module = tmp_path / "module.py"
    module.write_text('"""What came of a run."""\nx = 1  # made anew\n', encoding="utf-8")
    assert len(prose.matches([module])) == 2
