"""Every answer is counted, and logged as a line: what was asked for by its address alone, never what people wrote."""

import logging
import time
from typing import Any

from fastapi.routing import APIRoute
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from kotha.server.logs import FIELDS
from kotha.server.metrics import Metrics
from kotha.server.model_registry import ModelRegistry

_log = logging.getLogger("kotha.serve")


class RequestWatch:
    """Around the app, inside the doorkeeper: who was refused at the door is not counted by address."""

    def __init__(self, app: ASGIApp, metrics: Metrics, registry: ModelRegistry, log_as: str) -> None:
        self._app, self._metrics, self._shelf, self._log_as = app, metrics, registry, log_as

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
        self._metrics.note(path, status, first, whole)
        self._metrics.look(self._shelf)
        line: dict[str, Any] = {"method": scope["method"], "path": path, "status": status, "seconds": round(whole, 4)}
        if self._log_as != "none":
            told = f"{line['method']} {line['path']} {line['status']} in {line['seconds']:.3f} s"
            _log.info("%s", told, extra={FIELDS: line})
