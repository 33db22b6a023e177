"""``/api/files`` and ``/api/jobs``: bring a text, begin work on it, watch it, stop it, go on with it."""

import asyncio
from typing import Annotated, Any

from fastapi import APIRouter, Header, Request, Response
from fastapi import Path as PathParameter
from fastapi.responses import StreamingResponse
from pydantic import BaseModel, Field

from kotha.server.errors import RefusedError
from kotha.server.jobs.events import EventPlace, heard_to_the_end, job_events
from kotha.server.jobs.kinds import Id, JobRequest
from kotha.server.jobs.labels import Name, SeenName, Tags
from kotha.server.jobs.status import Job
from kotha.server.jobs.store import JobStore
from kotha.server.jobs.uploads import Ending
from kotha.server.state import state_of
from kotha.server.wire import WireRequest

router = APIRouter(prefix="/api", tags=["Jobs"])
_HEARD: dict[int | str, dict[str, Any]] = {204: {"description": "It has ended, and all of it was heard."}}
NamedFile = Annotated[Id, PathParameter(description="A file, by the id that it was given.")]
LastEventId = Annotated[str | None, Header(description="The id of the last event that was heard; the next follow.")]
NamedJob = Annotated[Id, PathParameter(description="A job, by the id that it was given.")]


class BroughtText(WireRequest):
    """A text to work with; ``ending`` says how it is read."""

    text: str = Field(min_length=1, description="All of it.")
    ending: Ending = Field("txt", description="How it is read: a document a paragraph, or records.")
    name: SeenName | None = Field(None, description="What people call it, such as the file's own name.")


class FileId(BaseModel):
    """What a text is called here."""

    id: Id = Field(description="By which jobs name it.")


class BroughtFile(BaseModel):
    """A text that is kept."""

    id: Id = Field(description="By which jobs name it.")
    ending: Ending = Field(description="How it is read.")
    n_bytes: int = Field(description="Its size in UTF-8.")
    brought: float = Field(description="When, in seconds since 1970.")
    name: str = Field(description="What people call it; empty where nobody said it.")
    spare: bool = Field(description="Whether no job needs it: it goes when there is no room for another.")


class SpareFiles(BaseModel):
    """Texts that went since no job needed them."""

    count: int = Field(description="How many.")
    n_bytes: int = Field(description="Their size together.")


class JobId(BaseModel):
    """What a job is called here."""

    id: Id = Field(description="By which it is asked for; of a training also the name of its model.")


class LabelRequest(WireRequest):
    """What a job shall be called and found by; what is left out stays as it is."""

    name: Name | None = Field(None, description="What people shall call it; empty: as it was begun.")
    tags: Tags | None = Field(None, description="All its tags, in place of those that it has.", examples=[["stories"]])


def _store(request: Request) -> JobStore:
    state = state_of(request)
    if state.jobs is None:
        raise RefusedError("this server takes no jobs; {advice}", 404, advice=state.settings.advice.jobs)
    return state.jobs


@router.post("/files")
async def bring(request: Request, body: BroughtText) -> FileId:
    """Bring a text; where there is no room for it, the oldest that no job needs go."""
    store = _store(request)
    return FileId(id=await asyncio.to_thread(store.bring, body.text, body.ending, body.name or ""))


@router.get("/files")
async def files(request: Request) -> list[BroughtFile]:
    """Every text that is kept, the newest first."""
    store = _store(request)
    return [BroughtFile(**vars(each), spare=spare) for each, spare in await asyncio.to_thread(store.files)]


@router.delete("/files")
async def remove_spare_files(request: Request) -> SpareFiles:
    """Remove every text that no job needs."""
    gone = await asyncio.to_thread(_store(request).remove_spare_files)
    return SpareFiles(count=len(gone), n_bytes=sum(each.n_bytes for each in gone))


@router.delete("/files/{id}")
async def remove_file(request: Request, id: NamedFile) -> FileId:
    """Remove a text; one that a running job works on stays."""
    await asyncio.to_thread(_store(request).remove_file, id)
    return FileId(id=id)


@router.get("/jobs")
async def jobs(request: Request) -> list[Job]:
    """Every job, the newest first."""
    store = _store(request)
    return await asyncio.to_thread(store.all)


@router.post("/jobs")
async def begin(request: Request, body: JobRequest) -> JobId:
    """Begin a job."""
    store, registry = _store(request), state_of(request).registry

    def work() -> str:
        return store.begin(body.kind, body.name, *body.commands(store, registry.place), tags=body.tags or ())

    return JobId(id=await asyncio.to_thread(work))


@router.get("/jobs/{id}")
async def job(request: Request, id: NamedJob) -> Job:
    """One job."""
    return await _told(_store(request), id)


@router.patch("/jobs/{id}")
async def label(request: Request, id: NamedJob, body: LabelRequest) -> Job:
    """Call a job something else, or give it other tags; whether it runs or not."""
    store = _store(request)
    await asyncio.to_thread(store.label, id, body.name, body.tags)
    return await _told(store, id)


@router.delete("/jobs/{id}")
async def remove(request: Request, id: NamedJob) -> JobId:
    """Remove a job that does not run, with what came of it and texts brought for it alone; its model is closed."""
    store = _store(request)
    state_of(request).registry.let_go(id)
    await asyncio.to_thread(store.remove, id)
    return JobId(id=id)


@router.post("/jobs/{id}/stop")
async def stop(request: Request, id: NamedJob) -> Job:
    """Tell a job to stop; a training saves first."""
    store = _store(request)
    await asyncio.to_thread(store.stop, id)
    return await _told(store, id)


@router.post("/jobs/{id}/go-on")
async def go_on(request: Request, id: NamedJob) -> Job:
    """Go on with a training that was stopped."""
    store = _store(request)
    await asyncio.to_thread(store.go_on, id)
    return await _told(store, id)


async def _told(store: JobStore, id: str) -> Job:
    return await asyncio.to_thread(store.status, id)


@router.get("/jobs/{id}/events", response_class=StreamingResponse, responses=_HEARD)
async def watch(request: Request, id: NamedJob, last_event_id: LastEventId = None) -> Response:
    """A job as it goes: its state, and what a training measures, line by line."""
    store, place = _store(request), EventPlace.read(last_event_id)
    if await asyncio.to_thread(heard_to_the_end, store, id, place):
        return Response(status_code=204)  # or a browser would ask for ever
    return StreamingResponse(job_events(store, id, place), media_type="text/event-stream; charset=utf-8")
