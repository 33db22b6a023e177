"""``/api/files`` and ``/api/jobs``: bring a text, begin work on it, watch it, stop it, go on with it.

A job is watched by server-sent events: its state, and what a training measures, line by line. Every event says how much
was heard with it (``id``). Who lost the connection says it again (``Last-Event-ID``, as browsers do by themselves) and
hears what is new; of a job that has ended and was heard to the end there is nothing.
"""

import asyncio
import json
import re
from collections.abc import AsyncIterator
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, BinaryIO
from zlib import crc32

from fastapi import APIRouter, Depends, Header, Request, Response
from fastapi import Path as PathParameter
from fastapi.responses import StreamingResponse
from pydantic import BaseModel, Field

from kotha.artifacts.run_folder import METRICS
from kotha.server.jobs.kinds import JobRequest
from kotha.server.jobs.status import Job
from kotha.server.jobs.store import JobStore
from kotha.server.jobs.table import NoSuchJobError
from kotha.server.jobs.uploads import Ending, Upload
from kotha.server.state import state_of
from kotha.server.wire import Id, JsonObject, Name, SeenName, Tags, WireRequest
from kotha.storage.status import is_file

router = APIRouter(prefix="/api", tags=["Jobs"])
_HEARD: dict[int | str, JsonObject] = {204: {"description": "It has ended, and all of it was heard."}}
_LOOK_EVERY_SECONDS = 0.5
_LONGEST_LINE = 64 << 10
_PLACE = re.compile(r"([0-9]{1,15})\.([0-9a-f]{8})\.([a-z]{0,10})")
NamedFile = Annotated[Id, PathParameter(description="A file, by the id that it was given.")]
LastEventId = Annotated[str | None, Header(description="The id of the last event that was heard; the next follow.")]
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


@router.get("/jobs/{id}/events", response_class=StreamingResponse, responses=_HEARD)
def watch(store: Store, id: NamedJob, last_event_id: LastEventId = None) -> Response:
    """A job as it goes: its state, and what a training measures, line by line."""
    place = _EventPlace.read(last_event_id)
    if store.status(id).state == place.state != "running" and not _new_lines(store, id, place):
        return Response(status_code=204)  # or a browser would ask for ever
    return StreamingResponse(_events(store, id, place), media_type="text/event-stream; charset=utf-8")


@dataclass(frozen=True)
class _EventPlace:
    """How much was heard of a job.

    >>> str(_EventPlace.read("512.0badcafe.running")), _EventPlace.read("whatever")
    ('512.0badcafe.running', _EventPlace(offset=0, check=0, state=''))
    """

    offset: int = 0  # bytes of the metrics
    check: int = 0  # of the last line of these: a training that goes on may write others in their place
    state: str = ""  # that was last told

    @classmethod
    def read(cls, given: str | None) -> "_EventPlace":
        """The place that an event's id tells; what is none is the beginning."""
        found = _PLACE.fullmatch(given or "")
        return cls() if found is None else cls(int(found[1]), int(found[2], 16), found[3])

    def __str__(self) -> str:
        return f"{self.offset}.{self.check:08x}.{self.state}"


async def _events(store: JobStore, id: str, place: _EventPlace) -> AsyncIterator[str]:
    """What happens to a job after a place, until it has ended; its state is told in any case."""
    last = None
    while True:
        try:
            status = await asyncio.to_thread(store.status, id)
            lines = await asyncio.to_thread(_new_lines, store, id, place)
        except NoSuchJobError:  # it was removed meanwhile
            return
        for line, place in lines:
            yield _event("metrics", line, place)
        if status != last:
            last, place = status, replace(place, state=status.state)
            yield _event("status", status.model_dump(), place)
        if status.state != "running" and not lines:
            return
        await asyncio.sleep(_LOOK_EVERY_SECONDS)


def _event(kind: str, data: JsonObject, place: _EventPlace) -> str:
    return f"event: {kind}\nid: {place}\ndata: {json.dumps(data, ensure_ascii=False)}\n\n"


def _new_lines(store: JobStore, id: str, place: _EventPlace) -> list[tuple[JsonObject, _EventPlace]]:
    """The whole lines behind a place, each with the place after it."""
    file: Path = store.result(id) / METRICS
    if not is_file(file):
        return []
    with file.open("rb") as opened:
        if not _stands(opened, place):
            place = replace(place, offset=0, check=0)
        opened.seek(place.offset)
        data = opened.read()
    found = []
    for line in data[: data.rfind(b"\n") + 1].splitlines(keepends=True):
        place = replace(place, offset=place.offset + len(line), check=crc32(line))
        with suppress(ValueError):  # a line that a full disk or a power cut broke off takes only itself
            found.append((json.loads(line), place))
    return found


def _stands(file: BinaryIO, place: _EventPlace) -> bool:
    """Whether the last line before a place is still the one that was heard."""
    if not place.offset:
        return True
    start = max(0, place.offset - _LONGEST_LINE)
    file.seek(start)
    before = file.read(place.offset - start)
    whole = len(before) == place.offset - start and before.endswith(b"\n")
    return whole and crc32(before.splitlines(keepends=True)[-1]) == place.check
