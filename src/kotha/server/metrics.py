"""Every answer is counted, as Prometheus reads it, and logged as a line: what was asked for by its address alone, never
what people wrote.
"""

import logging
import time

from fastapi.routing import APIRoute
from prometheus_client import Counter, Gauge, Histogram
from starlette.types import ASGIApp, Message, Receive, Scope, Send

_SECONDS = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60)
REQUESTS = Counter("kotha_requests", "Requests answered, by address and status.", ["path", "status"])
FIRST_BYTE = Histogram(
    "kotha_first_byte_seconds", "From a request to the first of its answer.", ["path"], buckets=_SECONDS
)
DURATION = Histogram("kotha_request_seconds", "From a request to the end of its answer.", ["path"], buckets=_SECONDS)
TOKENS = Counter("kotha_tokens_written", "Tokens written.", ["model"])
WAITING = Gauge("kotha_waiting", "Texts that wait for a row.", ["model"])
AT_WORK = Gauge("kotha_at_work", "Texts that are being written.", ["model"])

_log = logging.getLogger("kotha.serve")


class RequestWatch:
    """Around the app, inside the doorkeeper: who was refused at the door is not counted by address."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let a request pass, and note how it went before its last part leaves: who has an answer finds it counted."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        began, first, status, noted = time.perf_counter(), 0.0, 499, False  # no answer begins: its client has left

        async def watched(message: Message) -> None:
            nonlocal first, status, noted
            if message["type"] == "http.response.start":
                status = message["status"]
            elif message["type"] == "http.response.body":
                first = first or time.perf_counter() - began
                if not message.get("more_body") and not noted:
                    noted = True
                    self._note(scope, status, first, time.perf_counter() - began)
            await send(message)

        try:
            await self._app(scope, receive, watched)
        finally:
            if not noted:
                whole = time.perf_counter() - began
                self._note(scope, status, first or whole, whole)

    def _note(self, scope: Scope, status: int, first: float, whole: float) -> None:
        route = scope.get("route")
        path = route.path if isinstance(route, APIRoute) else "other"  # bounded, whatever is asked for
        REQUESTS.labels(path, str(status)).inc()
        FIRST_BYTE.labels(path).observe(first)
        DURATION.labels(path).observe(whole)
        _log.info("%s %s %s in %.3f s", scope["method"], path, status, whole)
