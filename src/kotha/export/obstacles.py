"""What keeps a model out of an export target, as values."""

from collections.abc import Sequence

from kotha.errors import ConfigError
from kotha.i18n.message import Message, Text


class UnsupportedError(ConfigError):
    """A config that an export target has no place for; ``because`` names the settings that are in the way."""

    def __init__(self, template: str, /, because: Text) -> None:
        super().__init__(template, because=because)
        self.because = because


def in_a_row(parts: Sequence[Text]) -> Text:
    """Several remarks as one.

    >>> str(in_a_row(["one", Message("{n} more", n=2)]))
    'one; 2 more'
    """
    first, *others = parts
    return Message("{first}; {others}", first=first, others=in_a_row(others)) if others else first
