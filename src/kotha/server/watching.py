"""Every answer is counted, as Prometheus reads it, and logged as a line: what was asked for by its address alone, never
what people wrote.
"""

import json
import logging
import time
from collections.abc import Iterator
from typing import Any

from fastapi.routing import APIRoute
from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from kotha.server.model_registry import ModelRegistry
from kotha.server.settings import LogKind

# As the registry of models counts them.
_OF_MODELS = (
    (CounterMetricFamily, "kotha_tokens_written", "Tokens written."),
    (CounterMetricFamily, "kotha_prompt_tokens_reused", "Prompt tokens taken over."),
    (GaugeMetricFamily, "kotha_waiting", "Texts that wait for a row."),
    (GaugeMetricFamily, "kotha_at_work", "Texts that are being written."),
)
_SECONDS = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60)


class Metrics(Collector):
    """One server's counters; what models write is counted by themselves."""

    def __init__(self, registry: ModelRegistry) -> None:
        self._models, self._registry = registry, CollectorRegistry()
        by_path: Any = {"labelnames": ["path"], "buckets": _SECONDS, "registry": self._registry}
        counted = "Requests answered, by address and status."
        self._requests = Counter("kotha_requests", counted, ["path", "status"], registry=self._registry)
        self._first = Histogram("kotha_first_byte_seconds", "From a request to the first of its answer.", **by_path)
        self._seconds = Histogram("kotha_request_seconds", "From a request to the end of its answer.", **by_path)
        self._registry.register(self)

    def note(self, path: str, status: int, first: float, whole: float) -> None:
        """Count an answered request; times are in seconds since it came."""
        self._requests.labels(path, str(status)).inc()
        self._first.labels(path).observe(first)
        self._seconds.labels(path).observe(whole)

    def collect(self) -> Iterator[Metric]:
        """What models have written, and what waits for them, as it stands."""
        figures = self._models.figures()
        for place, (kind, name, about) in enumerate(_OF_MODELS):
            found = kind(name, about, labels=["model"])
            for model, told in figures.items():
                found.add_metric([model], told[place])
            yield found

    def text(self) -> bytes:
        """All of it, in Prometheus' words."""
        return generate_latest(self._registry)


FIELDS = "fields"  # of a record that has more to tell than a sentence
_log = logging.getLogger("kotha.serve")


class RequestWatch:
    """Around the app, inside the doorkeeper: who was refused at the door is not counted by address."""

    def __init__(self, app: ASGIApp, metrics: Metrics, log_as: str) -> None:
        self._app, self._metrics, self._log_as = app, metrics, log_as

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
