"""Parse the RUN argument, which may be omitted before a prompt."""

import os
from pathlib import Path

from kotha.cli.language import log
from kotha.errors import UsageError
from kotha.i18n.message import Message
from kotha.storage import bundled
from kotha.storage.status import is_directory


def model_path(word: str | None) -> Path:
    """Return the folder of the model that an argument names; warn if there is also a local folder called box."""
    if word == bundled.NAME and is_directory(Path(word)):
        log(Message("{name} is the bundled model; to use the local folder, write ./{name}", name=bundled.NAME))
    return bundled.model_path(word)


def model_and_words(first: str | None, others: tuple[str, ...], command: str) -> tuple[Path, tuple[str, ...]]:
    """Return the model's folder and the words, given ``RUN WORD…``, ``WORD…`` or no arguments.

    A single ASCII word that is not a path raises an error, because it may be a mistyped folder.
    """
    if first is None or first == bundled.NAME or os.path.exists(first):  # noqa: PTH110 - not a valid path, perhaps
        return model_path(first), others
    if not first.isascii():
        return bundled.FOLDER, (first, *others)
    if others:
        return model_path(first), others
    raise UsageError(
        "{first} not found; specify a run folder, or to look up a word, run: kotha {command} box {first}",
        first=first,
        command=command,
    )


def model_not_text(word: str) -> Path:
    """Return the model's folder; raise an error if the argument looks like a text, which needs ``--text``."""
    if not word.isascii() and not os.path.exists(word):  # noqa: PTH110 - a text may be too long for a path
        raise UsageError("{word} not found; specify a run folder, or give text with --text", word=word)
    return model_path(word)


def model_and_prompt(first: str | None, second: str | None, command: str) -> tuple[Path, str]:
    """Return the model's folder and the prompt, given ``RUN PROMPT``, ``RUN``, ``PROMPT`` or no arguments.

    A single ASCII word that is not a path raises an error, because it may be a mistyped folder.
    """
    if not first or second is not None:
        return model_path(first or None), second or ""
    if first == bundled.NAME or os.path.exists(first):  # noqa: PTH110 - a prompt may be too long for a path
        return model_path(first), ""
    if first.isascii() and not any(character.isspace() for character in first):
        raise UsageError(
            "{first} not found; specify a run folder, or to use it as a prompt, run: kotha {command} box {first}",
            first=first,
            command=command,
        )
    return bundled.FOLDER, first
