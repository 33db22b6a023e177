"""What is wrong with a field of a request, in our words: pydantic's own speak of strings, inputs and patterns."""

from typing import Any

# By pydantic's kind of fault; what is in braces stands in the fault's context.
_WORDS = {
    "missing": "it is missing",
    "string_too_short": "it must have {min_length} letters or more",
    "string_too_long": "it is longer than {max_length} letters; shorten it",
    "string_pattern_mismatch": "it has a form that is not known here; wanted is {pattern}",
    "string_unicode": "it holds half a letter, which is none; leave it out",
    "string_type": "it must be a text",
    "too_short": "it must have {min_length} parts or more",
    "too_long": "it has more than {max_length} parts; leave some out",
    "greater_than": "it must be more than {gt}",
    "greater_than_equal": "it must be {ge} or more",
    "less_than": "it must be less than {lt}",
    "less_than_equal": "it must be {le} or less",
    "literal_error": "it must be {expected}",
    "union_tag_invalid": "it must be {expected_tags}",
    "union_tag_not_found": "the field {discriminator} is missing",
}
_WORDS |= dict.fromkeys(("int_type", "int_parsing", "int_parsing_size", "int_from_float"), "it must be a whole number")
_WORDS |= dict.fromkeys(("float_type", "float_parsing", "finite_number"), "it must be a number")
_WORDS |= dict.fromkeys(("bool_type", "bool_parsing"), "it must be true or false")
_WORDS |= dict.fromkeys(("list_type", "tuple_type"), "it must be a list")
_WORDS |= dict.fromkeys(("dict_type", "model_type", "model_attributes_type"), "it must be an object")


def in_words(fault: dict[str, Any]) -> str:
    """One fault that pydantic found.

    >>> in_words({"type": "greater_than_equal", "msg": "Input should be greater …", "ctx": {"ge": 1000}})
    'it must be 1,000 or more'
    """
    context = fault.get("ctx", {})
    if fault["type"] in ("string_too_short", "too_short") and context.get("min_length") == 1:
        return "it is empty; fill it in"
    form = _WORDS.get(fault["type"])
    if form is None:  # one of ours, raised where the field is defined
        return str(fault["msg"]).removeprefix("Value error, ")
    return form.format_map({name: _shown(value) for name, value in context.items()})


def _shown(value: object) -> str:
    if isinstance(value, int):
        return f"{value:,}"
    return f"{value:g}" if isinstance(value, float) else str(value)
