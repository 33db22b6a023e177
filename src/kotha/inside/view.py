"""A view: what was found inside a model, as data, as one offline page, and at sight in a notebook.

Every room has a function that makes one from an opened model and what shall be read; commands print it, and the face
hands it to whoever asked. The page is made when it is first wanted. It is one file that asks nobody for anything: its
styles, markup and scripts come from the room's ``assets`` and are put into it here, its data as JSON that no text can
break out of, and a policy in its head forbids the browser every request.
"""

import json
import os
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from importlib.resources import files
from pathlib import Path
from typing import Any, Generic, TypeVar

from kotha.arguments import checked
from kotha.files import write_page
from kotha.page import Page, framed

Found = TypeVar("Found")
_POLICY = (
    '<meta http-equiv="Content-Security-Policy" '
    "content=\"default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:\">"
)


@dataclass(frozen=True)
class View(Generic[Found]):
    """What was found, and the ways to show it."""

    title: str
    found: Found = field(repr=False)
    make_page: Callable[[], str] = field(repr=False)
    make_dict: Callable[[], dict[str, Any]] = field(repr=False)
    remarks: tuple[str, ...] = ()  # what the user should know about how the input was taken

    def __repr__(self) -> str:
        remarks = "".join(f"; {remark}" for remark in self.remarks)
        return f"View({type(self.found).__name__} of {self.title!r}{remarks})"

    @cached_property
    def html(self) -> str:
        """The page, whole and offline."""
        return self.make_page()

    def to_dict(self) -> dict[str, Any]:
        """All of it, ready for JSON."""
        return self.make_dict()

    @checked()
    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write the page to a file, whole or not at all."""
        write_page(Path(path), self.html)
        return Path(path)

    def _repr_html_(self) -> str:
        return framed(self.html, self.title)


def interactive(page: Page, folder: str, data: Any, footer: str = "") -> str:
    """The HTML of a page with a folder's style, markup and scripts, and the data that they show.

    What they show stands above the page's first section.
    """
    whole = styled(page, folder, footer)
    held = f'<script type="application/json" id="data">{as_script(data)}</script>'
    run = f'<script>"use strict";(() => {{\n{_assets(folder, ".js")}}})()</script>'
    place = next(found for mark in ("<h2>", "<footer>", "</body>") if (found := whole.find(mark)) >= 0)
    return f"{whole[:place]}{_assets(folder, '.html')}{held}\n{run}\n{whole[place:]}"


def styled(page: Page, folder: str | None = None, footer: str = "") -> str:
    """The HTML of a page with a folder's style alone, or with none beside the page's own."""
    style = "" if folder is None else _assets(folder, ".css")
    return page.html(footer).replace("</head>", f"{_POLICY}\n<style>{style}</style>\n</head>", 1)


def _assets(folder: str, ending: str) -> str:
    parts = sorted(files("kotha.inside").joinpath(folder, "assets").iterdir(), key=lambda part: part.name)
    return "".join(part.read_text("utf-8") for part in parts if part.name.endswith(ending))


def as_script(data: Any) -> str:
    r"""JSON that can stand inside a ``<script>`` element, whatever its strings say.

    >>> as_script({"token": "</script>"})
    '{"token":"\\u003c/script\\u003e"}'
    """
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":"))
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text
