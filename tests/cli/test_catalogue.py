"""The catalogue of the terminal: whole in both languages, of sentences that are really said, in the house's Bangla."""

import ast
import json
import re
import unicodedata
from functools import cache
from pathlib import Path

import pytest
from tests.studio.test_words import BANNED, FORMULA, NAMES

from kotha.cli.main import COMMANDS
from kotha.cli.naming import in_flags
from kotha.cli.spoken import _OTHERS, FOLDER, PAGES

SOURCE = Path(__file__).parents[2] / "src" / "kotha"
FILES = sorted(path.stem for path in FOLDER.glob("*.json"))
# Said by libraries: the parser of command lines, and the system; or put together out of single words.
NOT_OURS = re.compile(
    r"errors\.(typed|why|file\.(missing|denied|full|disk))\b|errors\.kind\.|common\.size|train\.use\.leaks\.|pages\.put\."
)
FILLED = re.compile(r"'?\{\w+\}'?")
PLACEHOLDER = re.compile(r"\{(\w+)\}")


def entries() -> list[tuple[str, str, str]]:
    """Key, English, Bangla."""
    return [
        (f"{file}.{key}", entry["en"], entry["bn"])
        for file in FILES
        for key, entry in json.loads((FOLDER / f"{file}.json").read_text(encoding="utf-8")).items()
    ]


@pytest.mark.parametrize("file", FILES)
def test_a_file_is_for_a_command_or_for_all_and_each_entry_is_whole(file: str) -> None:
    assert file in {*COMMANDS, "pages", "errors", "common"}
    pairs = json.loads((FOLDER / f"{file}.json").read_text(encoding="utf-8"), object_pairs_hook=list)
    assert len({key for key, _ in pairs}) == len(pairs), "a key stands there once"
    for key, pair in pairs:
        assert [name for name, _ in pair] == ["en", "bn"], key
        english, bangla = (text for _, text in pair)
        assert english == english.strip() and bangla.strip(), key
        assert set(PLACEHOLDER.findall(english)) == set(PLACEHOLDER.findall(bangla)), f"{key}: filled in with the same"


@cache
def spoken_in_the_source() -> str:
    """Every text of the source, what is filled in left open; arguments as the command line calls them."""
    texts: list[str] = []
    for path in SOURCE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.JoinedStr):
                parts = [part.value if isinstance(part, ast.Constant) else "\0" for part in node.values]
                texts.append("".join(map(str, parts)))
            elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                texts.append(node.value)
    return "\n\n".join(in_flags(text) for text in texts).lower()


def in_the_source(part: str) -> bool:
    """Figures of a summary are called by their keys, with spaces; things that are counted, by one of them."""
    forms = (part, part.replace(" ", "_"), part.removesuffix("s"))
    return any(form in spoken_in_the_source() for form in forms)


def test_every_form_is_one_that_somebody_says() -> None:
    """An English sentence that was put otherwise would be known no more; each of its parts is looked for."""
    lost = []
    for key, english, _ in entries():
        parts = [part.strip(" '\";,.:()").lower() for part in re.split(rf"{FILLED.pattern}|[,:;.] ", english)]
        found = [part for part in parts if len(part) > 3 and not in_the_source(part)]
        if found and not NOT_OURS.match(key):
            lost.append((key, found))
    assert lost == [], lost


def test_the_bangla_is_the_house_s_own() -> None:
    for key, _, bangla in entries():
        assert unicodedata.is_normalized("NFC", bangla), key
        assert not [word for word in BANNED if word in bangla], f"{key}: {bangla}"
        assert "!" not in bangla and "ঃ " not in bangla and " ।" not in bangla, f"{key}: {bangla}"
        assert re.search(r"[\u0980-\u09ff]", bangla) or PLACEHOLDER.match(bangla), f"{key}: {bangla}"


def test_a_sentence_has_one_kind_of_digit() -> None:
    for key, _, bangla in entries():
        for sentence in re.split(r"(?<=[।?])\s|\n", bangla):
            bare = NAMES.sub("", sentence)
            latin, own = bool(re.search(r"[0-9]", bare)), bool(re.search(r"[০-৯]", bare))
            assert not (latin and own), f"{key}: {sentence}"
            assert not latin or FORMULA.search(sentence), f"{key}: Bangla digits in prose: {sentence}"


def test_no_two_forms_say_the_same_english() -> None:
    """Among the words of one command; those of another command that it has too may say the same in the same way."""
    for file in FILES:
        known = PAGES if file == "pages" else (file, *_OTHERS.get(file, ()), "errors", "common")
        own = [(key.split(".")[0], english, bangla) for key, english, bangla in entries() if key.split(".")[0] in known]
        forms = {(room, PLACEHOLDER.sub("{}", english)) for room, english, _ in own}
        assert len(forms) == len(own), file
        said = {(PLACEHOLDER.sub("{}", english), bangla) for _, english, bangla in own}
        open_ended = [english for english, _ in said]
        assert len(set(open_ended)) == len(open_ended), [each for each in open_ended if open_ended.count(each) > 1]
