"""``/api/files`` and ``/api/jobs``: bring a text, begin work on it, look at it, stop it, go on with it."""

import asyncio
from typing import Annotated

from fastapi import APIRouter, Depends, Request
from fastapi import Path as PathParameter
from pydantic import BaseModel, Field

from kotha.server.jobs.kinds import JobRequest
from kotha.server.jobs.status import Job
from kotha.server.jobs.store import JobStore
from kotha.server.jobs.uploads import Ending, Upload
from kotha.server.json_requests import Id, Name, SeenName, Tags, WireRequest
from kotha.server.state import state_of

router = APIRouter(prefix="/api", tags=["Jobs"])
NamedFile = Annotated[Id, PathParameter(description="A file, by the id that it was given.")]
NamedJob = Annotated[Id, PathParameter(description="A job, by the id that it was given.")]


class BroughtText(WireRequest):
    """A text to work with; ``ending`` says how it is read."""

    text: str = Field(min_length=1)
    ending: Ending = "txt"
    name: SeenName | None = None


class Named(BaseModel):
    """What a text or a job is called here."""

    id: Id


class SpareFiles(BaseModel):
    """Texts that went since no job needed them."""

    count: int
    n_bytes: int


class LabelRequest(WireRequest):
    """What a job shall be called and found by; what is left out stays as it is."""

    name: Name | None = None
    tags: Tags | None = Field(None, examples=[["stories"]])


async def _store(request: Request) -> JobStore:
    return state_of(request).job_store()


Store = Annotated[JobStore, Depends(_store)]


@router.post("/files")
def bring(store: Store, body: BroughtText) -> Named:
    """Bring a text; where there is no room for it, the oldest that no job needs go."""
    return Named(id=store.bring(body.text, body.ending, body.name or ""))


@router.get("/files")
def files(store: Store) -> list[Upload]:
    """Every text that is kept, the newest first."""
    return store.files()


@router.delete("/files")
def remove_spare_files(store: Store) -> SpareFiles:
    """Remove every text that no job needs."""
    gone = store.remove_spare_files()
    return SpareFiles(count=len(gone), n_bytes=sum(each.n_bytes for each in gone))


@router.delete("/files/{id}")
def remove_file(store: Store, id: NamedFile) -> Named:
    """Remove a text; one that a running job works on stays."""
    store.remove_file(id)
    return Named(id=id)


@router.get("/jobs")
def jobs(store: Store) -> list[Job]:
    """Every job, the newest first."""
    return store.all()


@router.post("/jobs")
def begin(request: Request, store: Store, body: JobRequest) -> Named:
    """Begin a job."""
    commands = body.commands(store, state_of(request).registry.place)
    return Named(id=store.begin(body.kind, body.name, *commands, tags=body.tags or ()))


@router.get("/jobs/{id}")
def job(store: Store, id: NamedJob) -> Job:
    """One job."""
    return store.status(id)


@router.patch("/jobs/{id}")
def label(store: Store, id: NamedJob, body: LabelRequest) -> Job:
    """Call a job something else, or give it other tags; whether it runs or not."""
    store.label(id, body.name, body.tags)
    return store.status(id)


@router.delete("/jobs/{id}")
async def remove(request: Request, store: Store, id: NamedJob) -> Named:
    """Remove a job that does not run, with what came of it and texts brought for it alone; its model is closed."""
    state_of(request).registry.let_go(id)
    await asyncio.to_thread(store.remove, id)
    return Named(id=id)


@router.post("/jobs/{id}/stop")
def stop(store: Store, id: NamedJob) -> Job:
    """Tell a job to stop; a training saves first."""
    store.stop(id)
    return store.status(id)


@router.post("/jobs/{id}/go-on")
def go_on(store: Store, id: NamedJob) -> Job:
    """Go on with a training that was stopped."""
    store.go_on(id)
    return store.status(id)
