"""What is wrong with a field of a request, in our words: pydantic's own speak of strings, inputs and patterns."""

from typing import Any

from kotha.errors import KothaError
from kotha.i18n.catalogue import Messenger
from kotha.i18n.message import Message

# By pydantic's kind of fault; what is in braces stands in the fault's context.
_FAULTS = {
    "missing": Message("it is missing"),
    "string_too_short": Message("it must have {min_length:,} letters or more"),
    "string_too_long": Message("it is longer than {max_length:,} letters; shorten it"),
    "string_pattern_mismatch": Message("it has a form that is not known here; wanted is {pattern}"),
    "string_unicode": Message("it holds half a letter, which is none; leave it out"),
    "string_type": Message("it must be a text"),
    "too_short": Message("it must have {min_length:,} parts or more"),
    "too_long": Message("it has more than {max_length:,} parts; leave some out"),
    "greater_than": Message("it must be more than {gt:,}"),
    "greater_than_equal": Message("it must be {ge:,} or more"),
    "less_than": Message("it must be less than {lt:,}"),
    "less_than_equal": Message("it must be {le:,} or less"),
    "literal_error": Message("it must be {expected}"),
    "union_tag_invalid": Message("it must be {expected_tags}"),
    "union_tag_not_found": Message("the field {discriminator} is missing"),
    **dict.fromkeys(
        ("int_type", "int_parsing", "int_parsing_size", "int_from_float"), Message("it must be a whole number")
    ),
    **dict.fromkeys(("float_type", "float_parsing", "finite_number"), Message("it must be a number")),
    **dict.fromkeys(("bool_type", "bool_parsing"), Message("it must be true or false")),
    **dict.fromkeys(("list_type", "tuple_type"), Message("it must be a list")),
    **dict.fromkeys(("dict_type", "model_type", "model_attributes_type"), Message("it must be an object")),
}


class FieldError(KothaError, ValueError):
    """What a validator of ours finds wrong with a field, or with several together.

    ``param`` is the field that is meant; where it is given, the message names it by itself.
    """

    def __init__(self, template: str, /, param: str | None = None, names_field: bool = False, **values: Any) -> None:
        super().__init__(template, **values)
        self.param, self.names_field = param, names_field or param is not None


def first_fault(fault: dict[str, Any]) -> tuple[Messenger, str | None]:
    """A fault that pydantic found, in words that say what to do, and the parameter that is meant."""
    context = fault.get("ctx", {})
    if fault["type"] == "json_invalid":
        return Message(
            "the body is no JSON: {error} at letter {letter}", error=context.get("error"), letter=fault["loc"][-1]
        ), None
    if fault["type"] in ("model_attributes_type", "dict_type") and len(fault["loc"]) == 1:
        return Message("the body must be a JSON object; send it with the header `content-type: application/json`"), None
    where = ".".join(str(part) for part in fault["loc"] if part != "body") or None
    found = context.get("error")
    if isinstance(found, FieldError) and found.names_field:
        return found, found.param or where
    message = in_words(fault)
    return (message if where is None else Message("{field}: {fault}", field=where, fault=message)), where


def in_words(fault: dict[str, Any]) -> Messenger:
    """One fault that pydantic found.

    >>> str(in_words({"type": "greater_than_equal", "msg": "Input should be greater …", "ctx": {"ge": 1000}}))
    'it must be 1,000 or more'
    """
    context = fault.get("ctx", {})
    if isinstance(context.get("error"), KothaError):  # one of ours, raised where the field is defined
        found: KothaError = context["error"]
        return Message(found.template, **found.values)
    if fault["type"] in ("string_too_short", "too_short") and context.get("min_length") == 1:
        return Message("it is empty; fill it in")
    known = _FAULTS.get(fault["type"])
    return Message(str(fault["msg"])) if known is None else Message(known.template, **_numbers(context))


def _numbers(context: dict[str, Any]) -> dict[str, Any]:
    """Bounds as they are read: 0, and not 0.0."""
    return {
        name: int(value) if isinstance(value, float) and value.is_integer() else value
        for name, value in context.items()
    }
