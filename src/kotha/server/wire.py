"""Requests as JSON: known fields and no others, and nothing that takes far longer to look at than to send.

What is wrong is told of the first fault alone: whoever collects all faults of a million numbers does that for minutes.
"""

from collections.abc import Iterator
from typing import Annotated, Any

import regex
from fastapi import Path
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from kotha.errors import nearest
from kotha.i18n.catalogue import Messenger, to_json
from kotha.i18n.message import Message
from kotha.server.validation import FieldError

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


class ToldMessage(BaseModel):
    """A sentence for a person: in English, and as a template and its values for who shows it in another language."""

    text: str = Field(description="In English.")
    template: str = Field(description="The same, with names in braces for what is filled in.")
    values: dict[str, Any] = Field(description="What is filled in, by name.")
    one: str | None = Field(None, description="The template for one thing, where it differs.")

    @classmethod
    def of(cls, message: Messenger | str) -> "ToldMessage":
        """A message of ours."""
        return cls(**to_json(message))


Said = Annotated[
    ToldMessage, BeforeValidator(lambda given: to_json(given) if isinstance(given, Message | str) else given)
]
# A message where a string is expected: its English.
InEnglish = Annotated[str, BeforeValidator(lambda given: str(given) if isinstance(given, Message) else given)]


class WireRequest(BaseModel):
    """A request."""

    model_config = ConfigDict(extra="forbid")

    @model_validator(mode="before")
    @classmethod
    def _first_fault(cls, given: Any) -> Any:
        if isinstance(given, dict):
            unknown = next((name for name in given if name not in cls.model_fields), None)
            if unknown is not None:
                name = str(unknown)[:60]
                known = nearest(name, cls.model_fields)
                raise FieldError("there is no field {name!r}{nearest}", name, name=name, nearest=known)
            if any(map(_PILE.search, _texts_in(given))):
                raise FieldError(
                    "a letter has more than {n} marks, which is no letter of any script; leave some out",
                    names_field=True,
                    n=_MOST_MARKS,
                )
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
