"""The lessons' texts are bilingual, with the same figures, and the Bangla follows the style guide."""

import json
import re
import string
import unicodedata

import pytest
from tests.studio.test_words import BANNED, FORMULA, NAMES

from kotha.course.lessons.catalogue import FOLDER, lessons

BOOKS = sorted(path.stem for path in FOLDER.glob("*.json"))


def entries(book: str) -> dict[str, dict[str, str]]:
    found: dict[str, dict[str, str]] = json.loads((FOLDER / f"{book}.json").read_text(encoding="utf-8"))
    return found


def test_every_lesson_has_a_text_file_and_vice_versa() -> None:
    assert set(BOOKS) == {"common", *(each.name for each in lessons())}


@pytest.mark.parametrize("book", BOOKS)
def test_both_languages_use_the_same_figures(book: str) -> None:
    for key, entry in entries(book).items():
        assert set(entry) == {"en", "bn"} and all(text.strip() for text in entry.values()), key
        filled = [{name for _, name, _, _ in string.Formatter().parse(entry[side]) if name} for side in ("en", "bn")]
        assert filled[0] == filled[1], key


@pytest.mark.parametrize("book", BOOKS)
def test_the_bangla_follows_the_style_guide(book: str) -> None:
    for key, entry in entries(book).items():
        bangla = entry["bn"]
        assert unicodedata.is_normalized("NFC", bangla), key
        assert not [word for word in BANNED if word in bangla], key
        assert "!" not in bangla and "ঃ " not in bangla and " ।" not in bangla, key
        for sentence in re.split(r"(?<=[।?])\s", bangla):
            bare = NAMES.sub("", re.sub(r"\{[^}]*\}", "", sentence))
            if FORMULA.search(sentence):  # all of its digits are Latin, including filled-in ones
                assert not re.search(r"[০-৯]", sentence), f"{key}: {sentence}"
            if re.search(r"[0-9]", bare):
                assert FORMULA.search(sentence), f"{key}: Bangla digits in prose: {sentence}"
