"""A view: what was found inside a model, as data, as one offline page, and at sight in a notebook.

Every room has a function that makes one from an opened model and what shall be read; commands print it, and the face
hands it to whoever asked. The page is made when it is first wanted, and asks the network for nothing.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Generic, TypeVar

from kotha.files import write_whole
from kotha.page import framed

Found = TypeVar("Found")


@dataclass(frozen=True)
class View(Generic[Found]):
    """What was found, and the ways to show it."""

    title: str
    found: Found = field(repr=False)
    """The result itself, typed."""
    make_page: Callable[[], str] = field(repr=False)
    make_dict: Callable[[], dict[str, Any]] = field(repr=False)
    remarks: tuple[str, ...] = ()
    """What the user should know about how the input was taken."""

    @cached_property
    def html(self) -> str:
        """The page, whole and offline."""
        return self.make_page()

    def to_dict(self) -> dict[str, Any]:
        """All of it, ready for JSON."""
        return self.make_dict()

    def save(self, path: str | Path) -> Path:
        """Write the page to a file, whole or not at all."""
        write_whole(Path(path), self.html)
        return Path(path)

    def _repr_html_(self) -> str:
        return framed(self.html, self.title)
