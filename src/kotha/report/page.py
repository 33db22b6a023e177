"""Helpers shared by all pages: escaping for HTML, scripts and frames, and the initial language."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from kotha.i18n.numbers import Language, environment_language
from kotha.storage.json_files import as_json

# Not allowed in XML: most control characters, and lone surrogates, which UTF-8 cannot encode either.
_FORBIDDEN = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")
# Characters that could end a script or a line in it, and lone surrogates (see above).
_NOT_IN_SCRIPTS = re.compile("[<>&\u2028\u2029\ud800-\udfff]")

_LANGUAGE: ContextVar[Language | None] = ContextVar("page_language", default=None)


@contextmanager
def pages_open_in(language: Language) -> Iterator[None]:
    """Set the initial language of documents in this context; readers can switch it in the page."""
    before = _LANGUAGE.set(language)
    try:
        yield
    finally:
        _LANGUAGE.reset(before)


def page_language() -> Language:
    """The initial language of a document: that of the command, otherwise that of the environment."""
    return _LANGUAGE.get() or environment_language()


def escape(text: str) -> str:
    """Escape text for HTML and XML; characters that these do not allow become U+FFFD.

    >>> escape("<b>" + chr(0) + "কথা")
    '&lt;b&gt;\ufffdকথা'
    """
    from html import escape as escape_html  # html loads a table of entities, which commands without a page do not need

    return escape_html(_FORBIDDEN.sub("\ufffd", text))


def framed(html: str, title: str) -> str:
    """Return a page for a notebook, in a sandboxed frame that cannot access the notebook or the network."""
    # A sandboxed page cannot report its height, so every frame is about as high as a screen.
    look = "width:100%;height:min(90vh,46rem);border:0;resize:vertical"
    return f'<iframe title="{escape(title)}" sandbox="allow-scripts" style="{look}" srcdoc="{escape(html)}"></iframe>'


def as_script(data: Any) -> str:
    r"""Return data as JSON that is safe inside a ``<script>`` element.

    >>> as_script({"token": "</script>"})
    '{"token": "\\u003c/script\\u003e"}'
    """
    return _NOT_IN_SCRIPTS.sub(lambda found: f"\\u{ord(found[0]):04x}", as_json(data))
