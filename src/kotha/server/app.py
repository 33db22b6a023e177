"""The app: the registry of models, OpenAI's addresses and ours, the doorkeeper around all of it."""

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
# Our own routes, in the order of the OpenAPI page.
_OURS = (text, inside, exercise, numbers, predict, runs, plan, judging, uploaded_tables)
# What is being written when the server stops was given its time; how long the last steps of it may take.
_DRAIN_SECONDS = 5.0


class _App(FastAPI):
    """FastAPI's app; what a field is for is told by a file beside it, by its schema's name or for all (``*``).

    A dataclass of the library may have defaults; as an answer it is ``complete``.
    """

    def openapi(self) -> dict[str, Any]:
        """The schema of every address."""
        told = super().openapi()
        descriptions = json.loads(_FIELDS.read_text(encoding="utf-8"))
        for name, schema in told["components"]["schemas"].items():
            known = descriptions["*"] | descriptions.get(name, {})
            for field, about in schema.get("properties", {}).items():
                about["description"] = known.get(field, "")
            if name in descriptions["complete"]:
                schema["required"] = list(schema["properties"])
        return told


def make_app(
    models: Sequence[str] = (bundled.NAME,),
    settings: ServeSettings | None = None,
    device: str = "auto",
) -> FastAPI:
    """An app that serves these models; ``guarded`` must stand around it."""
    settings = settings or ServeSettings()
    jobs = None if settings.jobs is None else JobStore(settings.jobs, limits=settings.limits)
    registry = ModelRegistry(models, settings.limits, device, settings.weights, jobs)

    @asynccontextmanager
    async def living(_: FastAPI) -> AsyncIterator[None]:
        ahead = asyncio.create_task(_open_ahead(registry)) if settings.opens_ahead else None
        yield
        if ahead is not None:
            ahead.cancel()
        await asyncio.to_thread(
            registry.close, _DRAIN_SECONDS
        )  # beside the loop, in which streams let go of their places

    app = _App(
        title="Kotha",
        version=kotha.__version__,
        summary="Small language models, Bangla first.",
        lifespan=living,
        docs_url=None,  # its page comes from another host
        redoc_url=None,
        responses=errors.RESPONSES,
    )
    app.state.kotha = State(settings, registry, jobs, Indexes(settings.indexes, jobs))
    errors.install(app)
    for module in (routes, *_OURS, job_routes, static_pages):
        app.include_router(module.router)
    if settings.book is not None:
        app.mount("/book", static_pages.Book(settings.book))
    _add_running(app)
    return app


async def _open_ahead(registry: ModelRegistry) -> None:
    """Open the first model before anybody asks; what is wrong with it is told to whoever does."""
    for name in list(registry.places)[:1]:
        with suppress(Exception):
            async with registry.use(name):
                pass


def _add_running(app: FastAPI) -> None:
    """How the server itself fares."""

    @app.get("/health", tags=["Running"])
    async def health() -> dict[str, str]:
        """Whether the server answers at all."""
        return {"status": "ok"}

    @app.get("/ready", tags=["Running"])
    async def ready(request: Request) -> dict[str, str]:
        """Whether a text could be written now: opens the first model, if none is open."""
        registry = state_of(request).registry
        async with registry.use(next(iter(registry.opened or registry.places))) as served:
            return {"status": "ready", "model": served.name}

    @app.get("/metrics", tags=["Running"], response_class=Response)
    async def metrics(request: Request) -> Response:
        """Counters, as Prometheus reads them."""
        for gauge in (WAITING, AT_WORK):
            gauge.clear()
        for name, served in state_of(request).registry.opened.items():
            if served.batcher is not None:
                WAITING.labels(name).set(served.batcher.n_waiting)
                AT_WORK.labels(name).set(served.batcher.n_at_work)
        return Response(generate_latest(), media_type=CONTENT_TYPE_LATEST)


def guarded(app: FastAPI) -> ASGIApp:
    """The app with the doorkeeper before it."""
    state: State = app.state.kotha
    return Guard(RequestWatch(app), state.settings)
