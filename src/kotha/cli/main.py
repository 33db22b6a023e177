"""``kotha``: the command-line entry point.

Commands are imported only when they are called, so that help is fast and imports no large package.
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
from kotha.api.progress import silenced
from kotha.cli.control_characters import visible_controls
from kotha.cli.interrupts import INTERRUPTED, STOPPED, StoppedError
from kotha.cli.language import current_language, log, translate, use_language
from kotha.cli.options import AsJson
from kotha.cli.usage_errors import misuse
from kotha.errors import CorpusError, KothaError, UsageError, is_short_of_memory, reason
from kotha.i18n.catalogue import Messenger, to_json
from kotha.i18n.message import Message
from kotha.i18n.numbers import Language

OK, FAILED, MISUSED = 0, 1, 2
_NO_MEMORY = Message("not enough memory; process less data at a time, or use a smaller model")
_NOT_READ = Message("a file could not be read, or the output could not be written")
_NOT_WRITTEN = Message("the output could not be written")

# KOTHA_LANGUAGE sets the default; an empty value is ignored.
_IN_LANGUAGE = Annotated[
    Language,
    Parameter(
        help="English or Bangla.",
        env_var="KOTHA_LANGUAGE",
        env_var_split=lambda _, value, delimiter=None: value.split(),
    ),
]
# Each command by name: its help line, its function, and the commands of a group.
COMMANDS: dict[str, dict[str, Any]] = json.loads(Path(__file__).with_name("commands.json").read_text(encoding="utf-8"))


def build(words: Sequence[str]) -> App:
    """Build the command line, importing only the command named in ``words``."""
    display: dict[str, Any] = {}
    if sys.stdout.isatty() or sys.stderr.isatty():  # cyclopts prints its own colours
        from kotha.cli.terminal import notes, results

        display = {"console": results(), "error_console": notes()}
    if current_language() != "en" or {"--help", "-h"} & set(words):
        from kotha.cli.help import Help

        display["help_formatter"] = Help()
    app = App(
        name="kotha",
        help="Train small language models from raw text, Bangla first, and inspect every step.",
        help_epilogue=translate("Start with `kotha demo`. Every command has its own --help."),
        version=kotha.__version__,
        help_format="plaintext",
        default_parameter=Parameter(show_default=_default, negative=""),
        suppress_keyboard_interrupt=False,
        **display,
    )
    for order, (name, entry) in enumerate(COMMANDS.items()):
        called = name in words[:1]
        # Without a help text, cyclopts shows the docstring of the command.
        command = App(name=name, help=None if called and "function" in entry else entry["about"], sort_key=order)
        if called:
            if "function" in entry:
                command.default(_loaded(entry["function"]))
            for position, (part, target) in enumerate(entry.get("commands", {}).items()):
                command.command(_loaded(target), name=part, sort_key=position)
        app.command(command)
    return app


def _loaded(target: str) -> Callable[..., None]:
    """Import a command and add the common options; its result is printed, as JSON if requested."""
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
    """Return the options that the called command accepts."""
    *_, app = build(words).parse_commands(words)[1]
    return [name for each in app.assemble_argument_collection() for name in each.names] if app.default_command else []


def _default(value: Any) -> str | None:
    """Return a default value as shown in help; None and an empty list are not shown."""
    return None if value is None or value == () else str(value) or '""'


def main(arguments: list[str] | None = None) -> int:
    """Run a command; for a user error, print one line on stderr and return an exit code, without a traceback."""
    words = sys.argv[1:] if arguments is None else arguments
    _use_utf8()
    with visible_controls(), use_language(words), silenced():
        try:
            _run(words)
            sys.stdout.flush()
        except CycloptsError as error:
            return _fail(misuse(error, _options(words)), MISUSED)
        except KeyboardInterrupt:
            return _fail(STOPPED, INTERRUPTED)
        except BrokenPipeError:  # the process that reads stdout has exited, as in `kotha … | head`
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
                return _fail(_with_skip_hint(error, words), MISUSED if isinstance(error, UsageError) else FAILED)
            if isinstance(error, OSError):
                return _fail(_file_error(error), FAILED)
            _save_error(Message("{kind}: {why}", kind=type(error).__name__, why=reason(error)))
            raise
    return OK


def _file_error(error: OSError) -> Message:
    """Convert a file system error to a message."""
    if error.filename and error.errno == errno.ENOENT:
        return Message("{where} not found; check the path", where=error.filename)
    if error.filename and error.errno == errno.EISDIR:
        return Message("{path} is a folder; specify a file in it", path=error.filename)
    where = error.filename or (_NOT_READ if error.errno == errno.EIO else _NOT_WRITTEN)
    return Message("{where}: {why}", where=where, why=reason(error))


def _use_utf8() -> None:
    """Write UTF-8 output even if the locale specifies another encoding."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper) and stream.encoding.lower().replace("-", "") != "utf8":
            stream.reconfigure(encoding="utf-8")


def _run(words: list[str]) -> None:
    for word in words:
        if any("\ud800" <= character <= "\udfff" for character in word):
            raise UsageError("the argument {word!a} is not UTF-8", word=word)
    build(words)(words, exit_on_error=False, print_error=False, result_action="return_value")


def _save_error(message: Messenger) -> None:
    """Save the error for the parent process, which may show it in another language."""
    if file := os.environ.get("KOTHA_ERROR_FILE"):
        with suppress(OSError):
            Path(file).write_text(json.dumps(to_json(message)), encoding="utf-8")


def _fail(message: Messenger, code: int) -> int:
    _save_error(message)
    try:
        log(message)
    except OSError:  # stderr is on the full disk as well
        _drop_output()
    return code


def _with_skip_hint(error: KothaError, words: list[str]) -> Messenger:
    """Return the error, with a hint about ``--errors skip`` if the command has that option."""
    if isinstance(error, CorpusError) and error.skippable and "--errors" in _options(words):
        return Message("{error}, or skip it with --errors skip", error=error)
    return error


def _drop_output() -> None:
    """Discard unwritten output; otherwise Python tries to flush it at exit, and reports another error."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
