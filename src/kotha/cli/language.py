"""The reader's language at the terminal: ``--language``, or else ``KOTHA_LANGUAGE``, or else English.

Commands and the packages below hand over messages; here they become text. ``--json`` is the same in every language.
"""

import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import pairwise

from kotha.i18n import catalogue
from kotha.i18n.catalogue import Messenger
from kotha.i18n.numbers import LANGUAGES, Language
from kotha.report.page import pages_open_in

VARIABLE = "KOTHA_LANGUAGE"
_FLAG = "--language"


class _Reader:
    """In which language the command at work speaks."""

    language: Language = "en"


def asked_language(words: Sequence[str]) -> Language:
    """The language of a command line; a wrong one is for the command to refuse.

    >>> asked_language(["plan", "--language", "bn"]), asked_language(["plan", "--language=bn"])
    ('bn', 'bn')
    """
    asked = os.environ.get(VARIABLE, "")
    words = () if list(words[:2]) == ["corpus", "inspect"] else words  # there the flag names the corpus's language
    for word, following in pairwise([*words, ""]):
        name, equals, value = word.partition("=")
        if name == _FLAG:
            asked = value if equals else following
    return next((language for language in LANGUAGES if language == asked), "en")


@contextmanager
def speaking(words: Sequence[str]) -> Iterator[None]:
    """Speak the language of a command line while it is at work."""
    before, _Reader.language = _Reader.language, asked_language(words)
    try:
        with pages_open_in(_Reader.language):
            yield
    finally:
        _Reader.language = before


def spoken_language() -> Language:
    """The language of the command at work."""
    return _Reader.language


def translate(text: "Messenger | str") -> str:
    """Translate a message into the command's language, with arguments as flags; a string is returned as is."""
    return catalogue.translate(text, _Reader.language, flags=True)


def log(text: "Messenger | str") -> None:
    """Print a remark on stderr, in the command's language."""
    print(f"kotha: {translate(text)}", file=sys.stderr, flush=True)
