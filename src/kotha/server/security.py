"""Access control: every request is checked here before any other code processes it.

Listening only on loopback is not enough, because pages from other sites in the user's browser can reach the server too.
The ``Host`` header must therefore name this server (against DNS rebinding), and a browser's request must come from the
server's own pages. If an API key is set, every path requires it except ``/health``, the book and the studio's files;
these contain no user data, and the studio asks for the key itself. Limits on size and time apply to bodies before they
are read. Every response has headers, including a content security policy (CSP), that prevent browsers from framing it
or sharing it with other sites.
"""

import asyncio
import hmac
import ipaddress
import json
from contextlib import suppress
from typing import Any
from urllib.parse import urlsplit

from starlette.types import ASGIApp, Receive, Scope, Send
from starlette.types import Message as AsgiMessage

from kotha.report.built import pages
from kotha.server.errors import RefusedError, as_error, start_with
from kotha.server.settings import LOOPBACK, ServeSettings

OPEN_PATHS = ("/health",)
FILES_PATH = "/api/files"  # uploads may be larger than other requests
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; font-src 'self'; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "content-security-policy": POLICY,
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=(), payment=(), usb=()",
}
# Values of sec-fetch-site for requests from pages on another site.
_FOREIGN = ("cross-site", "same-site")
_CLOSE = (b"connection", b"close")


_PART_BYTES = 64 << 10  # of a response that are sent at a time, so that clients that do not read cost little memory
_MOST_NESTED = 120_000  # lists and objects in a request, which take longer to parse than anything else of their size
_MOST_DIGITS = 18  # of a length in bytes
_LINGER_SECONDS, _LINGER_BYTES = 5.0, 64 << 20  # for reading the rest of a request that is too large


class Guard:
    """ASGI middleware that wraps the whole app and checks every request."""

    def __init__(self, app: ASGIApp, settings: ServeSettings) -> None:
        self._app, self._settings = app, settings

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request to the app, or reject it."""
        if scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": 1008})
        elif scope["type"] != "http":
            await self._app(scope, receive, send)
        else:
            await self._admit(scope, receive, send)

    async def _admit(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in scope["headers"]}
        has_body = headers.get("content-length", "0") != "0" or "transfer-encoding" in headers
        body: bytes | None = None
        try:
            self._check(scope, headers)
            async with asyncio.timeout(self._settings.limits.body_seconds):
                body = await _read_body(receive, self._most_bytes(scope))
            if body and scope["path"] != FILES_PATH and body.count(b"[") + body.count(b"{") > _MOST_NESTED:
                raise RefusedError("the request has more than {n:,} lists and objects; send fewer", n=_MOST_NESTED)
        except RefusedError as refused:
            await _refuse(send, receive, refused, has_body and body is None)
            return
        except TimeoutError:
            late = RefusedError("the request did not arrive in time; send it again", 408)
            await _refuse(send, receive, late, has_body=False)
            return
        if body is None:
            return  # the client has disconnected

        async def guarded(message: AsgiMessage) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = with_headers(message.get("headers", []))
            whole, start = message.get("body", b""), 0
            while len(whole) - start > _PART_BYTES:  # each part waits until the client reads
                part = whole[start : start + _PART_BYTES]
                await send({"type": "http.response.body", "body": part, "more_body": True})
                start += _PART_BYTES
            await send({**message, "body": whole[start:]} if start else message)

        await self._app(scope, _once(body, receive), guarded)

    def _check(self, scope: Scope, headers: dict[str, str]) -> None:
        """Raise RefusedError if a request's host, origin, key or length is not acceptable."""
        host, origin, key = headers.get("host", ""), headers.get("origin"), self._settings.key
        if not self._is_ours(host):
            advice = start_with("name")
            raise RefusedError(
                "the Host header does not name this server; use its own address, or {advice}", 403, advice=advice
            )
        if origin is not None and not self._is_our_page(origin, host):
            raise RefusedError("requests from pages of another origin are not allowed", 403)
        has_book = self._settings.book is not None
        is_page = scope["path"] in pages() or (has_book and scope["path"].startswith("/book/"))
        if headers.get("sec-fetch-site") in _FOREIGN and not is_page:  # other sites may link to the pages
            raise RefusedError("requests from pages of another site are not allowed", 403)
        if key is not None and scope["path"] not in OPEN_PATHS and not is_page:
            scheme, _, given = headers.get("authorization", "").partition(" ")
            if not hmac.compare_digest(given.strip().encode(), key.encode()) or scheme.lower() != "bearer":
                raise RefusedError("a key is required: send the header `Authorization: Bearer KEY`", 401)
        length = headers.get("content-length", "0")
        if not length.isdecimal() or len(length) > _MOST_DIGITS:
            raise RefusedError("the content-length header is not a number")
        if int(length) > self._most_bytes(scope):
            raise _too_large(self._most_bytes(scope))

    def _most_bytes(self, scope: Scope) -> int:
        limits = self._settings.limits
        return limits.file_bytes if scope["path"] == FILES_PATH else limits.body_bytes

    def _is_our_page(self, origin: str, host: str) -> bool:
        """Return whether an ``Origin`` header refers to this server: same name, port and scheme.

        The server uses plain HTTP; a proxy may have added TLS only for a name given as ``--name``. For other names, an
        ``https:`` origin belongs to a different server, even if the name and port are the same.
        """
        behind_proxy = _name_in(host) in {name.lower() for name in self._settings.names}
        schemes = ("http", "https") if behind_proxy else ("http",)
        return origin in {f"{scheme}://{host}" for scheme in schemes}

    def _is_ours(self, host: str) -> bool:
        """Return whether a ``Host`` header names this server."""
        name = _name_in(host)
        if name is None:
            return False
        if name in map(str.lower, (*LOOPBACK, self._settings.host, *self._settings.names)):
            return True
        if self._settings.is_loopback:
            return False
        try:  # it may listen on all addresses of the machine, so accept any IP address
            ipaddress.ip_address(name)
        except ValueError:
            return False
        return True


def _name_in(host: str) -> str | None:
    """Return the name in a ``Host`` header without its port, or None if it is invalid."""
    try:
        return urlsplit(f"//{host}").hostname if host and not set(host) & set("/@?#\\ ") else None
    except ValueError:  # unbalanced brackets
        return None


def _too_large(most: int) -> RefusedError:
    return RefusedError("the request is larger than {n:,} bytes; send less at a time", 413, n=most)


async def _read_body(receive: Receive, most: int) -> bytes | None:
    """Read a request's complete body; return None if the client disconnects."""
    body = bytearray()
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            return None
        body += message.get("body", b"")
        if len(body) > most:
            raise _too_large(most)
        if not message.get("more_body", False):
            return bytes(body)


def _once(body: bytes, receive: Receive) -> Receive:
    """Return a receive function that returns the body first, and then later messages."""
    waiting = [body]

    async def handed() -> AsgiMessage:
        if waiting:
            return {"type": "http.request", "body": waiting.pop(), "more_body": False}
        return await receive()

    return handed


def with_headers(headers: Any) -> list[tuple[bytes, bytes]]:
    """Return a response's headers with the security headers added."""
    given = list(headers)
    known = {name.lower() for name, _ in given}
    more = {**HEADERS, "cache-control": "no-store"}
    return given + [(name.encode(), value.encode()) for name, value in more.items() if name.encode() not in known]


def refusal(error: RefusedError, *more: tuple[bytes, bytes]) -> tuple[list[tuple[bytes, bytes]], bytes]:
    """Return the headers and body for an error response."""
    body = json.dumps(as_error(error, error.status)).encode()
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    return with_headers([*headers, *more]), body


async def _refuse(send: Send, receive: Receive, error: RefusedError, has_body: bool) -> None:
    # Close the connection if there is a body: unread bytes must not be parsed as the next request.
    more = [(b"www-authenticate", b"Bearer")] if error.status == 401 else []
    headers, body = refusal(error, *more, *([_CLOSE] if has_body or error.status == 408 else []))
    await send({"type": "http.response.start", "status": error.status, "headers": headers})
    await send({"type": "http.response.body", "body": body, "more_body": True})
    if has_body:
        await _drain(receive)
    await send({"type": "http.response.body", "body": b""})


async def _drain(receive: Receive) -> None:
    """Read and discard the rest of a request.

    Closing the connection while the client is still sending would reset it, and the client would not receive the
    response.
    """
    n_bytes = 0
    with suppress(TimeoutError):
        async with asyncio.timeout(_LINGER_SECONDS):
            while n_bytes < _LINGER_BYTES:
                message = await receive()
                n_bytes += len(message.get("body", b""))
                if message["type"] == "http.disconnect" or not message.get("more_body"):
                    return
