"""What was typed wrongly, in one line: a word that does not exist before one that is missing for its sake."""

import inspect
from collections.abc import Iterable, Iterator
from dataclasses import Field, fields, is_dataclass
from typing import Any, get_args

from cyclopts import App, CoercionError, CycloptsError, MissingArgumentError, UnusedCliTokensError
from cyclopts.exceptions import UnknownCommandError, UnknownOptionError

from kotha.errors import nearest
from kotha.i18n.message import Message


def misuse(error: CycloptsError) -> Message:
    """An error of the parser as a message of ours."""
    error.verbose = False
    if isinstance(error, UnusedCliTokensError):
        unused = " ".join(error.unused_tokens or [])
        return Message("{unused} is too much; a text of several words needs quotes around it", unused=unused)
    if isinstance(error, UnknownCommandError) and error.unused_tokens and isinstance(error.app, App):
        name, known = error.unused_tokens[0], [each for each in error.app if not each.startswith("-")]
        return Message("there is no command {name!r}{nearest}", name=name, nearest=nearest(name, known))
    if isinstance(error, UnknownOptionError):
        options = [name for argument in error.argument_collection for name in argument.names]
        return _no_option(error.token.keyword or error.token.value, options)
    if isinstance(error, CoercionError) and error.msg is None and error.token is not None:
        return _wrong_value(error)
    if isinstance(error, MissingArgumentError) and error.argument is not None:
        return _missing(error)
    return Message("{error}", error=str(error)[:1].lower() + str(error)[1:])


def _no_option(name: str, known: Iterable[str]) -> Message:
    return Message("there is no option {name}{nearest}", name=name, nearest=nearest(name, known))


def _wrong_value(error: CoercionError) -> Message:
    assert error.token is not None, "looked at before"
    name = error.token.keyword or ("" if error.argument is None else error.argument.name.lstrip("-").upper())
    value, choices = error.token.value, [str(each) for each in get_args(error.target_type)]
    if choices:
        return Message(
            "{name} {value!r} is not known{nearest}", name=name, value=value, nearest=nearest(value, choices)
        )
    if error.target_type is int:
        return Message("{name} takes a whole number, and {value!r} is none", name=name, value=value)
    return Message("{name} takes a number, and {value!r} is none", name=name, value=value)


def names_of(parameters: Iterable[Any]) -> Iterator[str]:
    """The names of parameters, those of a group one by one."""
    for each in parameters:
        kind = each.type if isinstance(each, Field) else each.annotation
        yield from names_of(fields(kind)) if is_dataclass(kind) else [each.name]


def _missing(error: MissingArgumentError) -> Message:
    assert error.argument is not None, "looked at before"
    name, command = error.argument.name, " ".join(error.command_chain or ())
    words, known = error.root_input_tokens or [], inspect.signature(error.target or misuse).parameters
    options = [f"--{each.strip('_').replace('_', '-')}" for each in names_of(known.values())]
    typed = [word.split("=")[0].replace("--no-", "--") for word in words if word.startswith("--")]
    unknown = next((word for word in typed if word not in options), None)
    if unknown is not None and error.target is not None:
        return _no_option(unknown, options)
    if name in words:
        return Message("{name} needs a value; see kotha {command} --help", name=name, command=command)
    return Message("{command} needs {name}; see kotha {command} --help", name=name, command=command)
