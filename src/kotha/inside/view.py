"""A view: the result of an inspection, available as data, as one offline page, and inline in a notebook.

Each kind of inspection has a function that makes a view from a loaded model and its input; commands print it, and the
API returns it. The page is built on first access. A page is a single file without external resources, drawn by the
studio's components (``report/single_file.py``).
"""

import os
from collections.abc import Callable
from dataclasses import dataclass, field, fields, is_dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Any, Generic, TypeVar

from torch import Tensor

from kotha.arguments import checked
from kotha.errors import UsageError
from kotha.i18n.message import Message, Text
from kotha.report.page import framed
from kotha.report.single_file import view_page
from kotha.storage.atomic import write_page
from kotha.storage.output_paths import PAGE_ENDINGS

Found = TypeVar("Found")
Data = dict[str, Any]


@dataclass(frozen=True)
class View(Generic[Found]):
    """A result, with methods that display it."""

    title: Text
    found: Found = field(repr=False)
    make_page: Callable[[], str] = field(repr=False)
    make_dict: Callable[[], Data] = field(repr=False)
    remarks: tuple[Text, ...] = ()  # notes for the user about the input

    def __repr__(self) -> str:
        remarks = "".join(f"; {remark}" for remark in self.remarks)
        return f"View({type(self.found).__name__} of {str(self.title)!r}{remarks})"

    @cached_property
    def html(self) -> str:
        """The page of the view as one offline HTML file."""
        return self.make_page()

    def to_dict(self) -> Data:
        """Return the data of the view, ready for JSON."""
        return self.make_dict()

    @checked()
    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write the page to a file, atomically."""
        if Path(path).suffix.lower() not in ("", *PAGE_ENDINGS):
            named = Path(path).with_suffix(".html")
            raise UsageError(
                "{path} has the wrong extension for an HTML page; use {named}", path=Path(path), named=named
            )
        write_page(Path(path), self.html)
        return Path(path)

    def _repr_html_(self) -> str:
        return framed(self.html, str(self.title))


def to_json(value: Any) -> Any:
    """Convert a result to JSON types: dataclasses to the fields in their repr, tensors to numbers with six decimals."""
    if isinstance(value, dict):
        return {name: to_json(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [to_json(each) for each in value]
    if isinstance(value, Tensor):
        return value.double().mul(1e6).round().div(1e6).tolist()
    if is_dataclass(value):
        return {each.name: to_json(getattr(value, each.name)) for each in fields(value) if each.repr}
    return str(value) if isinstance(value, Message | Path) else value


def view_of(
    kind: str,
    title: Text,
    found: Found,
    page: Callable[[], Data],
    remarks: tuple[Text, ...] = (),
    made_by: str = "",
) -> View[Found]:
    """Make a view; ``page`` returns the data for the component ``kind`` in ``web/src/pages/views``."""
    command = made_by or f"kotha inside {kind}"
    make_page = partial(view_page, kind, title, made_by=command)
    return View(title, found, lambda: make_page(page(), remarks), lambda: to_json(found), remarks)
