"""Check an argument against its allowed values."""

from collections.abc import Collection
from typing import Literal

from kotha.errors import KothaError, UsageError, nearest
from kotha.i18n.message import Option

Errors = Literal["stop", "skip"]  # how to handle a document that cannot be read


def check_choice(name: str, value: str, known: Collection[str], error: type[KothaError] = UsageError) -> None:
    """Raise ``error`` if an argument is not one of the allowed values.

    >>> check_choice("split", "trian", ("train", "test"))
    Traceback (most recent call last):
    kotha.errors.UsageError: split='trian' is not a valid choice; did you mean 'train'?
    """
    if value not in known:
        raise error(
            "{option} is not a valid choice{nearest}", option=Option(name, value), nearest=nearest(str(value), known)
        )
