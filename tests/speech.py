"""The output of a command in Bangla, next to its JSON output."""

import json
import re

import pytest

from kotha.cli.main import main
from kotha.i18n.numbers import by_lakh

# Names, paths, commands, units and code; any other Latin text is an untranslated sentence.
LATIN_ALLOWED = re.compile(
    r"`[^`]*`|\S*[/.]\S*|--\S+"
    r"|\b(kotha|box|cpu|cuda|float32|bfloat16|Muon|kB|MB|GB|TB|GPU|UTF-8|ln V|F1|\d-gram|unigram)\b"
    r"|\b[0-9a-f]{32}\b|\b[a-z]+_[a-z_]+\b"
)


def spoken(words: list[str], capsys: pytest.CaptureFixture[str]) -> tuple[str, str]:
    """Return the output of a command in Bangla: stdout and stderr."""
    capsys.readouterr()
    assert main([*words, "--language", "bn"]) == 0
    shown = capsys.readouterr()
    return shown.out, shown.err


def told(words: list[str], capsys: pytest.CaptureFixture[str]) -> dict:
    """Return the JSON output of the same command, which does not depend on the language."""
    assert main([*words, "--json"]) == 0
    english = capsys.readouterr().out
    return json.loads(english)


def left_in_english(text: str, *names: str) -> list[str]:
    for name in names:
        text = text.replace(name, "")
    return re.findall(r"[A-Za-z]{2,}[A-Za-z ]*", LATIN_ALLOWED.sub("", text))


def bangla(number: int) -> str:
    """Format an integer as in a Bangla sentence."""
    return by_lakh(f"{number:,}").translate(str.maketrans("0123456789", "০১২৩৪৫৬৭৮৯"))
