"""A server from its start to its end: it listens, says where, and drains when it is told to stop."""

import asyncio
import errno
import socket
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import h11
import uvicorn
from fastapi import FastAPI
from uvicorn.protocols.http.h11_impl import H11Protocol

from kotha.errors import KothaError
from kotha.i18n.message import Message, Option
from kotha.server.app import guarded, make_app
from kotha.server.errors import RefusedError
from kotha.server.security import refusal
from kotha.server.settings import Limits, ServeSettings
from kotha.server.state import State

# Connections that the system holds for us, and how long answers may go on after a stop.
_BACKLOG, _GRACE_SECONDS = 512, 30
# How long nobody is let in when there are too many, or no descriptors.
_FULL_SECONDS = 0.2

_NO_HTTP = RefusedError("invalid HTTP request: its first line or a header is malformed or too long")


def run(
    models: Sequence[str],
    settings: ServeSettings,
    device: str,
    on_ready: Callable[[str], None],
) -> None:
    """Serve until a signal, once ``on_ready`` was told where; what is being written then is finished first."""
    app = make_app(models, settings, device)
    listening = listen(settings.host, settings.port)
    address, at = listening.getsockname()[:2]
    on_ready(f"http://[{address}]:{at}" if ":" in address else f"http://{address}:{at}")
    HttpServer(server_config(app), settings.limits).run(sockets=[listening])


class HttpConnection(H11Protocol):
    """HTTP on one connection: uvicorn's, by h11, with our words for what is no HTTP at all.

    The doorkeeper never sees such a request, so what it does for all others is done here.
    """

    def send_400_response(self, msg: str) -> None:
        """Refuse what cannot be read, and hang up: nobody knows where a next request would begin."""
        headers, body = refusal(_NO_HTTP, (b"connection", b"close"))
        for event in (h11.Response(status_code=400, headers=headers), h11.Data(data=body), h11.EndOfMessage()):
            self.transport.write(self.conn.send(event) or b"")
        self.transport.close()


class HttpServer(uvicorn.Server):
    """uvicorn's server with a limit on open connections, and on how long one may stay without a request."""

    def __init__(self, config: uvicorn.Config, limits: Limits) -> None:
        super().__init__(config)
        self._limits = limits
        self._tasks: list[asyncio.Task[None]] = []

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Begin to take connections."""
        await super().startup(sockets=[])
        self._tasks = [asyncio.create_task(self._take(each)) for each in sockets or []]
        self._tasks.append(asyncio.create_task(self._hang_up()))

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Take no more, and let what is there finish."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await super().shutdown(sockets)

    async def _take(self, listening: socket.socket) -> None:
        loop, speaks = asyncio.get_running_loop(), self.config.http_protocol_class
        listening.setblocking(False)
        how = {"config": self.config, "server_state": self.server_state, "app_state": self.lifespan.state}
        while True:
            if len(self.server_state.connections) >= self._limits.connections:
                await asyncio.sleep(_FULL_SECONDS)
                continue
            try:
                connection, _ = await loop.sock_accept(listening)
            except OSError:  # who waited has left, or no descriptors are left: some must be closed first
                await asyncio.sleep(_FULL_SECONDS)
                continue
            await loop.connect_accepted_socket(partial(speaks, **how), connection)

    async def _hang_up(self) -> None:
        """Close connections on which no request begins; uvicorn bounds only those that have had one."""
        idle: dict[Any, tuple[Any, float]] = {}  # the last request of each, and since when there was no other
        while True:
            await asyncio.sleep(min(1.0, self._limits.body_seconds / 4))
            now, seen = asyncio.get_running_loop().time(), idle
            idle = {}
            for connection in list(self.server_state.connections):
                last = getattr(connection, "cycle", None)
                if last is not None and not last.response_complete:
                    continue
                before, since = seen.get(connection, (last, now))
                idle[connection] = (last, since if before is last else now)
                if now - idle[connection][1] > self._limits.body_seconds:
                    connection.transport.close()


def server_config(app: FastAPI) -> uvicorn.Config:
    """How uvicorn runs an app; what it has to say goes into our log, where there is one."""
    state: State = app.state.kotha
    return uvicorn.Config(
        guarded(app),
        lifespan="on",
        http=HttpConnection,
        log_config=uvicorn.config.LOGGING_CONFIG if not state.settings.log else None,
        log_level="warning",
        access_log=False,  # addresses may hold what people ask
        server_header=False,
        backlog=_BACKLOG,
        timeout_keep_alive=30,
        timeout_graceful_shutdown=_GRACE_SECONDS,
        h11_max_incomplete_event_size=64 << 10,
        ws="none",
        proxy_headers=False,  # anyone may write them; who shares an address shares a queue
    )


def listen(host: str, port: int) -> socket.socket:
    """A socket at an address, before anything heavy is loaded for it; from now on the port is taken."""
    try:
        family, *_, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        return socket.create_server(address[:2], family=family, backlog=_BACKLOG)
    except OSError as error:
        taken = Message(
            "another server may be using it; try {next}, or {any} for any free port",
            next=Option("port", port % 65_535 + 1),
            any=Option("port", 0),
        )
        advice = taken if error.errno == errno.EADDRINUSE else Message("try another host or port")
        raise KothaError(
            "cannot listen on {host}:{port}: {why}; {advice}", host=host, port=port, why=error.strerror, advice=advice
        ) from error
