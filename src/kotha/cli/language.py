"""The user's language at the terminal: ``--language``, otherwise ``KOTHA_LANGUAGE``, otherwise that of the locale.

Commands and the packages that they call produce messages, which this module translates into text. The output of
``--json`` is the same in every language.
"""

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import pairwise

from kotha.i18n import catalogue
from kotha.i18n.catalogue import Messenger
from kotha.i18n.numbers import LANGUAGES, Language, environment_language
from kotha.report.page import pages_open_in

_FLAG = "--language"


class _Current:
    """The language of the running command."""

    language: Language = "en"


def requested_language(words: Sequence[str]) -> Language:
    """Return the language that a command line requests; if it is unknown, the command rejects it later.

    >>> requested_language(["plan", "--language", "bn"]), requested_language(["plan", "--language=bn"])
    ('bn', 'bn')
    """
    requested: str = environment_language()
    words = () if list(words[:2]) == ["corpus", "inspect"] else words  # there --language is for the corpus
    for word, following in pairwise([*words, ""]):
        name, equals, value = word.partition("=")
        if name == _FLAG:
            requested = value if equals else following
    return next((language for language in LANGUAGES if language == requested), "en")


@contextmanager
def use_language(words: Sequence[str]) -> Iterator[None]:
    """Use the language that a command line requests inside the ``with`` block."""
    before, _Current.language = _Current.language, requested_language(words)
    try:
        with pages_open_in(_Current.language):
            yield
    finally:
        _Current.language = before


def current_language() -> Language:
    """Return the language of the running command."""
    return _Current.language


def translate(text: "Messenger | str") -> str:
    """Translate a message into the command's language, naming arguments as flags; return a string unchanged."""
    return catalogue.translate(text, _Current.language, flags=True)


def log(text: "Messenger | str") -> None:
    """Print a remark on stderr, in the command's language."""
    print(f"kotha: {translate(text)}", file=sys.stderr, flush=True)
