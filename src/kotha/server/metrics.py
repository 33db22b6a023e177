"""Prometheus metrics, and one log line per request.

Metrics and log lines contain routes and status codes, but never user input.
"""

import logging
import time

from fastapi.routing import APIRoute
from prometheus_client import Counter, Gauge, Histogram
from starlette.types import ASGIApp, Message, Receive, Scope, Send

_SECONDS = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60)
REQUESTS = Counter("kotha_requests", "Completed requests, by route and status.", ["path", "status"])
FIRST_BYTE = Histogram("kotha_first_byte_seconds", "Time to the first response byte.", ["path"], buckets=_SECONDS)
DURATION = Histogram("kotha_request_seconds", "Time to the end of the response.", ["path"], buckets=_SECONDS)
TOKENS = Counter("kotha_tokens_written", "Tokens generated.", ["model"])
WAITING = Gauge("kotha_waiting", "Texts waiting for a row in the batch.", ["model"])
AT_WORK = Gauge("kotha_at_work", "Texts being generated.", ["model"])

_log = logging.getLogger("kotha.serve")


class RequestWatch:
    """Middleware that counts and times requests; it runs behind the guard, so rejected requests are not counted."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Process a request.

        The request is counted before the last part of its response is sent, so that a client that has received the
        complete response finds its request counted.
        """
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        began, first, status, noted = time.perf_counter(), 0.0, 499, False  # 499: client disconnected

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
                total = time.perf_counter() - began
                self._note(scope, status, first or total, total)

    def _note(self, scope: Scope, status: int, first: float, total: float) -> None:
        route = scope.get("route")
        path = route.path if isinstance(route, APIRoute) else "other"  # keeps the number of labels bounded
        REQUESTS.labels(path, str(status)).inc()
        FIRST_BYTE.labels(path).observe(first)
        DURATION.labels(path).observe(total)
        _log.info("%s %s %s in %.3f s", scope["method"], path, status, total)
