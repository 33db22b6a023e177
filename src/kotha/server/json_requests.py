"""JSON requests. Unknown fields are rejected, and validation is cheap even for hostile input.

Only the first error is reported, because collecting errors for a million numbers would take minutes. Kotha's messages
replace pydantic's (``faults.json``). Names and tags must be a single line of visible characters: with invisible
characters and direction marks, one name could look like another.
"""

import json
import re
import unicodedata
from collections.abc import Iterable, Iterator
from json.decoder import scanstring  # type: ignore[attr-defined]
from pathlib import Path as FilePath
from typing import Annotated, Any

import regex
from fastapi import Path
from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from kotha.errors import KothaError, nearest
from kotha.generation.settings import SamplingSettings
from kotha.i18n.catalogue import Messenger, to_json
from kotha.i18n.message import Message

# By pydantic's error type; placeholders are values of the error's context.
_FAULTS: dict[str, str] = json.loads(FilePath(__file__).with_name("faults.json").read_text(encoding="utf-8"))
# More combining marks on one character than any script needs; normalization takes quadratic time in their number.
_MOST_MARKS = 30
_TOKEN = re.compile(r'[ \t\n\r]*([{}:,"]|null|)')  # of JSON, where a string begins with its quotation mark
_MOST_STRINGS, _SMALL_BYTES = 16, 1 << 16  # fields of an upload; size of a body that is cheap to parse in any case
_HALF = regex.compile("[\ud800-\udfff]")  # surrogates: valid in JSON escapes, not in UTF-8
_PILE = regex.compile(rf"\p{{M}}{{{_MOST_MARKS + 1}}}")

MOST_TOKENS = 4096  # generated for one text
MOST_ALTERNATIVES = 20  # reported at each token
JsonObject = dict[str, Any]
Id = Annotated[str, Field(pattern="^[0-9a-f]{12}$")]  # of a job, a file, a judging
ModelName = Annotated[
    str,
    Field(max_length=200, examples=["box"]),
]
NamedModel = Annotated[str, Path(description="Name of a model on this server.")]
Texts = Annotated[list[str], Field(max_length=4096, fail_fast=True)]
_MOST_TEXTS, _MOST_IDS = 4096, 400_000
Ids = Annotated[list[Annotated[int, Field(ge=0)]], Field(max_length=_MOST_IDS, fail_fast=True)]
IdLists = Annotated[list[Ids], Field(max_length=_MOST_TEXTS, fail_fast=True)]


class FieldError(KothaError, ValueError):
    """A validation error for one field, or for several fields together.

    ``param`` is the field that caused the error; if it is given, the message already names the field.
    """

    def __init__(self, template: str, /, param: str | None = None, names_field: bool = False, **values: Any) -> None:
        super().__init__(template, **values)
        self.param, self.names_field = param, names_field or param is not None


def _of_one_kind(given: Any) -> Any:
    """Check that a value is one of ``TextsOrIds``; pydantic's errors for a union name its types."""
    items = given if isinstance(given, list) else []
    ids = [token for each in items if type(each) is not str for token in (each if type(each) is list else [each])]
    if not isinstance(given, str | list) or any(type(token) is not int for token in ids):
        raise FieldError("it must be a string, a list of strings, a list of token ids, or a list of such lists")
    kinds = {type(each) for each in items}
    if len(kinds) > 1:
        raise FieldError("it mixes strings, token ids and lists; all its items must be of one kind")
    if min(ids, default=0) < 0:
        raise FieldError("{id} is not a token id; token ids are 0 or more", id=min(ids))
    most = _MOST_IDS if kinds == {int} else _MOST_TEXTS
    if len(items) > most:
        raise FieldError("it has more than {max_length:,} items; remove some", max_length=most)
    return given


def _text_or_ids(given: Any) -> Any:
    """Check that a value is one of ``TextOrIds``."""
    if isinstance(given, list) and any(isinstance(each, str | list) for each in given):
        raise FieldError("it must be a string or a list of token ids")
    return _of_one_kind(given)


TextOrIds = Annotated[str | Ids, BeforeValidator(_text_or_ids)]
TextsOrIds = Annotated[str | Texts | Ids | IdLists, BeforeValidator(_of_one_kind)]


class TranslatableMessage(BaseModel):
    """A message in English, with its template and values, so that clients can show it in another language."""

    text: str
    template: str
    values: JsonObject
    one: str | None = None

    @classmethod
    def of(cls, message: Messenger | str) -> "TranslatableMessage":
        """Return the JSON form of a message."""
        return cls(**to_json(message))


MessageField = Annotated[
    TranslatableMessage, BeforeValidator(lambda given: to_json(given) if isinstance(given, Message | str) else given)
]


class WireRequest(BaseModel):
    """Base class for requests."""

    model_config = ConfigDict(extra="forbid")

    @model_validator(mode="before")
    @classmethod
    def _first_fault(cls, given: Any) -> Any:
        if isinstance(given, dict):
            texts = list(_texts_in(given))
            if _is_in(_HALF, texts):
                raise FieldError(
                    "text in the request contains half a character (a lone surrogate); send complete characters",
                    names_field=True,
                )
            unknown = next((name for name in given if name not in cls.model_fields), None)
            if unknown is not None:
                name = str(unknown)[:60]
                known = nearest(name, cls.model_fields)
                raise FieldError("unknown field {name!r}{nearest}", name, name=name, nearest=known)
            if _is_in(_PILE, texts):
                raise FieldError(
                    "a character has more than {n} combining marks; remove some",
                    names_field=True,
                    n=_MOST_MARKS,
                )
        return given


# Request defaults, which are those of `kotha generate`; they were chosen by measurement.
_DEFAULTS = SamplingSettings()


class SamplingFields(WireRequest):
    """A request for generated text, with its sampling settings."""

    model: ModelName
    temperature: float = Field(_DEFAULTS.temperature, ge=0, le=2)
    top_k: int | None = Field(_DEFAULTS.top_k, ge=1)
    top_p: float | None = Field(None, gt=0, le=1)
    min_p: float | None = Field(None, gt=0, le=1)
    repetition_penalty: float | None = Field(_DEFAULTS.repetition_penalty, gt=0, le=10)

    def settings(self, seed: int) -> SamplingSettings:
        """Return the sampling settings with this seed."""
        return SamplingSettings(
            seed=seed, **{name: getattr(self, name) for name in list(SamplingFields.model_fields)[1:]}
        )


def as_list(given: TextsOrIds) -> list[str | tuple[int, ...]]:
    """Return the input as a list, whether it is one input or several, texts or token ids.

    >>> as_list("নদী"), as_list([7, 8]), as_list([[7], [8, 9]])
    (['নদী'], [(7, 8)], [(7,), (8, 9)])
    """
    if isinstance(given, str):
        return [given]
    if given and isinstance(given[0], int):
        return [tuple(token for token in given if isinstance(token, int))]
    return [each if isinstance(each, str) else tuple(each) for each in given if not isinstance(each, int)]


def _is_in(pattern: "regex.Pattern[str]", texts: Iterable[str]) -> bool:
    """Whether a pattern occurs in one of the texts; other threads run meanwhile, because an upload is large."""
    return any(pattern.search(text, concurrent=True) for text in texts)


def _texts_in(given: Any) -> Iterator[str]:
    """Yield all strings in a request, including field names."""
    waiting = [given]
    while waiting:
        each = waiting.pop()
        if isinstance(each, str):
            yield each
        elif isinstance(each, dict):
            waiting += [*each, *each.values()]
        elif isinstance(each, list):
            waiting += [part for part in each if isinstance(part, str | dict | list)]


def json_strings(body: bytes) -> JsonObject:
    """Parse a JSON object whose values are strings or null; in a large body, any other value becomes an empty list.

    Millions of nested lists fit into the size of an upload, and building them would take gigabytes of memory.

    >>> json_strings('{"text": "ক", "name": null}'.encode())
    {'text': 'ক', 'name': None}
    """
    text, found = str(body, json.detect_encoding(body), "surrogatepass"), JsonObject()
    token, at = _token(text, 0)
    while token in ("{", ",") and len(found) < _MOST_STRINGS:
        quote, at = _token(text, at)
        if quote != '"':
            break
        name, at = scanstring(text, at)
        colon, at = _token(text, at)
        kind, at = _token(text, at)
        if colon != ":":
            break
        if kind not in ('"', "null"):
            if len(body) > _SMALL_BYTES:
                return {**found, name: []}
            break
        found[name], at = scanstring(text, at) if kind == '"' else (None, at)
        token, at = _token(text, at)
        if token == "}" and _token(text, at) == ("", len(text)):
            return found
    if len(body) > _SMALL_BYTES:
        raise json.JSONDecodeError("Expecting an object of strings", text, at)
    small: JsonObject = json.loads(body)
    return small


def _token(text: str, at: int) -> tuple[str, int]:
    found = _TOKEN.match(text, at)
    assert found is not None, "the pattern also matches nothing"
    return found[1] or "", found.end()


def first_fault(fault: JsonObject) -> tuple[Messenger, str | None]:
    """Return the message for a pydantic error, and the field that caused it."""
    context = fault.get("ctx", {})
    if fault["type"] == "json_invalid":
        return Message(
            "the body is not valid JSON: {error} at character {letter}",
            error=context.get("error"),
            letter=fault["loc"][-1],
        ), None
    if fault["type"] in ("model_attributes_type", "dict_type") and len(fault["loc"]) == 1:
        return Message("the body must be a JSON object; send it with the header `content-type: application/json`"), None
    where = ".".join(str(part) for part in fault["loc"] if part != "body") or None
    found = context.get("error")
    if isinstance(found, FieldError) and found.names_field:
        return found, found.param or where
    message = in_words(fault)
    return (message if where is None else Message("{field}: {fault}", field=where, fault=message)), where


def in_words(fault: JsonObject) -> Messenger:
    """Return the message for a pydantic error, without the field.

    >>> str(in_words({"type": "greater_than_equal", "msg": "Input should be greater …", "ctx": {"ge": 1000.0}}))
    'it must be 1,000 or more'
    """
    kind, context = fault["type"], dict(fault.get("ctx", {}))
    if isinstance(context.get("error"), KothaError):  # raised by a validator of the field
        return Message(context["error"].template, **context["error"].values)
    for name, value in context.items():
        if isinstance(value, float) and value.is_integer():  # bounds as integers: 0, not 0.0
            context[name] = int(value)
    if kind in ("string_too_short", "too_short") and context.get("min_length") == 1:
        kind = "empty"
    return Message(_FAULTS[kind], **context) if kind in _FAULTS else Message(str(fault["msg"]))


LONGEST_NAME, LONGEST_TAG, MOST_TAGS = 200, 40, 12
# Bangla needs these inside words, as in র‍্যাম; no script needs other invisible characters.
_JOINERS = "\u200c\u200d"
_BETWEEN = ","  # separates tags in input fields


def seen_name(name: str) -> str:
    """Return a name without invisible characters, truncated if it is too long.

    Used for names that were not typed by a user, such as file names.

    >>> seen_name("report\u202efdp.txt\\x00")
    'reportfdp.txt'
    """
    visible = "".join(letter for letter in name if letter.isspace() or not _unseen(letter))
    return unicodedata.normalize("NFC", " ".join(visible.split()))[:LONGEST_NAME]


def tidy_name(name: str, longest: int = LONGEST_NAME) -> str:
    """Return a name as it is stored: on one line, in NFC, with single spaces.

    >>> tidy_name("  ছোট   মডেল ")
    'ছোট মডেল'
    """
    for letter in name:
        if _unseen(letter) and not letter.isspace():
            raise FieldError("it contains the invisible character {letter}; remove it", letter=f"U+{ord(letter):04X}")
    tidy = unicodedata.normalize("NFC", " ".join(name.split()))  # which splits some characters in two, such as য়
    if len(tidy) > longest:
        raise FieldError("it has {n} characters, more than {longest}; shorten it", n=len(tidy), longest=longest)
    return tidy


def tidy_tag(tag: str) -> str:
    """Return a tag as it is stored: like a name, but not empty and without commas.

    >>> tidy_tag("ছোট, বড়")
    Traceback (most recent call last):
    ...
    kotha.server.json_requests.FieldError: a tag cannot contain a comma; commas separate tags
    """
    tidy = tidy_name(tag, LONGEST_TAG)
    if not tidy.strip(_JOINERS):
        raise FieldError("a tag is empty; remove it")
    if _BETWEEN in tidy:
        raise FieldError("a tag cannot contain a comma; commas separate tags")
    return tidy


def _unseen(letter: str) -> bool:
    return unicodedata.category(letter).startswith("C") and letter not in _JOINERS


def _each_once(tags: list[str]) -> list[str]:
    return list(dict.fromkeys(tags))


SeenName = Annotated[str, AfterValidator(seen_name)]
Name = Annotated[str, Field(max_length=LONGEST_NAME), AfterValidator(tidy_name)]
Tag = Annotated[str, Field(min_length=1, max_length=LONGEST_TAG), AfterValidator(tidy_tag)]
Tags = Annotated[list[Tag], Field(max_length=MOST_TAGS, fail_fast=True), AfterValidator(_each_once)]
