"""Check arguments to the public API against the names and types in its signatures.

An invalid argument raises an error with a clear message at the call. Types are checked down to the items of a list; the
meaning of a value (a share, an existing name) is checked where it is used.
"""

import functools
import inspect
import re
import reprlib
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from numbers import Integral, Real
from types import UnionType
from typing import Any, Literal, ParamSpec, TypeVar, Union, get_args, get_origin

from kotha.errors import ConfigError, UsageError, nearest, reason

P = ParamSpec("P")
R = TypeVar("R")
_LISTS = (list, tuple, Sequence, Iterable)


def checked(
    forwards_to: Callable[..., Any] | None = None, settings: Callable[[], Collection[str]] | None = None
) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Check a function's arguments at every call; ``forwards_to`` is the callable that receives its ``**kwargs``.

    If these are settings instead, ``settings`` returns their names; their values are checked where they are used.

    >>> @checked()
    ... def cut(text: str, *, times: int = 1) -> None: ...
    >>> cut("নদী", time=2)
    Traceback (most recent call last):
    ...
    kotha.errors.UsageError: cut has no argument 'time'; did you mean 'times'?
    >>> cut("নদী", times="2")
    Traceback (most recent call last):
    ...
    kotha.errors.UsageError: times='2' has the wrong type; expected int
    """

    def wrap(function: Callable[P, R]) -> Callable[P, R]:
        signature = inspect.signature(function)
        own = {name: each for name, each in signature.parameters.items() if each.kind is not each.VAR_KEYWORD}
        open_ended = len(own) < len(signature.parameters) and forwards_to is None
        forwarded = {} if forwards_to is None else inspect.signature(forwards_to).parameters
        # Parameters without a default are passed by the function itself.
        known = {name: each for name, each in forwarded.items() if each.default is not each.empty} | own
        called = function.__qualname__.removesuffix(".__init__").rpartition(".")[2]

        @functools.wraps(function)
        def call(*args: P.args, **kwargs: P.kwargs) -> R:
            for name in kwargs:
                if name not in known and settings is not None and name not in (others := settings()):
                    raise ConfigError(
                        "unknown setting {name!r}{nearest}", name=name, nearest=nearest(name, {*known, *others})
                    )
                if name not in known and not open_ended:
                    raise UsageError(
                        "{called} has no argument {name!r}{nearest}",
                        called=called,
                        name=name,
                        nearest=nearest(name, known.keys() - {"self"}),
                    )
            try:
                given = signature.bind(*args, **kwargs).arguments
            except TypeError as error:
                raise UsageError("{called}: {why}", called=called, why=reason(error)) from error
            for name, value in {**given, **kwargs}.items():
                if name in known and not _fits(value, allowed := _type_of(known[name])):
                    raise UsageError(
                        "{name}={value} has the wrong type; expected {allowed}",
                        name=name,
                        value=reprlib.repr(value),
                        allowed=re.sub(r"\w+\.", "", inspect.formatannotation(allowed)),
                    )
            return function(*args, **kwargs)

        return call

    return wrap


def _type_of(parameter: inspect.Parameter) -> Any:
    """Return the type of a parameter; for a type variable, the union of its constraints."""
    kind = parameter.annotation
    return Union[kind.__constraints__] if isinstance(kind, TypeVar) else kind  # noqa: UP007


def _fits(value: Any, annotation: Any) -> bool:
    """Whether a value matches a type annotation; True if the annotation cannot be checked."""
    kind = get_origin(annotation) or annotation
    if kind in (Union, UnionType):
        return any(_fits(value, each) for each in get_args(annotation))
    if kind is Literal:
        return isinstance(value, str)  # the value is checked where it is used, with a suggestion
    if kind in (int, float):
        return isinstance(value, Integral if kind is int else Real) and not isinstance(value, bool)
    if kind in _LISTS:  # a string is not a list, and an iterator must not be consumed
        items = value if isinstance(value, Collection) else ()
        is_list = isinstance(value, Iterable) and not isinstance(value, str | bytes | Mapping)
        return is_list and all(_fits(item, get_args(annotation)[0]) for item in items)
    return kind in (Any, inspect.Parameter.empty) or not isinstance(kind, type) or isinstance(value, kind)
