"""docs/explanation/family.md shows the actual code."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent
PAGE = ROOT / "docs" / "explanation" / "family.md"
FENCE = re.compile(r"```(python|diff)\n(.*?)```", re.DOTALL)


def excerpts() -> list[str]:
    """Code on the page: complete Python blocks, and single lines from diffs."""
    pieces = []
    for kind, body in FENCE.findall(PAGE.read_text(encoding="utf-8")):
        pieces += [body] if kind == "python" else [line[1:] + "\n" for line in body.splitlines()]
    return pieces


@pytest.mark.parametrize("excerpt", excerpts(), ids=lambda excerpt: excerpt.strip()[:40])
def test_the_page_shows_the_code_that_runs(excerpt: str) -> None:
    sources = [path.read_text(encoding="utf-8") for path in (ROOT / "src" / "kotha" / "model").glob("*.py")]
    assert any(excerpt in source for source in sources)


def test_bodies_stay_small() -> None:
    for body in ("gpt", "bert", "seq2seq", "vit"):
        lines = (ROOT / "src" / "kotha" / "model" / f"{body}.py").read_text(encoding="utf-8").splitlines()
        assert len(lines) < 150, body
