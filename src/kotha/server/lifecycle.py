"""Run the server: listen, report the address, and finish open requests at shutdown."""

import asyncio
import errno
import socket
from collections.abc import Callable, Sequence
from functools import partial

import uvicorn
from fastapi import FastAPI

from kotha.errors import KothaError
from kotha.i18n.message import Message, Option
from kotha.server.app import guarded, make_app
from kotha.server.connections import HttpConnection, drop_idle, make_room
from kotha.server.settings import Limits, ServeSettings
from kotha.server.state import State

# Number of connections queued by the system, and how long open requests may continue after a stop signal.
_BACKLOG, _GRACE_SECONDS = 512, 30
# Part of a response that the system holds for a client that does not read; its default is megabytes.
_UNREAD_BYTES = 128 << 10
# Pause before accepting connections again when no file descriptors are free.
_FULL_SECONDS = 0.2


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
    HttpServer(server_config(app), settings.limits, app.state.kotha.close).run(sockets=[listening])


class HttpServer(uvicorn.Server):
    """uvicorn's server with limits on the number of connections and on how long one may stay idle."""

    def __init__(self, config: uvicorn.Config, limits: Limits, on_shutdown: Callable[[], None] = lambda: None) -> None:
        super().__init__(config)
        self._limits, self._on_shutdown = limits, on_shutdown
        self._tasks: list[asyncio.Task[None]] = []

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start accepting connections."""
        await super().startup(sockets=[])
        self._tasks = [asyncio.create_task(self._accept(each)) for each in sockets or []]
        self._tasks.append(asyncio.create_task(self._drop_idle()))

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Stop accepting connections, and finish open requests."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._on_shutdown()
        await super().shutdown(sockets)

    async def _accept(self, listening: socket.socket) -> None:
        loop, protocol = asyncio.get_running_loop(), self.config.http_protocol_class
        listening.setblocking(False)
        options = {"config": self.config, "server_state": self.server_state, "app_state": self.lifespan.state}
        while True:
            try:
                connection, address = await loop.sock_accept(listening)
            except OSError:  # the client left, or no file descriptors are free
                await asyncio.sleep(_FULL_SECONDS)
                continue
            if make_room(self._connections, address[0], self._limits):
                await loop.connect_accepted_socket(partial(protocol, **options), connection)
            else:
                connection.close()

    async def _drop_idle(self) -> None:
        """Drop idle connections; uvicorn's keep-alive limit applies only after a connection's first request."""
        while True:
            await asyncio.sleep(min(1.0, self._limits.body_seconds / 4))
            drop_idle(self._connections, asyncio.get_running_loop().time(), self._limits)

    @property
    def _connections(self) -> list[HttpConnection]:
        return [each for each in self.server_state.connections if isinstance(each, HttpConnection)]


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
        listening = socket.create_server(address[:2], family=family, backlog=_BACKLOG)
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _UNREAD_BYTES)
        return listening
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
