"""What a server has is known by names; where it is, is told to nobody."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from kotha.errors import KothaError


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
        message = str(error)
        for place in sorted(names, key=len, reverse=True):  # a folder's own name begins those of what is in it
            message = message.replace(place, names[place])
        error.args = (message, *error.args[1:])
        raise
