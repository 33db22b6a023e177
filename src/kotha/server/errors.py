"""Error responses in OpenAI's format: a message that says what to do, a type, and the parameter that caused the error.

An exception may define its own ``status``, ``param`` and ``code``. Responses contain the names of models and files, but
never their paths on the server (``by_name``).
"""

import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from copy import copy
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from pydantic import BaseModel
from starlette.exceptions import HTTPException

from kotha.errors import KothaError, TokenizerError, UsageError, is_short_of_memory
from kotha.i18n.catalogue import Messenger, to_json
from kotha.i18n.message import Message, Option
from kotha.i18n.numbers import Amount
from kotha.server.json_requests import JsonObject, first_fault

_log = logging.getLogger("kotha.serve")
_TYPES = {401: "authentication_error", 403: "permission_error", 404: "not_found_error", 429: "rate_limit_error"}
_RETRY_AFTER = {"Retry-After": "1"}


class ErrorDetail(BaseModel):
    """An error in OpenAI's format."""

    message: str
    type: str
    param: str | None
    code: str | None
    template: str
    values: JsonObject


class ErrorResponse(BaseModel):
    """The body of every error response."""

    error: ErrorDetail


# Declared as ranges, because the guard can reject a request to any route.
RESPONSES: dict[int | str, JsonObject] = {
    "4XX": {"model": ErrorResponse, "description": "The request was rejected; the message says why."},
    "5XX": {"model": ErrorResponse, "description": "The server could not process the request."},
}


class RefusedError(KothaError):
    """A rejected request, with its HTTP status."""

    def __init__(
        self, template: str, /, status: int = 400, param: str | None = None, code: str | None = None, **values: Any
    ) -> None:
        super().__init__(template, **values)
        self.status, self.param, self.code = status, param, code


def start_with(argument: str) -> Message:
    """Return the advice to start the server with a certain option."""
    return Message("start `kotha serve` with {flag}", flag=Option(argument, ...).flag)


def check_most(count: int, most: int, what: Message, param: str | None = None, code: str | None = None) -> None:
    """Raise RefusedError if a count exceeds a limit."""
    if count > most:
        raise RefusedError(
            "{count:,} {what} are too many for one request; at most {allowed:,} are allowed",
            param=param,
            code=code,
            count=count,
            what=what,
            allowed=most,
        )


@contextmanager
def refusing(*kinds: type[KothaError], param: str | None = None) -> Iterator[None]:
    """Convert errors that are caused by the request, not by the server, to RefusedError."""
    try:
        yield
    except kinds as error:
        refused = RefusedError(error.template, param=param)
        refused.values = error.values
        raise refused from error


def as_error(message: Messenger, status: int, param: str | None = None, code: str | None = None) -> JsonObject:
    """Return the body of an error response."""
    kind = _TYPES.get(status, "invalid_request_error" if status < 500 else "server_error")
    parts = to_json(message)
    more = {"template": parts["template"], "values": parts["values"]}
    return {"error": {"message": parts["text"], "type": kind, "param": param, "code": code, **more}}


def answer(error: Exception) -> tuple[int, JsonObject, dict[str, str]]:
    """Return the status, body and headers for an error; unexpected errors are logged with their tracebacks."""
    client_fault = 400 if isinstance(error, UsageError | TokenizerError) else None  # text that cannot be tokenized
    if isinstance(error, KothaError) and (status := getattr(error, "status", client_fault)) is not None:
        body = as_error(error, status, getattr(error, "param", None), getattr(error, "code", None))
        return status, body, _RETRY_AFTER if status in (429, 503) else {}
    if isinstance(error, RequestValidationError):
        message, param = first_fault(error.errors()[0])
        return 400, as_error(message, 400, param), {}
    if isinstance(error, HTTPException):
        status, headers = error.status_code, dict(error.headers or {})
        message = Message(str(error.detail))
        if status == 404:
            message = Message(
                "not found; OpenAI's routes are under /v1, Kotha's under /api, and /openapi.json lists all"
            )
        elif status == 405:
            message = Message("method not allowed; use {methods}", methods=headers.get("Allow", "another method"))
        return status, as_error(message, status), headers
    if is_short_of_memory(error):
        _log.warning("not enough memory for a request")
        return 500, as_error(Message("not enough memory for this request"), 500), {}
    if isinstance(error, KothaError):  # a damaged folder or damaged weights
        return 500, as_error(error, 500), {}
    _log.error("unexpected error", exc_info=error)
    if isinstance(error, OSError):  # the path is only in the log
        failed = Message("I/O error on the server: {why}; see its log", why=error.strerror)
        return 500, as_error(failed, 500), {}
    return 500, as_error(Message("internal error; see the server's log"), 500), {}


def install(app: FastAPI) -> None:
    """Install ``answer`` as the handler for all errors in an app."""

    async def handle(_: Request, error: Exception) -> JSONResponse:
        status, body, headers = answer(error)
        return JSONResponse(body, status, headers)

    # Starlette re-raises an error after the handler for Exception has handled it, so that its traceback is logged.
    # Running out of memory (RuntimeError from torch, OSError from the system) needs no traceback, so these types have
    # their own handlers.
    for kind in (KothaError, RequestValidationError, HTTPException, MemoryError, RuntimeError, OSError, Exception):
        app.add_exception_handler(kind, handle)


@contextmanager
def by_name(names: Mapping[str, str]) -> Iterator[None]:
    """Replace paths with names in the messages of errors raised inside the ``with`` block.

    >>> with by_name({"/home/me/news.index": "news"}):
    ...     raise KothaError("/home/me/news.index is empty")
    Traceback (most recent call last):
    ...
    kotha.errors.KothaError: news is empty
    """
    try:
        yield
    except KothaError as error:
        error.template = _named(error.template, names)
        error.values = {name: _named(value, names) for name, value in error.values.items()}
        raise


def _named(value: Any, names: Mapping[str, str]) -> Any:
    if value is None or isinstance(value, int | float | Option | Amount):
        return value
    if isinstance(value, list | tuple):
        return [_named(each, names) for each in value]
    if hasattr(value, "template"):
        message = copy(value) if isinstance(value, Message) else Message(_named(value.template, names))
        message.values = {name: _named(each, names) for name, each in value.values.items()}
        return message
    text = str(value)
    for path in sorted(names, key=len, reverse=True):  # longest first: one path may be a prefix of another
        text = text.replace(path, names[path])
    return text
