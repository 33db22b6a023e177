"""Every answer is counted, as Prometheus reads it, and logged as a line: what was asked for by its address alone, never
what people wrote.
"""

import json
import logging
import time
from typing import Any

from fastapi.routing import APIRoute
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from kotha.server.batching import Batcher
from kotha.server.model_registry import ModelRegistry
from kotha.server.settings import LogKind

_SECONDS = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60)


class Metrics:
    """One server's counters."""

    def __init__(self) -> None:
        here = self._registry = CollectorRegistry()
        by_path: Any = {"labelnames": ["path"], "buckets": _SECONDS, "registry": here}
        by_model: Any = {"labelnames": ["model"], "registry": here}
        counted = "Requests answered, by address and status."
        self._requests = Counter("kotha_requests", counted, ["path", "status"], registry=here)
        self._first = Histogram("kotha_first_byte_seconds", "From a request to the first of its answer.", **by_path)
        self._seconds = Histogram("kotha_request_seconds", "From a request to the end of its answer.", **by_path)
        self._written = Counter("kotha_tokens_written", "Tokens written.", **by_model)
        self._reused = Counter("kotha_prompt_tokens_reused", "Prompt tokens taken over.", **by_model)
        self._waiting = Gauge("kotha_waiting", "Texts that wait for a row.", **by_model)
        self._at_work = Gauge("kotha_at_work", "Texts that are being written.", **by_model)
        self._seen: dict[str, tuple[Batcher, int, int]] = {}  # by model, with what was counted of it

    def note(self, path: str, status: int, first: float, whole: float) -> None:
        """Count an answered request; times are in seconds since it came."""
        self._requests.labels(path, str(status)).inc()
        self._first.labels(path).observe(first)
        self._seconds.labels(path).observe(whole)

    def look(self, registry: ModelRegistry) -> None:
        """Bring what models have written, and what waits for them, up to now."""
        here = {name: served.batcher for name, served in registry.opened.items() if served.batcher is not None}
        for name, (batcher, *_) in list(self._seen.items()):
            if here.get(name) is not batcher:  # put away since; what it wrote last is still to be counted
                self._count(name, batcher)
                del self._seen[name]
        for name, batcher in here.items():
            self._count(name, batcher)

    def _count(self, name: str, batcher: Batcher) -> None:
        _, written, reused = self._seen.get(name, (batcher, 0, 0))
        self._seen[name] = batcher, batcher.tokens_written, batcher.engine.prompts.tokens_reused
        self._written.labels(name).inc(self._seen[name][1] - written)
        self._reused.labels(name).inc(self._seen[name][2] - reused)
        self._waiting.labels(name).set(batcher.n_waiting)
        self._at_work.labels(name).set(batcher.n_at_work)

    def text(self, registry: ModelRegistry) -> bytes:
        """All of it, in Prometheus' words."""
        self.look(registry)
        return generate_latest(self._registry)


FIELDS = "fields"  # of a record that has more to tell than a sentence
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


def log_requests(log_as: LogKind) -> None:
    """Let a line for each request go to stderr."""
    if log_as == "none":
        return
    handler = logging.StreamHandler()
    handler.setFormatter(JsonLines() if log_as == "json" else logging.Formatter("%(asctime)s %(message)s"))
    logging.basicConfig(level=logging.INFO, handlers=[handler])


class JsonLines(logging.Formatter):
    """A JSON object a line, whoever writes: a request's fields, or level, logger and message; errors with all of it."""

    def format(self, record: logging.LogRecord) -> str:
        """One record."""
        plain = {"level": record.levelname.lower(), "logger": record.name, "message": record.getMessage()}
        line = {"time": round(record.created, 3), **getattr(record, FIELDS, plain)}
        if record.exc_info:
            line["error"] = self.formatException(record.exc_info)
        return json.dumps(line)
