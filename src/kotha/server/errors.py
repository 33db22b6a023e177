"""Whatever goes wrong, in OpenAI's words: a message that says what to do, a type, and the parameter that is meant."""

import errno
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from pydantic import BaseModel, Field
from starlette.exceptions import HTTPException

from kotha.errors import KothaError, TokenizerError, UsageError, is_short_of_memory
from kotha.i18n.catalogue import Messenger, to_json
from kotha.i18n.message import Message
from kotha.server.batching import QueueFullError
from kotha.server.indexes import NoSuchIndexError
from kotha.server.jobs.errors import FilesFullError, JobConflictError, NoSuchJobError
from kotha.server.model_registry import ModelInUseError, NoSuchModelError
from kotha.server.serial_executor import ClientLeftError, TooLongError
from kotha.server.validation import first_fault

_log = logging.getLogger("kotha.serve")
_TYPES = {401: "authentication_error", 403: "permission_error", 404: "not_found_error", 429: "rate_limit_error"}
_RETRY_AFTER = {"Retry-After": "1"}
# What the system says of a disk that is broken, full or closed to us; a place that is not there is ours to foresee.
_OF_THE_DISK = {errno.EIO, errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EACCES, errno.EPERM}


class ErrorDetail(BaseModel):
    """What went wrong."""

    message: str = Field(description="What was wrong, and what to do.")
    type: str = Field(description="In OpenAI's words.")
    param: str | None = Field(description="The field that is meant, if it is one.")
    code: str | None = Field(description="A word for programs, where there is one.")
    template: str = Field(description="The message without what is filled in, for who shows it in another language.")
    values: dict[str, Any] = Field(description="What is filled in, by name.")


class ErrorAnswer(BaseModel):
    """The body of every answer that refuses."""

    error: ErrorDetail = Field(description="Why it is refused.")


# Every route may answer so; OpenAPI is told in ranges, since what the doorkeeper refuses it refuses everywhere.
RESPONSES: dict[int | str, dict[str, Any]] = {
    "4XX": {"model": ErrorAnswer, "description": "The request cannot be met; the message says why."},
    "5XX": {"model": ErrorAnswer, "description": "The server cannot meet it now."},
}


class RefusedError(KothaError):
    """A request that cannot be met, with its status."""

    def __init__(
        self, template: str, /, status: int = 400, param: str | None = None, code: str | None = None, **values: Any
    ) -> None:
        super().__init__(template, **values)
        self.status, self.param, self.code = status, param, code


class UnsupportedByModelError(RefusedError):
    """A request that other models could meet, and this one cannot by its nature."""

    def __init__(self, template: str, /, param: str = "model", **values: Any) -> None:
        super().__init__(template, 400, param, "unsupported_by_model", **values)


@contextmanager
def refusing(*kinds: type[KothaError], param: str | None = None) -> Iterator[None]:
    """Errors that are the client's here, though elsewhere they would be the server's."""
    try:
        yield
    except kinds as error:
        refused = RefusedError(error.template, param=param)
        refused.values = error.values
        raise refused from error


def as_error(message: Messenger, status: int, param: str | None = None, code: str | None = None) -> dict[str, Any]:
    """The body of an answer that refuses."""
    kind = _TYPES.get(status, "invalid_request_error" if status < 500 else "server_error")
    told = to_json(message)
    more = {"template": told["template"], "values": told["values"]}
    return {"error": {"message": told["text"], "type": kind, "param": param, "code": code, **more}}


def answer(error: Exception) -> tuple[int, dict[str, Any], dict[str, str]]:
    """Status, body and headers for an error; what nobody foresaw is logged whole and told in one sentence."""
    if isinstance(error, RefusedError):
        return error.status, as_error(error, error.status, error.param, error.code), {}
    if isinstance(error, NoSuchModelError):
        return 404, as_error(error, 404, "model", "model_not_found"), {}
    if isinstance(error, NoSuchJobError | NoSuchIndexError):
        return 404, as_error(error, 404), {}
    if isinstance(error, JobConflictError | ModelInUseError | FilesFullError):
        status = 413 if isinstance(error, FilesFullError) else 409
        return status, as_error(error, status), {}
    if isinstance(error, TooLongError | ClientLeftError):
        status = 504 if isinstance(error, TooLongError) else 499
        return status, as_error(error, status), {}
    if isinstance(error, QueueFullError):
        status = 429 if error.of_one else 503
        return status, as_error(error, status, code="queue_full"), _RETRY_AFTER
    if isinstance(error, UsageError | TokenizerError):  # a text that no tokenizer reads is the client's too
        return 400, as_error(error, 400), {}
    if isinstance(error, RequestValidationError):
        message, param = first_fault(error.errors()[0])
        return 400, as_error(message, 400, param), {}
    if isinstance(error, HTTPException):
        status, headers = error.status_code, dict(error.headers or {})
        told = Message(str(error.detail))
        if status == 404:
            told = Message(
                "there is nothing at this address; OpenAI's are under /v1, ours under /api, all are in /openapi.json"
            )
        elif status == 405:
            told = Message("this address is asked by {methods}", methods=headers.get("Allow", "another method"))
        return status, as_error(told, status), headers
    if is_short_of_memory(error):
        _log.warning("there was not enough memory for a request")
        return 500, as_error(Message("there is not enough memory for this"), 500), {}
    if isinstance(error, KothaError):  # a damaged folder, broken weights
        return 500, as_error(error, 500), {}
    if isinstance(error, OSError) and error.errno in _OF_THE_DISK:  # where it was is for the log alone
        _log.error("%s: %s", error.filename or "a file of the server", error.strerror)
        fails = Message("the server's disk fails: {why}; its log says where", why=error.strerror)
        return 500, as_error(fails, 500), {}
    _log.error("an unforeseen error", exc_info=error)
    return 500, as_error(Message("something went wrong in the server; its log says what"), 500), {}


def install(app: FastAPI) -> None:
    """Let every error of an app be answered so."""

    async def handle(_: Request, error: Exception) -> JSONResponse:
        status, body, headers = answer(error)
        return JSONResponse(body, status, headers)

    # Whatever comes under Exception alone is raised once more after the answer, for the log to show where it was. For
    # want of memory, which torch tells by a RuntimeError and the system by an OSError, nothing is to be found there.
    for kind in (KothaError, RequestValidationError, HTTPException, MemoryError, RuntimeError, OSError, Exception):
        app.add_exception_handler(kind, handle)
