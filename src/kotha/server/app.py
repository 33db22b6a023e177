"""The FastAPI app: the model registry, the OpenAI-compatible routes, Kotha's own routes, and the security guard."""

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

from fastapi import FastAPI, Request, Response
from prometheus_client import CONTENT_TYPE_LATEST, generate_latest
from starlette.types import ASGIApp

import kotha
from kotha.server import errors, static_pages
from kotha.server.api import exercise, inside, judging, numbers, plan, predict, runs, text, uploaded_tables
from kotha.server.jobs import routes as job_routes
from kotha.server.jobs.store import JobStore
from kotha.server.metrics import AT_WORK, WAITING, RequestWatch
from kotha.server.model_registry import ModelRegistry
from kotha.server.openai import routes
from kotha.server.security import Guard
from kotha.server.settings import ServeSettings
from kotha.server.state import Indexes, State, state_of
from kotha.storage import bundled

_FIELDS = Path(__file__).with_name("fields.json")
# Kotha's own routes, in the order of the OpenAPI document.
_OWN_ROUTES = (text, inside, exercise, numbers, predict, runs, plan, judging, uploaded_tables)
# At shutdown, uvicorn has already waited for open requests; this time is for the last steps of the batches.
_DRAIN_SECONDS = 5.0


class _App(FastAPI):
    """A FastAPI app with field descriptions from ``fields.json``, either for one schema or for all (``*``).

    Schemas listed under ``complete`` are dataclasses with defaults, whose fields are all required in a response.
    """

    def openapi(self) -> dict[str, Any]:
        """Return the OpenAPI document for all routes."""
        document = super().openapi()
        descriptions = json.loads(_FIELDS.read_text(encoding="utf-8"))
        for name, schema in document["components"]["schemas"].items():
            known = descriptions["*"] | descriptions.get(name, {})
            for field, about in schema.get("properties", {}).items():
                about["description"] = known.get(field, "")
            if name in descriptions["complete"]:
                schema["required"] = list(schema["properties"])
        return document


def make_app(
    models: Sequence[str] = (bundled.NAME,),
    settings: ServeSettings | None = None,
    device: str = "auto",
) -> FastAPI:
    """Return an app that serves these models; wrap it in ``guarded`` before serving it."""
    settings = settings or ServeSettings()
    jobs = None if settings.jobs is None else JobStore(settings.jobs, limits=settings.limits)
    registry = ModelRegistry(models, settings.limits, device, settings.weights, jobs)

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        preload = asyncio.create_task(_open_first(registry)) if settings.preload else None
        yield
        if preload is not None:
            preload.cancel()
        # Runs in a thread, because streams need the event loop to release their models.
        await asyncio.to_thread(registry.close, _DRAIN_SECONDS)

    app = _App(
        title="Kotha",
        version=kotha.__version__,
        summary="Small language models, Bangla first.",
        lifespan=lifespan,
        docs_url=None,  # FastAPI's page loads scripts from another host
        redoc_url=None,
        responses=errors.RESPONSES,
    )
    app.state.kotha = State(settings, registry, jobs, Indexes(settings.indexes, jobs))
    errors.install(app)
    for module in (static_pages, routes, *_OWN_ROUTES, job_routes):
        app.include_router(module.router)
    if settings.book is not None:
        app.mount("/book", static_pages.Book(settings.book))
    _add_running(app)
    return app


async def _open_first(registry: ModelRegistry) -> None:
    """Open the first model before the first request.

    Errors are reported later, by the request that needs the model.
    """
    for name in list(registry.model_paths)[:1]:
        with suppress(Exception):
            async with registry.use(name):
                pass


def _add_running(app: FastAPI) -> None:
    """Add the routes for monitoring."""

    @app.get("/health", tags=["Running"])
    async def health() -> dict[str, str]:
        """Return ok as soon as the server is up; no key is required."""
        return {"status": "ok"}

    @app.get("/ready", tags=["Running"])
    async def ready(request: Request) -> dict[str, str]:
        """Return the name of a loaded model; load the first model if none is loaded."""
        registry = state_of(request).registry
        async with registry.use(next(iter(registry.opened or registry.model_paths))) as served:
            return {"status": "ready", "model": served.name}

    @app.get("/metrics", tags=["Running"], response_class=Response)
    async def metrics(request: Request) -> Response:
        """Return metrics in the Prometheus text format."""
        for gauge in (WAITING, AT_WORK):
            gauge.clear()
        for name, served in state_of(request).registry.opened.items():
            if served.batcher is not None:
                WAITING.labels(name).set(served.batcher.n_waiting)
                AT_WORK.labels(name).set(served.batcher.n_at_work)
        return Response(generate_latest(), media_type=CONTENT_TYPE_LATEST)


def guarded(app: FastAPI) -> ASGIApp:
    """Return the app wrapped in the guard, which checks every request first."""
    state: State = app.state.kotha
    return Guard(RequestWatch(app), state.settings)
