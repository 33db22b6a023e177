"""Connections: since when each waits for its client, and which are closed when there are too many.

A client that neither reads nor sends costs a connection, and the part of a response that it has not read. uvicorn
limits neither, so the server closes connections that have waited too long, and, at a limit, the one that has waited
longest. Clients that read and send are not affected.
"""

import asyncio
from collections.abc import Collection, Iterable

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

from kotha.server.errors import RefusedError
from kotha.server.security import refusal
from kotha.server.settings import Limits

# Bytes parsed at a time, so that no connection delays the others; and from how many on their share of body is checked.
_READ_BYTES, _CHECKED_BYTES = 16 << 10, 1 << 10
_LEAST_BODY = 0.75  # of the bytes read; each chunk adds at least five

_INVALID_HTTP = RefusedError("invalid HTTP request: its first line or a header is malformed or too long")
_SMALL_CHUNKS = RefusedError("the body arrives in chunks of a few bytes; send larger chunks")


class HttpConnection(H11Protocol):
    """uvicorn's h11 protocol, with Kotha's responses to invalid HTTP, which does not reach the guard."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin to wait for a request."""
        super().connection_made(transport)
        self._quiet_since = self.loop.time()
        self._unread_since: float | None = None
        transport.max_size = _READ_BYTES  # type: ignore[attr-defined]

    def data_received(self, data: bytes) -> None:
        """Parse what the client sent; reject a body in tiny chunks, which take much longer to parse than to send."""
        cycle, known = self.cycle, 0 if self.cycle is None else len(self.cycle.body)
        super().data_received(data)
        if self.cycle is not cycle:
            self._quiet_since = self.loop.time()
        elif self.is_sending and len(data) >= _CHECKED_BYTES and len(cycle.body) - known < _LEAST_BODY * len(data):
            if cycle.response_started:
                self.transport.abort()
            else:
                self._reject(_SMALL_CHUNKS)

    def send_400_response(self, msg: str) -> None:
        """Return 400 and close the connection, because the start of the next request cannot be found."""
        self._reject(_INVALID_HTTP)

    def _reject(self, error: RefusedError) -> None:
        headers, body = refusal(error, (b"connection", b"close"))
        for event in (h11.Response(status_code=400, headers=headers), h11.Data(data=body), h11.EndOfMessage()):
            self.transport.write(self.conn.send(event) or b"")
        self.transport.close()

    def on_response_complete(self) -> None:
        """Begin to wait for the next request."""
        self._quiet_since = self.loop.time()
        super().on_response_complete()

    def pause_writing(self) -> None:
        """Begin to wait until the client reads."""
        self._unread_since = self.loop.time()
        super().pause_writing()

    def resume_writing(self) -> None:
        """Continue, because the client has read."""
        self._unread_since = None
        super().resume_writing()

    @property
    def peer(self) -> str:
        """The client's IP address."""
        return self.client[0] if self.client else ""

    @property
    def is_sending(self) -> bool:
        """Whether a request's body is incomplete; the guard limits the time for it."""
        return self.cycle is not None and self.cycle.more_body and not self.cycle.response_complete

    @property
    def n_unread(self) -> int:
        """The number of bytes that the client has not read, apart from those that the system holds."""
        return self.transport.get_write_buffer_size()

    @property
    def waiting_since(self) -> float | None:
        """Since when the connection waits for its client; None while a request is processed."""
        if self._unread_since is not None:
            return self._unread_since
        is_idle = self.cycle is None or self.cycle.response_complete
        return self._quiet_since if is_idle or self.is_sending else None

    def drop(self) -> None:
        """Close the connection without waiting for its client to read."""
        if self.n_unread:
            self.transport.abort()
        else:
            self.transport.close()


def drop_idle(connections: Iterable[HttpConnection], now: float, limits: Limits) -> None:
    """Drop connections whose clients have not read or sent for too long; and those that owe most, at a limit."""
    waiting = [each for each in connections if each.waiting_since is not None]
    for connection in waiting:
        if not connection.is_sending and now - (connection.waiting_since or now) > limits.body_seconds:
            connection.drop()
    unread = sorted((each for each in waiting if each.n_unread), key=lambda each: each.waiting_since or now)
    excess = sum(each.n_unread for each in unread) - limits.unread_bytes
    for connection in unread:
        if excess > 0:
            excess -= connection.n_unread
            connection.drop()


def make_room(connections: Collection[HttpConnection], peer: str, limits: Limits) -> bool:
    """Return whether a client may open a connection; if there are too many, drop those that have waited longest.

    A client with too many connections loses its own. Several are dropped at once, since finding them takes time.
    """
    if len(connections) < min(limits.connections, limits.connections_for_one):
        return True
    own = [each for each in connections if each.peer == peer]
    for some, most in ((own, limits.connections_for_one), (connections, limits.connections)):
        if len(some) >= most:
            waiting = [each for each in some if each.waiting_since is not None]
            waiting.sort(key=lambda each: (not each.n_unread, each.waiting_since))
            for connection in waiting[: most // 16 + 1]:
                connection.drop()
            return bool(waiting)
    return True
