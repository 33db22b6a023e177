"""What all pages share: text that is safe in HTML, in scripts and in a frame, and the language that a page opens in."""

import html
import re
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from kotha.i18n.numbers import Language
from kotha.storage.json_files import as_json

# What XML cannot hold: most control characters, and halves of surrogate pairs, which UTF-8 cannot hold either.
_FORBIDDEN = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")
# What could end a script, or its line; and halves of surrogate pairs, as above.
_NOT_IN_SCRIPTS = re.compile("[<>&\u2028\u2029\ud800-\udfff]")

_LANGUAGE: ContextVar[Language] = ContextVar("page_language", default="en")


@contextmanager
def pages_open_in(language: Language) -> Iterator[None]:
    """Meanwhile documents open in a language; the reader can change it in the page."""
    before = _LANGUAGE.set(language)
    try:
        yield
    finally:
        _LANGUAGE.reset(before)


def page_language() -> Language:
    """The language that a document opens in."""
    return _LANGUAGE.get()


def escape(text: str) -> str:
    """Text that HTML, XML and UTF-8 can hold and that cannot become markup.

    >>> escape("<b>" + chr(0) + "কথা")
    '&lt;b&gt;\ufffdকথা'
    """
    return html.escape(_FORBIDDEN.sub("\ufffd", text))


def framed(html: str, title: str) -> str:
    """A whole page inside a notebook: in a frame of its own, from which it reaches neither notebook nor network."""
    # A page that may not look out of its frame cannot ask for the height it needs, so a screen's serves all.
    look = "width:100%;height:min(90vh,46rem);border:0;resize:vertical"
    return f'<iframe title="{escape(title)}" sandbox="allow-scripts" style="{look}" srcdoc="{escape(html)}"></iframe>'


def as_script(data: Any) -> str:
    r"""JSON that can stand inside a ``<script>`` element, whatever its strings say.

    >>> as_script({"token": "</script>"})
    '{"token": "\\u003c/script\\u003e"}'
    """
    return _NOT_IN_SCRIPTS.sub(lambda found: f"\\u{ord(found[0]):04x}", as_json(data))
