"""``kotha``: the one entry point.

Commands are loaded when they are called, so that help is quick and imports nothing heavy.
"""

import errno
import functools
import inspect
import io
import json
import os
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any

from cyclopts import App, CycloptsError, Parameter

import kotha
from kotha.cli.control_characters import visible_controls
from kotha.cli.interrupts import INTERRUPTED, STOPPED, StoppedError
from kotha.cli.language import log, speaking, spoken_language, translate
from kotha.cli.options import AsJson
from kotha.cli.usage_errors import misuse
from kotha.errors import CorpusError, KothaError, UsageError, is_short_of_memory, reason
from kotha.i18n.catalogue import Messenger, to_json
from kotha.i18n.message import Message
from kotha.i18n.numbers import Language

OK, FAILED, MISUSED = 0, 1, 2
_NO_MEMORY = Message("not enough memory; process less at a time, or use a smaller model")
_UNREAD = Message("a file could not be read, or the output could not be written")
_UNWRITTEN = Message("the output could not be written")

# Whoever sets KOTHA_LANGUAGE once need not say it with each command; set to nothing, it says nothing.
_IN_LANGUAGE = Annotated[
    Language,
    Parameter(
        help="English or Bangla.",
        env_var="KOTHA_LANGUAGE",
        env_var_split=lambda _, value, delimiter=None: value.split(),
    ),
]
# By its name what help says of a command, where its function is, and the commands of a group.
COMMANDS: dict[str, dict[str, Any]] = json.loads(Path(__file__).with_name("commands.json").read_text(encoding="utf-8"))


def build(words: Sequence[str]) -> App:
    """The command line, with nothing loaded but what ``words`` call."""
    looks: dict[str, Any] = {}
    if sys.stdout.isatty() or sys.stderr.isatty():  # cyclopts has colours of its own
        from kotha.cli.terminal import notes, results

        looks = {"console": results(), "error_console": notes()}
    if spoken_language() != "en":
        from kotha.cli.help import TranslatedHelp

        looks["help_formatter"] = TranslatedHelp()
    app = App(
        name="kotha",
        help="Small language models from raw text, Bangla first: every step open, computable by hand, and checked.",
        help_epilogue=translate("Start with `kotha demo`. Every command has its own --help."),
        version=kotha.__version__,
        help_format="plaintext",
        default_parameter=Parameter(show_default=_default, negative=""),
        suppress_keyboard_interrupt=False,
        **looks,
    )
    for order, (name, known) in enumerate(COMMANDS.items()):
        command = App(name=name, help=known["about"], sort_key=order)
        if name in words[:1]:
            if "function" in known:
                command.default(_loaded(known["function"]))
            for place, (part, target) in enumerate(known.get("commands", {}).items()):
                command.command(_loaded(target), name=part, sort_key=place)
        app.command(command)
    return app


def _loaded(target: str) -> Callable[..., None]:
    """A command with the options that all have; what it returns is printed, as JSON if asked."""
    module, _, name = target.partition(":")
    function = getattr(import_module(f"kotha.{module}"), name)
    signature = inspect.signature(function)
    shared: dict[str, tuple[Any, Any]] = {"language": (_IN_LANGUAGE, "en"), "as_json": (AsJson, False)}
    if signature.return_annotation is None:
        del shared["as_json"]
    added = {each: shared[each] for each in shared if each not in signature.parameters}

    @functools.wraps(function)
    def run(*args: Any, **kwargs: Any) -> None:
        as_json = kwargs.get("as_json", False)
        found = function(*args, **{each: value for each, value in kwargs.items() if each not in added})
        if found is not None:
            found.show(as_json)

    kind = inspect.Parameter.KEYWORD_ONLY
    more = [inspect.Parameter(each, kind, default=default) for each, (_, default) in added.items()]
    run.__annotations__ = {**function.__annotations__, **{each: hint for each, (hint, _) in added.items()}}
    run.__signature__ = signature.replace(parameters=[*signature.parameters.values(), *more])  # type: ignore[attr-defined]
    return run


def _options(words: Sequence[str]) -> list[str]:
    """The options of the command that is called."""
    *_, app = build(words).parse_commands(words)[1]
    return [name for each in app.assemble_argument_collection() for name in each.names] if app.default_command else []


def _default(value: Any) -> str | None:
    """A default as help shows it; none and an empty list are what they say."""
    return None if value is None or value == () else str(value) or '""'


def main(arguments: list[str] | None = None) -> int:
    """Run a command; a user's mistake is one line on stderr and an exit code, never a traceback."""
    words = sys.argv[1:] if arguments is None else arguments
    _speak_utf8()
    with visible_controls(), speaking(words):
        try:
            _run(words)
            sys.stdout.flush()
        except CycloptsError as error:
            return _fail(misuse(error, _options(words)), MISUSED)
        except KeyboardInterrupt:
            return _fail(STOPPED, INTERRUPTED)
        except BrokenPipeError:  # the reader of our output has gone, as in `kotha … | head`
            _drop_output()
            return FAILED
        except Exception as error:
            if isinstance(error, OSError):
                _drop_output()
            if isinstance(error, StoppedError):
                return _fail(error, error.code)
            if is_short_of_memory(error):
                return _fail(_NO_MEMORY, FAILED)
            if isinstance(error, KothaError):
                return _fail(_with_ways(error, words), MISUSED if isinstance(error, UsageError) else FAILED)
            if isinstance(error, OSError):
                where = error.filename or (_UNREAD if error.errno == errno.EIO else _UNWRITTEN)
                return _fail(Message("{where}: {why}", where=where, why=reason(error)), FAILED)
            _leave(Message("{kind}: {why}", kind=type(error).__name__, why=reason(error)))
            raise
    return OK


def _speak_utf8() -> None:
    """Bangla comes out whole, whatever an old locale says of the output."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper) and stream.encoding.lower().replace("-", "") != "utf8":
            stream.reconfigure(encoding="utf-8")


def _run(words: list[str]) -> None:
    for word in words:
        if any("\ud800" <= character <= "\udfff" for character in word):
            raise UsageError("the argument {word!a} is not UTF-8", word=word)
    build(words)(words, exit_on_error=False, print_error=False, result_action="return_value")


def _leave(message: Messenger) -> None:
    """Leave a message for whoever began this command, to tell it in another language."""
    if place := os.environ.get("KOTHA_ERROR_FILE"):
        with suppress(OSError):
            Path(place).write_text(json.dumps(to_json(message)), encoding="utf-8")


def _fail(message: Messenger, code: int) -> int:
    _leave(message)
    try:
        log(message)
    except OSError:  # stderr is on the full disk too
        _drop_output()
    return code


def _with_ways(error: KothaError, words: list[str]) -> Messenger:
    """An error, and how ``--errors`` would go on, for a command that has it."""
    if isinstance(error, CorpusError) and error.skippable and "--errors" in _options(words):
        return Message("{error}, or skip it with --errors skip", error=error)
    return error


def _drop_output() -> None:
    """What is still waiting to be written cannot be; Python would try once more at its end, and complain."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
