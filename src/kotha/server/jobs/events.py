"""A job as server-sent events: its state, and what a training measures, line by line.

Every event says how much was heard with it (``id``). Who lost the connection says it again (``Last-Event-ID``, as
browsers do by themselves) and hears what is new; of a job that has ended and was heard to the end there is nothing.
"""

import asyncio
import json
import re
from collections.abc import AsyncIterator
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, BinaryIO
from zlib import crc32

from kotha.artifacts.run_folder import METRICS
from kotha.server.jobs.errors import NoSuchJobError
from kotha.server.jobs.store import JobStore
from kotha.storage.status import is_file

_LOOK_EVERY_SECONDS = 0.5
_LONGEST_LINE = 64 << 10
_PLACE = re.compile(r"([0-9]{1,15})\.([0-9a-f]{8})\.([a-z]{0,10})")


@dataclass(frozen=True)
class EventPlace:
    """How much was heard of a job.

    >>> str(EventPlace.read("512.0badcafe.running")), EventPlace.read("whatever")
    ('512.0badcafe.running', EventPlace(offset=0, check=0, state=''))
    """

    offset: int = 0  # bytes of the metrics
    check: int = 0  # of the last line of these: a training that goes on may write others in their place
    state: str = ""  # that was last told

    @classmethod
    def read(cls, given: str | None) -> "EventPlace":
        """The place that an event's id tells; what is none is the beginning."""
        found = _PLACE.fullmatch(given or "")
        return cls() if found is None else cls(int(found[1]), int(found[2], 16), found[3])

    def __str__(self) -> str:
        return f"{self.offset}.{self.check:08x}.{self.state}"


def heard_to_the_end(store: JobStore, id: str, place: EventPlace) -> bool:
    """Whether a job has ended, and whoever heard it up to a place heard all of it."""
    status = store.status(id)
    if status.state == "running" or status.state != place.state:
        return False
    return not _new_lines(store, id, place)


async def job_events(store: JobStore, id: str, place: EventPlace) -> AsyncIterator[str]:
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


def _event(kind: str, data: dict[str, Any], place: EventPlace) -> str:
    return f"event: {kind}\nid: {place}\ndata: {json.dumps(data, ensure_ascii=False)}\n\n"


def _new_lines(store: JobStore, id: str, place: EventPlace) -> list[tuple[dict[str, Any], EventPlace]]:
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


def _stands(file: BinaryIO, place: EventPlace) -> bool:
    """Whether the last line before a place is still the one that was heard."""
    if not place.offset:
        return True
    start = max(0, place.offset - _LONGEST_LINE)
    file.seek(start)
    before = file.read(place.offset - start)
    whole = len(before) == place.offset - start and before.endswith(b"\n")
    return whole and crc32(before.splitlines(keepends=True)[-1]) == place.check
