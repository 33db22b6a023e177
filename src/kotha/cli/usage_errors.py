"""Convert parser errors to messages; a mistyped option is reported as such, not as a missing option."""

from collections.abc import Iterable
from typing import get_args

from cyclopts import App, CoercionError, CycloptsError, MissingArgumentError, UnusedCliTokensError
from cyclopts.exceptions import UnknownCommandError, UnknownOptionError

from kotha.api.options import is_setting
from kotha.errors import nearest
from kotha.i18n.message import Message


def misuse(error: CycloptsError, options: Iterable[str]) -> Message:
    """Convert a parser error to a message; ``options`` are the options of the called command."""
    error.verbose = False
    if isinstance(error, UnusedCliTokensError):
        unused = " ".join(error.unused_tokens or [])
        return Message("unexpected argument {unused}; put quotes around text that contains spaces", unused=unused)
    if isinstance(error, UnknownCommandError) and error.unused_tokens and isinstance(error.app, App):
        name, known = error.unused_tokens[0], [each for each in error.app if not each.startswith("-")]
        return Message("unknown command {name!r}{nearest}", name=name, nearest=nearest(name, known))
    if isinstance(error, UnknownOptionError):
        return _unknown_option(error.token.keyword or error.token.value, options)
    if isinstance(error, CoercionError) and error.msg is None and error.token is not None:
        name = error.token.keyword or ("" if error.argument is None else error.argument.name.lstrip("-").upper())
        value, choices = error.token.value, [str(each) for each in get_args(error.target_type)]
        if choices:
            template = "unknown {name} {value!r}{nearest}"
            return Message(template, name=name, value=value, nearest=nearest(value, choices))
        if error.target_type is int:
            return Message("{name} must be an integer, not {value!r}", name=name, value=value)
        return Message("{name} must be a number, not {value!r}", name=name, value=value)
    if isinstance(error, MissingArgumentError) and error.argument is not None:
        name, command = error.argument.name, " ".join(error.command_chain or ())
        words = [word.partition("=")[0] for word in error.root_input_tokens or []]
        for word in words:
            if word.startswith("--") and word not in options:
                return _unknown_option(word, options)
        if name in words:
            return Message("{name} needs a value; see kotha {command} --help", name=name, command=command)
        return Message("{command} needs {name}; see kotha {command} --help", name=name, command=command)
    return Message("{error}", error=str(error)[:1].lower() + str(error)[1:])


def _unknown_option(name: str, known: Iterable[str]) -> Message:
    known = [each for each in known if each.startswith("-")]  # no arguments such as PATHS
    setting = name.lstrip("-").replace("-", "_")
    if "--set" in known and is_setting(setting):
        return Message("unknown option {name}; write --set {setting}=VALUE", name=name, setting=setting)
    return Message("unknown option {name}{nearest}", name=name, nearest=nearest(name, known))
