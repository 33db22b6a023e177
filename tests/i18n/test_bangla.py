"""The Bangla messages in every package's catalogue follow the style guide."""

import json
import re
import unicodedata

import pytest
from tests.studio.test_words import BANNED, NAMES

from kotha.i18n.catalogue import FOLDER

PACKAGES = sorted(file.stem for file in (FOLDER / "bn").glob("*.json"))
PLACEHOLDER = re.compile(r"\{[^}]*\}")


def entries(package: str) -> list[tuple[str, str]]:
    """Pairs of English and Bangla texts."""
    return list(json.loads((FOLDER / "bn" / f"{package}.json").read_text(encoding="utf-8")).items())


@pytest.mark.parametrize("package", PACKAGES)
def test_no_banned_words(package: str) -> None:
    for english, bangla in entries(package):
        assert unicodedata.is_normalized("NFC", bangla), english
        assert not [word for word in BANNED if word in bangla], f"{english}: {bangla}"
        assert "!" not in PLACEHOLDER.sub("", bangla) and "ঃ " not in bangla and " ।" not in bangla, bangla


@pytest.mark.parametrize("package", PACKAGES)
def test_a_sentence_has_one_kind_of_digit(package: str) -> None:
    for english, bangla in entries(package):
        for sentence in re.split(r"(?<=[।?])\s|\n", PLACEHOLDER.sub("", bangla)):
            bare = NAMES.sub("", sentence)
            latin, own = re.search(r"[0-9]", bare), re.search(r"[০-৯]", bare)
            assert not (latin and own), f"{english}: {sentence}"


def test_a_catalogue_is_sorted_with_one_entry_on_a_line() -> None:
    for package in PACKAGES:
        lines = (FOLDER / "bn" / f"{package}.json").read_text(encoding="utf-8").splitlines()
        keys = [english for english, _ in entries(package)]
        assert keys == sorted(keys) and len(lines) == len(keys) + 2, package
