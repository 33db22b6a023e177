"""Run the server: listen, report the address, and finish open requests at shutdown."""

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

# Number of connections queued by the system, and how long open requests may continue after a stop signal.
_BACKLOG, _GRACE_SECONDS = 512, 30
# Pause before accepting connections again when there are too many, or no file descriptors.
_FULL_SECONDS = 0.2

_INVALID_HTTP = RefusedError("invalid HTTP request: its first line or a header is malformed or too long")


def run(
    models: Sequence[str],
    settings: ServeSettings,
    device: str,
    on_ready: Callable[[str], None],
) -> None:
    """Serve until a stop signal, then finish the texts in progress; ``on_ready`` is called with the address."""
    app = make_app(models, settings, device)
    listening = listen(settings.host, settings.port, *settings.other_ports)
    address, at = listening.getsockname()[:2]
    on_ready(f"http://[{address}]:{at}" if ":" in address else f"http://{address}:{at}")
    HttpServer(server_config(app), settings.limits).run(sockets=[listening])


class HttpConnection(H11Protocol):
    """uvicorn's h11 protocol, with Kotha's error body and headers for invalid HTTP, which does not reach the guard."""

    def send_400_response(self, msg: str) -> None:
        """Return 400 and close the connection, because the start of the next request cannot be found."""
        headers, body = refusal(_INVALID_HTTP, (b"connection", b"close"))
        for event in (h11.Response(status_code=400, headers=headers), h11.Data(data=body), h11.EndOfMessage()):
            self.transport.write(self.conn.send(event) or b"")
        self.transport.close()


class HttpServer(uvicorn.Server):
    """uvicorn's server with limits on the number of connections and on how long one may stay idle."""

    def __init__(self, config: uvicorn.Config, limits: Limits) -> None:
        super().__init__(config)
        self._limits = limits
        self._tasks: list[asyncio.Task[None]] = []

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start accepting connections."""
        await super().startup(sockets=[])
        self._tasks = [asyncio.create_task(self._accept(each)) for each in sockets or []]
        self._tasks.append(asyncio.create_task(self._close_idle()))

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Stop accepting connections, and finish open requests."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await super().shutdown(sockets)

    async def _accept(self, listening: socket.socket) -> None:
        loop, protocol = asyncio.get_running_loop(), self.config.http_protocol_class
        listening.setblocking(False)
        options = {"config": self.config, "server_state": self.server_state, "app_state": self.lifespan.state}
        while True:
            if len(self.server_state.connections) >= self._limits.connections:
                await asyncio.sleep(_FULL_SECONDS)
                continue
            try:
                connection, _ = await loop.sock_accept(listening)
            except OSError:  # the client left, or no file descriptors are free
                await asyncio.sleep(_FULL_SECONDS)
                continue
            await loop.connect_accepted_socket(partial(protocol, **options), connection)

    async def _close_idle(self) -> None:
        """Close idle connections; uvicorn's keep-alive limit applies only after a connection's first request."""
        idle: dict[Any, tuple[Any, float]] = {}  # by connection: its last request, and since when it is idle
        while True:
            await asyncio.sleep(min(1.0, self._limits.body_seconds / 4))
            now, previous = asyncio.get_running_loop().time(), idle
            idle = {}
            for connection in list(self.server_state.connections):
                last = getattr(connection, "cycle", None)
                if last is not None and not last.response_complete:
                    continue
                before, since = previous.get(connection, (last, now))
                idle[connection] = (last, since if before is last else now)
                if now - idle[connection][1] > self._limits.body_seconds:
                    connection.transport.close()


def server_config(app: FastAPI) -> uvicorn.Config:
    """Return uvicorn's config for an app, with its messages sent to Kotha's log."""
    state: State = app.state.kotha
    return uvicorn.Config(
        guarded(app),
        lifespan="on",
        http=HttpConnection,
        log_config=uvicorn.config.LOGGING_CONFIG if not state.settings.log else None,
        log_level="warning",
        access_log=False,  # paths may contain user input
        server_header=False,
        backlog=_BACKLOG,
        timeout_keep_alive=30,
        timeout_graceful_shutdown=_GRACE_SECONDS,
        h11_max_incomplete_event_size=64 << 10,
        ws="none",
        proxy_headers=False,  # any client could set them; clients behind one address share a queue
    )


def listen(host: str, port: int, *others: int) -> socket.socket:
    """Return a socket that listens on the first free port; called before models are loaded."""
    try:
        family, *_, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        return socket.create_server(address[:2], family=family, backlog=_BACKLOG)
    except OSError as error:
        if error.errno == errno.EADDRINUSE and others:
            return listen(host, *others)
        taken = Message(
            "another server may be using it; try {next}, or {any} for any free port",
            next=Option("port", port % 65_535 + 1),
            any=Option("port", 0),
        )
        advice = taken if error.errno == errno.EADDRINUSE else Message("try another host or port")
        raise KothaError(
            "cannot listen on {host}:{port}: {why}; {advice}", host=host, port=port, why=error.strerror, advice=advice
        ) from error
