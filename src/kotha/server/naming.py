"""What a server has is known by names; where it is, is told to nobody."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from copy import copy
from typing import Any

from kotha.errors import KothaError
from kotha.i18n.message import Message, Option
from kotha.i18n.numbers import Amount


@contextmanager
def by_name(names: Mapping[str, str]) -> Iterator[None]:
    """Errors inside speak of names instead of places.

    >>> with by_name({"/home/me/news.index": "news"}):
    ...     raise KothaError("/home/me/news.index is empty")
    Traceback (most recent call last):
    ...
    kotha.errors.KothaError: news is empty
    """
    try:
        yield
    except KothaError as error:
        error.template = _named(error.template, names)
        error.values = {name: _named(value, names) for name, value in error.values.items()}
        raise


def _named(value: Any, names: Mapping[str, str]) -> Any:
    if value is None or isinstance(value, int | float | Option | Amount):
        return value
    if isinstance(value, list | tuple):
        return [_named(each, names) for each in value]
    if hasattr(value, "template"):
        message = copy(value) if isinstance(value, Message) else Message(_named(value.template, names))
        message.values = {name: _named(each, names) for name, each in value.values.items()}
        return message
    text = str(value)
    for place in sorted(names, key=len, reverse=True):  # a folder's own name begins those of what is in it
        text = text.replace(place, names[place])
    return text
