"""Requests as JSON: known fields and no others, and nothing that takes far longer to look at than to send.

What is wrong is told of the first fault alone: whoever collects all faults of a million numbers does that for minutes.
"""

from collections.abc import Iterator
from typing import Annotated, Any

import regex
from fastapi import Path
from pydantic import BaseModel, ConfigDict, Field, model_validator
from pydantic_core import PydanticCustomError

from kotha.errors import nearest

# Marks on one letter that no script needs; a composer of Unicode sorts them in the square of their number.
_MOST_MARKS = 30
_PILE = regex.compile(rf"\p{{M}}{{{_MOST_MARKS + 1}}}")

ModelName = Annotated[
    str,
    Field(max_length=200, examples=["box"], description="A model of this server, by its name; /v1/models lists them."),
]
NamedModel = Annotated[str, Path(description="A model of this server, by its name.")]
Texts = Annotated[list[str], Field(max_length=4096, fail_fast=True)]
Ids = Annotated[list[Annotated[int, Field(ge=0)]], Field(max_length=400_000, fail_fast=True)]
IdLists = Annotated[list[Ids], Field(max_length=4096, fail_fast=True)]
TextsOrIds = str | Texts | Ids | IdLists


class WireRequest(BaseModel):
    """A request."""

    model_config = ConfigDict(extra="forbid")

    @model_validator(mode="before")
    @classmethod
    def _first_fault(cls, given: Any) -> Any:
        if isinstance(given, dict):
            unknown = next((name for name in given if name not in cls.model_fields), None)
            if unknown is not None:
                told = f"there is no field {str(unknown)[:60]!r}{nearest(str(unknown)[:60], cls.model_fields)}"
                raise PydanticCustomError("unknown_field", "{told}", {"told": told, "param": str(unknown)[:60]})
            if any(map(_PILE.search, _texts_in(given))):
                told = f"a letter has more than {_MOST_MARKS} marks, which is no letter of any script; leave some out"
                raise PydanticCustomError("too_many_marks", "{told}", {"told": told, "param": None})
        return given


def as_list(given: TextsOrIds) -> list[str | tuple[int, ...]]:
    """What is given alone or in a list, as texts or as token ids, as a list.

    >>> as_list("নদী"), as_list([7, 8]), as_list([[7], [8, 9]])
    (['নদী'], [(7, 8)], [(7,), (8, 9)])
    """
    if isinstance(given, str):
        return [given]
    if given and isinstance(given[0], int):
        return [tuple(token for token in given if isinstance(token, int))]
    return [each if isinstance(each, str) else tuple(each) for each in given if not isinstance(each, int)]


def _texts_in(given: Any) -> Iterator[str]:
    """Every text of a request, however deep; a body is bounded, and so is this."""
    waiting = [given]
    while waiting:
        each = waiting.pop()
        if isinstance(each, str):
            yield each
        elif isinstance(each, dict):
            waiting += each.values()
        elif isinstance(each, list):
            waiting += [part for part in each if isinstance(part, str | dict | list)]
