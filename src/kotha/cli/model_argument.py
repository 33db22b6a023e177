"""Which model a word names, and which is meant where it is left out before a prompt, which is no path."""

import os
from pathlib import Path

from kotha.cli.language import log
from kotha.errors import UsageError
from kotha.i18n.message import Message
from kotha.storage import bundled
from kotha.storage.status import is_directory


def place(word: str | None) -> Path:
    """Where the model is that a word names; who has a folder of that name here is told how to say so."""
    if word == bundled.NAME and is_directory(Path(word)):
        log(Message("{name} is the bundled model; for the folder here write ./{name}", name=bundled.NAME))
    return bundled.place(word)


def model_and_prompt(first: str | None, second: str | None, command: str) -> tuple[Path, str]:
    """A model's folder and a prompt: ``RUN PROMPT``, ``RUN``, ``PROMPT`` or nothing.

    One word in Latin letters that is no path is refused: it is as likely a folder that was mistyped.
    """
    if not first or second is not None:
        return place(first or None), second or ""
    if first == bundled.NAME or os.path.exists(first):  # noqa: PTH110 - a prompt may be too long for a path
        return place(first), ""
    if first.isascii() and not any(letter.isspace() for letter in first):
        raise UsageError(
            "{first} not found; name a run folder, or for a prompt write: kotha {command} box {first}",
            first=first,
            command=command,
        )
    return bundled.FOLDER, first
