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
from kotha.server.batching import QueueFullError
from kotha.server.indexes import NoSuchIndexError
from kotha.server.jobs.errors import FilesFullError, JobConflictError, NoSuchJobError
from kotha.server.model_registry import ModelInUseError, NoSuchModelError
from kotha.server.serial_executor import ClientLeftError, TooLongError
from kotha.server.validation import in_words

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
        raise RefusedError(str(error), param=param) from error


def as_error(message: str, status: int, param: str | None = None, code: str | None = None) -> dict[str, Any]:
    """The body of an answer that refuses."""
    kind = _TYPES.get(status, "invalid_request_error" if status < 500 else "server_error")
    return {"error": {"message": message, "type": kind, "param": param, "code": code}}


def answer(error: Exception) -> tuple[int, dict[str, Any], dict[str, str]]:
    """Status, body and headers for an error; what nobody foresaw is logged whole and told in one sentence."""
    if isinstance(error, RefusedError):
        return error.status, as_error(str(error), error.status, error.param, error.code), {}
    if isinstance(error, NoSuchModelError):
        return 404, as_error(str(error), 404, "model", "model_not_found"), {}
    if isinstance(error, NoSuchJobError | NoSuchIndexError):
        return 404, as_error(str(error), 404), {}
    if isinstance(error, JobConflictError | ModelInUseError | FilesFullError):
        status = 413 if isinstance(error, FilesFullError) else 409
        return status, as_error(str(error), status), {}
    if isinstance(error, TooLongError | ClientLeftError):
        status = 504 if isinstance(error, TooLongError) else 499
        return status, as_error(str(error), status), {}
    if isinstance(error, QueueFullError):
        status = 429 if error.of_one else 503
        return status, as_error(str(error), status, code="queue_full"), _RETRY_AFTER
    if isinstance(error, UsageError | TokenizerError):  # a text that no tokenizer reads is the client's too
        return 400, as_error(str(error), 400), {}
    if isinstance(error, RequestValidationError):
        message, param = _first_fault(error.errors()[0])
        return 400, as_error(message, 400, param), {}
    if isinstance(error, HTTPException):
        status, headers = error.status_code, dict(error.headers or {})
        told = str(error.detail)
        if status == 404:
            told = "there is nothing at this address; OpenAI's are under /v1, ours under /api, all are in /openapi.json"
        elif status == 405:
            told = f"this address is asked by {headers.get('Allow', 'another method')}"
        return status, as_error(told, status), headers
    if is_short_of_memory(error):
        _log.warning("there was not enough memory for a request")
        return 500, as_error("there is not enough memory for this", 500), {}
    if isinstance(error, KothaError):  # a damaged folder, broken weights
        return 500, as_error(str(error), 500), {}
    if isinstance(error, OSError) and error.errno in _OF_THE_DISK:  # where it was is for the log alone
        _log.error("%s: %s", error.filename or "a file of the server", error.strerror)
        return 500, as_error(f"the server's disk fails: {error.strerror}; its log says where", 500), {}
    _log.error("an unforeseen error", exc_info=error)
    return 500, as_error("something went wrong in the server; its log says what", 500), {}


def _first_fault(fault: dict[str, Any]) -> tuple[str, str | None]:
    """What pydantic found, in words that say what to do, and the parameter that is meant."""
    context = fault.get("ctx", {})
    if fault["type"] == "json_invalid":
        return f"the body is no JSON: {context.get('error')} at letter {fault['loc'][-1]}", None
    if fault["type"] in ("model_attributes_type", "dict_type") and len(fault["loc"]) == 1:
        return "the body must be a JSON object; send it with the header `content-type: application/json`", None
    where = ".".join(str(part) for part in fault["loc"] if part != "body") or None
    if "param" in context:
        return str(fault["msg"]), context["param"] or where
    message = in_words(fault)
    return (f"{where}: {message}" if where else message), where


def install(app: FastAPI) -> None:
    """Let every error of an app be answered so."""

    async def handle(_: Request, error: Exception) -> JSONResponse:
        status, body, headers = answer(error)
        return JSONResponse(body, status, headers)

    # Whatever comes under Exception alone is raised once more after the answer, for the log to show where it was. For
    # want of memory, which torch tells by a RuntimeError and the system by an OSError, nothing is to be found there.
    for kind in (KothaError, RequestValidationError, HTTPException, MemoryError, RuntimeError, OSError, Exception):
        app.add_exception_handler(kind, handle)
