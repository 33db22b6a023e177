"""How the server fares, as Prometheus reads it: requests, tokens, what waits, how long the first letter takes."""

from typing import Any

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

from kotha.server.batching import Batcher
from kotha.server.model_registry import ModelRegistry

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
