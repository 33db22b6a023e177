"""Each sentence uses one kind of digits: Latin if it contains code or a formula, otherwise Bangla."""

import re
from pathlib import Path

import pytest
from scripts.book.chapters import ROOT, Chapter

PAGES = [
    path
    for folder in ("learn", "howto")
    for path in sorted((ROOT / "docs" / folder).glob("*.bn.md"))
    if path.name != "answers.bn.md"  # quotes typed answers; test_page_of_answers.py compares it with the tutor's output
]
_LINK = re.compile(r"!?\[([^\]]*)\]\([^)]*\)")
_UNSPOKEN = re.compile(r"<!--.*?-->|<[^>]+>|\*\*[০-৯]+\.\*\*", re.DOTALL)  # including the numbers of answers
_BEGINS = re.compile(r"^\s*(?:\d+\.|[-*>])\s", re.MULTILINE)
_NAMES = re.compile(r"[A-Za-z_]+[-_]?\d[\w.]*")


def mixed(prose: str) -> list[str]:
    """Return the sentences in a text that have both kinds of digits, or Bangla digits next to code or a formula."""
    rows = "\n".join(line.replace("|", "।") if line.startswith("|") else line for line in prose.splitlines())
    text = _BEGINS.sub("।", _UNSPOKEN.sub("", _LINK.sub(r"\1", rows)))
    found = []
    for sentence in re.split(r"[।?]|\n\n", text):
        result = _NAMES.sub(" ", re.sub(r"`[^`]*`", " ", sentence))
        bangla, latin = re.search("[০-৯]", result), re.search("[0-9]", result)
        if bangla and (latin or "`" in sentence or re.search("[=×√→^]", result)):
            found.append(" ".join(sentence.split()))
    return found


def test_a_mixed_sentence_is_found() -> None:
    assert mixed("দূরত্ব ০.৫৭৩ আর 0.317।") == ["দূরত্ব ০.৫৭৩ আর 0.317"]
    assert mixed("`steps` হলো ৪০০।") == ["`steps` হলো ৪০০"]
    assert mixed("ধাপ ৪০০। হিসাবটি 2 + 2 = 4। GPT-2 আর uint16 নাম, তাই ২টি।") == []
    assert mixed("| ৫টি ছবি | 27 % |") == []


@pytest.mark.parametrize("path", PAGES, ids=lambda each: each.name)
def test_a_sentence_has_digits_of_one_kind(path: Path) -> None:
    assert [sentence for part in Chapter(path).parts if part.kind == "prose" for sentence in mixed(part.plain)] == []
