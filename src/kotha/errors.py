"""The exceptions of Kotha, all derived from KothaError; the command line shows them without a traceback.

Every message says what is wrong, which value was given, what is allowed, and what to do. Internal invariants are
checked with ``assert`` instead.
"""

import errno
import os
from collections.abc import Iterable
from contextlib import suppress
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from kotha.i18n.message import Message, Text, english


class KothaError(Exception):
    """An error that the user can fix; its message is an English template with values.

    A template without values is literal, braces included (see ``kotha.i18n.message``).

    >>> import kotha
    >>> try:
    ...     kotha.load("nowhere")
    ... except kotha.KothaError as error:
    ...     print(error)
    nowhere not found; give a run, model or Hugging Face folder, or box for the bundled model
    """

    def __init__(self, template: str, /, **values: Any) -> None:
        super().__init__(template)
        self.template = template
        self.values: dict[str, Any] = values

    def __str__(self) -> str:
        return english(self.template, self.values)

    def __reduce__(self) -> tuple[Any, ...]:
        return _unpickle, (type(self), self.__dict__)


def _unpickle(kind: type[KothaError], state: dict[str, Any]) -> KothaError:
    """Recreate an error from another process."""
    error = kind.__new__(kind, state["template"])
    error.__dict__.update(state)
    return error


class UsageError(KothaError):
    """An invalid argument or combination of arguments (exit code 2)."""


class ConfigError(KothaError):
    """A setting with an invalid value."""


class CorpusError(KothaError):
    """An input document or file that cannot be read; a reader can skip it if it is ``skippable``."""

    def __init__(self, template: str, /, skippable: bool = False, **values: Any) -> None:
        super().__init__(template, **values)
        self.skippable = skippable


class TokenizerError(KothaError):
    """A tokenizer that cannot be trained, read or used."""


class DataError(KothaError):
    """A data folder that is corrupted, incomplete or of the wrong kind."""


class CheckpointError(KothaError):
    """A checkpoint or run folder that cannot be used."""


class TrainingError(KothaError):
    """A training run that cannot continue."""


class NotFiniteError(KothaError):
    """A model whose activations are NaN or overflow, so its predictions are meaningless."""

    def __init__(self, model: Text | None = None) -> None:
        super().__init__(
            "{model}: activations overflow or are NaN, so its predictions are meaningless; the weights are damaged or "
            "too large; use an earlier checkpoint, or train again with a lower learning rate",
            model=model or Message("the model"),
        )


# Out-of-memory messages from libraries, which raise different exceptions.
_SHORT_OF_MEMORY = (
    *("not enough memory", "out of memory", "bad_alloc", "unable to allocate"),
    *("cannot allocate memory", "can't allocate memory"),
    *("can't start new thread", "failed to map segment", "os error 12"),
)


def is_short_of_memory(error: BaseException | None) -> bool:
    """Whether an error or one of its causes is an out-of-memory error, judging by its type or message.

    >>> is_short_of_memory(RuntimeError("DefaultCPUAllocator: not enough memory: you tried to allocate 9 bytes."))
    True
    >>> is_short_of_memory(RuntimeError("shapes cannot be multiplied"))
    False
    """
    while error is not None:
        text = str(error).lower()
        if isinstance(error, MemoryError) or (isinstance(error, OSError) and error.errno == errno.ENOMEM):
            return True
        # A KothaError may quote user input, so only its cause is checked.
        if not isinstance(error, KothaError) and any(words in text for words in _SHORT_OF_MEMORY):
            return True
        error = error.__cause__
    return False


def is_io_or_memory_error(error: KothaError) -> bool:
    """Whether an I/O error or a lack of memory prevented the read; the file itself may be intact."""
    cause = error.__cause__
    if isinstance(cause, FileNotFoundError | NotADirectoryError | IsADirectoryError):
        return False
    # torch raises RuntimeError when it cannot open a file; safetensors quotes the system's "os error".
    return (
        isinstance(cause, OSError)
        or type(cause) is RuntimeError
        or "os error" in str(cause)
        or is_short_of_memory(error)
    )


# The operating system's most frequent error messages, by number, for translation.
_SYSTEM_MESSAGES = {
    errno.ENOSPC: Message("No space left on device"),
    errno.EACCES: Message("Permission denied"),
    errno.EIO: Message("Input/output error"),
    errno.ENOENT: Message("No such file or directory"),
}


def reason(error: BaseException) -> Text:
    """Return the reason for an error as a value for another message.

    >>> str(reason(OSError(errno.ENOSPC, "No space left on device"))), str(reason(ValueError("odd")))
    ('No space left on device', 'odd')
    """
    if isinstance(error, KothaError):
        return Message(error.template, **error.values)
    if isinstance(error, OSError) and error.strerror:
        usual = _SYSTEM_MESSAGES.get(error.errno or 0)
        return usual if usual and str(usual) == error.strerror else error.strerror  # Windows may add details
    first = error.args[0] if error.args else ""
    return first if isinstance(first, Message) else str(error)


def library(name: str, needed: Message, error: type[KothaError] = KothaError) -> Any:
    """Import an optional library; raise an error with the message ``needed`` if it is missing."""
    try:
        return import_module(name)
    except ImportError as problem:
        raise error(needed.template, **needed.values) from problem


def require(needed: Message, *names: str) -> None:
    """Raise an error with the message ``needed`` if a library is missing; nothing is imported."""
    if any(find_spec(name) is None for name in names):
        raise KothaError(needed.template, **needed.values)


class InstallCommand:
    """The command that installs libraries into this environment, as a value for a message.

    It lists the libraries of an extra by name, because Kotha itself may be a checkout or a wheel that is not on any
    package index.
    """

    def __init__(self, extra: str = "", *libraries: str) -> None:
        self.extra, self.libraries = extra, libraries

    def __str__(self) -> str:
        import shlex
        import sys
        from importlib.metadata import PackageNotFoundError, requires

        found = list(self.libraries)
        with suppress(PackageNotFoundError):  # Kotha runs from its sources and is not installed
            lines = [line.partition(";") for line in requires("kotha") or ()]
            found += [name.strip() for name, _, when in lines if f"extra == '{self.extra}'" in when.replace('"', "'")]
        here, python = f"{Path.cwd()}{os.sep}", sys.executable or "python"
        python = python.removeprefix(here)
        return shlex.join([python, "-m", "pip", "install", *(found or [f"kotha[{self.extra}]"])])

    def __format__(self, spec: str) -> str:
        return format(str(self), spec)


def closest(name: str, known: Iterable[str]) -> str | None:
    """Return the known name that is closest to ``name``, or None.

    >>> closest("unigrm", ["bpe", "unigram"]), closest("xyz", ["bpe", "unigram"])
    ('unigram', None)
    """
    import difflib  # imported here, because this module must load quickly at startup

    return next(iter(difflib.get_close_matches(name, sorted(set(known)), n=1)), None)


def nearest(name: str, known: Iterable[str]) -> Message:
    """Return a suggestion to append to a message: the closest known name, or all known names.

    >>> str(nearest("unigrm", ["bpe", "unigram"])), str(nearest("xyz", ["bpe", "unigram"]))
    ("; did you mean 'unigram'?", '; known: bpe, unigram')
    """
    names = sorted(set(known))
    suggestion = closest(name, names)
    return (
        Message("; known: {names}", names=names)
        if suggestion is None
        else Message("; did you mean {name!r}?", name=suggestion)
    )
