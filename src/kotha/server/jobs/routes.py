"""``/api/files`` and ``/api/jobs``: upload files, and start, inspect, stop, resume and remove jobs."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Request, Response
from fastapi import Path as PathParameter
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from pydantic import BaseModel, Field, ValidationError

from kotha.server.jobs.kinds import JobRequest
from kotha.server.jobs.status import Job
from kotha.server.jobs.store import JobStore
from kotha.server.jobs.uploads import FileType, Upload
from kotha.server.json_requests import Id, Name, SeenName, Tags, WireRequest, json_strings
from kotha.server.state import state_of

router = APIRouter(prefix="/api", tags=["Jobs"])
NamedFile = Annotated[Id, PathParameter(description="File id.")]
NamedJob = Annotated[Id, PathParameter(description="Job id.")]


class FileUpload(WireRequest):
    """A file to upload."""

    text: str = Field(min_length=1)
    file_type: FileType = "txt"
    name: SeenName | None = None


class _UploadRequest(Request):
    upload: FileUpload

    async def json(self) -> FileUpload:
        """Return the body, which was already parsed."""
        return self.upload


class _UploadRoute(APIRoute):
    """A route that parses and checks uploads in a thread, one at a time, because they may be large."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """Return the function that handles a request."""
        handle = super().get_route_handler()

        async def handle_parsed(given: Request) -> Response:
            if "json" not in given.headers.get("content-type", ""):
                return await handle(given)
            request, state = _UploadRequest(given.scope, given.receive), state_of(given)
            body = await request.body()
            request.upload = await state.uploading.run(given, state.settings.limits.seconds, lambda _: _parsed(body))
            return await handle(request)

        return handle_parsed


def _parsed(body: bytes) -> FileUpload:
    """Parse and check an upload; errors are those that FastAPI would raise."""
    try:
        return FileUpload.model_validate(json_strings(body), from_attributes=True)
    except ValidationError as error:
        faults = [{**each, "loc": ("body", *each["loc"])} for each in error.errors(include_input=False)]
    except ValueError as error:  # not JSON, or not UTF-8
        where, what = getattr(error, "pos", 0), getattr(error, "msg", str(error))
        faults = [{"type": "json_invalid", "loc": ("body", where), "msg": what, "ctx": {"error": what}}]
    raise RequestValidationError(faults)


_uploads = APIRouter(route_class=_UploadRoute)


class ResourceId(BaseModel):
    """The id of a file or job."""

    id: Id


class RemovedFiles(BaseModel):
    """Files that were removed because no job needs them."""

    count: int
    n_bytes: int


class LabelRequest(WireRequest):
    """A new name or new tags for a job; omitted fields stay unchanged."""

    name: Name | None = None
    tags: Tags | None = Field(None, examples=[["stories"]])


async def _store(request: Request) -> JobStore:
    return state_of(request).job_store()


Store = Annotated[JobStore, Depends(_store)]


@_uploads.post("/files")
def upload(store: Store, body: FileUpload) -> ResourceId:
    """Upload a file; if the store is full, the oldest files that no job needs are removed."""
    return ResourceId(id=store.upload(body.text, body.file_type, body.name or ""))


router.include_router(_uploads)


@router.get("/files")
def files(store: Store) -> list[Upload]:
    """Return all uploaded files, newest first."""
    return store.files()


@router.delete("/files")
def remove_unused_files(store: Store) -> RemovedFiles:
    """Remove all files that no job needs."""
    removed = store.remove_unused_files()
    return RemovedFiles(count=len(removed), n_bytes=sum(each.n_bytes for each in removed))


@router.delete("/files/{id}")
def remove_file(store: Store, id: NamedFile) -> ResourceId:
    """Remove a file; returns 409 if a running job reads it."""
    store.remove_file(id)
    return ResourceId(id=id)


@router.get("/jobs")
def jobs(store: Store) -> list[Job]:
    """Return all jobs, newest first."""
    return store.all()


@router.post("/jobs")
def begin(request: Request, store: Store, body: JobRequest) -> ResourceId:
    """Start a job."""
    commands = body.commands(store, state_of(request).registry.path)
    return ResourceId(id=store.begin(body.kind, body.name, *commands, tags=body.tags or ()))


@router.get("/jobs/{id}")
def job(store: Store, id: NamedJob) -> Job:
    """Return a job."""
    return store.status(id)


@router.patch("/jobs/{id}")
def label(store: Store, id: NamedJob, body: LabelRequest) -> Job:
    """Change a job's name or tags, even while it is running."""
    store.label(id, body.name, body.tags)
    return store.status(id)


@router.delete("/jobs/{id}")
async def remove(request: Request, store: Store, id: NamedJob) -> ResourceId:
    """Remove a job that is not running, with its output, its model and the files that no other job uses."""
    state_of(request).registry.unload(id)
    await asyncio.to_thread(store.remove, id)
    return ResourceId(id=id)


@router.post("/jobs/{id}/stop")
def stop(store: Store, id: NamedJob) -> Job:
    """Stop a job; a training run saves a checkpoint first."""
    store.stop(id)
    return store.status(id)


@router.post("/jobs/{id}/resume")
def resume(store: Store, id: NamedJob) -> Job:
    """Resume a training job that was stopped or killed."""
    store.resume(id)
    return store.status(id)
