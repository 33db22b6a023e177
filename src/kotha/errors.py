"""The one exception tree: every error of ours is a KothaError, shown by the command line without a traceback.

Every message says what was wrong, the value, what is allowed, and what to do next.
A broken invariant of our own is an ``assert``, never one of these.
"""

import errno
from collections.abc import Iterable
from importlib import import_module
from typing import Any

from kotha.i18n.message import Message, Text, english


class KothaError(Exception):
    """Something the user can put right, as a message: an English template and the values that fill it in.

    A template without values is taken literally, braces included (see ``kotha.i18n.message``).

    >>> import kotha
    >>> try:
    ...     kotha.load("nowhere")
    ... except kotha.KothaError as error:
    ...     print(error)
    nowhere not found; name a run, model or Hugging Face folder, or box for the bundled model
    """

    def __init__(self, template: str, /, **values: Any) -> None:
        super().__init__(template)
        self.template = template
        self.values: dict[str, Any] = values

    def __str__(self) -> str:
        return english(self.template, self.values)

    def __reduce__(self) -> tuple[Any, ...]:
        return _made_again, (type(self), self.__dict__)


def _made_again(kind: type[KothaError], state: dict[str, Any]) -> KothaError:
    """An error that came from another process."""
    error = kind.__new__(kind, state["template"])
    error.__dict__.update(state)
    return error


class UsageError(KothaError):
    """A wrong argument, flag or combination of them (exit code 2)."""


class ConfigError(KothaError):
    """A setting with a value that cannot work."""


class CorpusError(KothaError):
    """An input document or file that cannot be read; one that is ``skippable`` a reader can leave out."""

    def __init__(self, template: str, /, skippable: bool = False, **values: Any) -> None:
        super().__init__(template, **values)
        self.skippable = skippable


class TokenizerError(KothaError):
    """A tokenizer that cannot be trained, read or used."""


class DataError(KothaError):
    """A data folder that is broken, incomplete or made for something else."""


class CheckpointError(KothaError):
    """A checkpoint or run folder that cannot be used."""


class TrainingError(KothaError):
    """A run that cannot go on."""


# What the libraries below us say when memory is refused; each has an exception of its own for it.
_SHORT_OF_MEMORY = (
    *("not enough memory", "out of memory", "bad_alloc", "unable to allocate"),
    *("cannot allocate memory", "can't allocate memory"),
    *("can't start new thread", "failed to map segment", "os error 12"),
)


def is_short_of_memory(error: BaseException | None) -> bool:
    """Whether memory was refused: by its kind, or by what it says, or what it came from says.

    >>> is_short_of_memory(RuntimeError("DefaultCPUAllocator: not enough memory: you tried to allocate 9 bytes."))
    True
    >>> is_short_of_memory(RuntimeError("shapes cannot be multiplied"))
    False
    """
    while error is not None:
        said = str(error).lower()
        if isinstance(error, MemoryError) or (isinstance(error, OSError) and error.errno == errno.ENOMEM):
            return True
        # A message of ours quotes what users wrote, so it is taken by its cause alone.
        if not isinstance(error, KothaError) and any(words in said for words in _SHORT_OF_MEMORY):
            return True
        error = error.__cause__
    return False


def is_io_or_memory_error(error: KothaError) -> bool:
    """Whether an I/O error or a lack of memory prevented the read; the file itself may be intact."""
    why = error.__cause__
    if isinstance(why, FileNotFoundError | NotADirectoryError | IsADirectoryError):
        return False
    # torch raises RuntimeError when it cannot open a file; safetensors quotes the system's "os error".
    return isinstance(why, OSError) or type(why) is RuntimeError or "os error" in str(why) or is_short_of_memory(error)


# What the system says most often, by its number, so that a reader has it in their language.
_OF_THE_SYSTEM = {
    errno.ENOSPC: Message("No space left on device"),
    errno.EACCES: Message("Permission denied"),
    errno.EIO: Message("Input/output error"),
    errno.ENOENT: Message("No such file or directory"),
}


def reason(error: BaseException) -> Text:
    """Why something failed, as a value for the message that says what did: our own words, the system's or a library's.

    >>> str(reason(OSError(errno.ENOSPC, "No space left on device"))), str(reason(ValueError("odd")))
    ('No space left on device', 'odd')
    """
    if isinstance(error, KothaError):
        return Message(error.template, **error.values)
    if isinstance(error, OSError) and error.strerror:
        usual = _OF_THE_SYSTEM.get(error.errno or 0)
        return usual if usual and str(usual) == error.strerror else error.strerror  # Windows may say more
    said = error.args[0] if error.args else ""
    return said if isinstance(said, Message) else str(error)


def library(name: str, needed: Text, error: type[KothaError] = KothaError) -> Any:
    """A library that an extra brings, loaded when it is asked for; where it is missing, what is ``needed`` is said."""
    try:
        return import_module(name)
    except ImportError as problem:
        message = Message(needed) if isinstance(needed, str) else needed
        raise error(message.template, **message.values) from problem


def closest(name: str, known: Iterable[str]) -> str | None:
    """The known name that was probably meant, or None.

    >>> closest("unigrm", ["bpe", "unigram"]), closest("xyz", ["bpe", "unigram"])
    ('unigram', None)
    """
    import difflib  # not at the top: a program that is interrupted while it starts should know these errors by then

    return next(iter(difflib.get_close_matches(name, sorted(set(known)), n=1)), None)


def nearest(name: str, known: Iterable[str]) -> Message:
    """Say which known name was probably meant, as the end of a sentence.

    >>> str(nearest("unigrm", ["bpe", "unigram"])), str(nearest("xyz", ["bpe", "unigram"]))
    ("; did you mean 'unigram'?", '; known: bpe, unigram')
    """
    names = sorted(set(known))
    meant = closest(name, names)
    return (
        Message("; known: {names}", names=names) if meant is None else Message("; did you mean {name!r}?", name=meant)
    )
