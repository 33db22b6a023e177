"""Jobs of versions that kept them as notes in folders (``job.json`` and others beside it): read once, into the table.

The notes stay as they are. One of another shape makes its job a damaged one, which hides no other.
"""

import json
import sqlite3
from pathlib import Path
from typing import Annotated, Any, TypeVar

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError

from kotha.errors import KothaError
from kotha.server.jobs.uploads import ID, IDS_IN
from kotha.server.wire import Name, Tags
from kotha.storage.status import is_file

JOB, LABEL, PROCESS, EXIT = "job.json", "label.json", "process.json", "exit.json"
DAMAGED = "damaged"  # the kind of a job of which nothing says it any more
_HIGHEST_SIGNAL = 64


def _as_utf8(text: str) -> str:
    text.encode()  # half a character of JSON's can be read, and never be sent on
    return text


_Text = Annotated[str, AfterValidator(_as_utf8)]


class _Note(BaseModel):
    model_config = ConfigDict(strict=True, allow_inf_nan=False)


class _JobNote(_Note):
    kind: _Text
    name: _Text
    commands: list[list[_Text]] = Field(min_length=1)
    began: float
    files: list[_Text] = Field(default=[])


class _LabelNote(_Note):
    name: Annotated[Name, AfterValidator(_as_utf8)] = ""
    tags: Tags = Field(default=[])


class _ProcessNote(_Note):
    # 0 and what is below it mean many processes at once to the system, and 1 is the first of all.
    pid: Annotated[int, Field(gt=1, lt=1 << 31)] | None = None
    began: str | None = None


class ExitNote(_Note):
    """How a command ended."""

    code: int | None = Field(None, ge=-_HIGHEST_SIGNAL, le=255)
    ended: float | None = None
    why: _Text | None = None


def take_over(table: sqlite3.Connection, folder: Path) -> None:
    """Write the jobs of a folder's notes into the table, those that it does not have yet."""
    known = {row["id"] for row in table.execute("SELECT id FROM jobs")}
    for place in folder.iterdir():
        if ID.fullmatch(place.name) and place.name not in known and _may_be_there(place / JOB):
            row = {"id": place.name, **_row(place)}
            row |= {name: json.dumps(row[name], ensure_ascii=False) for name in ("commands", "files", "tags")}
            marks = ", ".join("?" * len(row))
            table.execute(f"INSERT INTO jobs ({', '.join(row)}) VALUES ({marks})", list(row.values()))


def _row(place: Path) -> dict[str, Any]:
    try:
        job, process, exit = _read(place / JOB, _JobNote), _read(place / PROCESS, _ProcessNote), exit_of(place)
    except KothaError as error:
        try:
            text, began = (place / JOB).read_text(encoding="utf-8", errors="replace"), place.stat().st_mtime
        except OSError:
            text, began = "", 0.0
        files = sorted(set(IDS_IN.findall(text)))  # a damaged note still says which files it needs
        told = {"code": 1, "why": str(error), "began": began}
        return {"kind": DAMAGED, "name": "", "commands": [], "files": files, "tags": [], **told}
    try:
        label = _read(place / LABEL, _LabelNote)
    except KothaError:
        label = _LabelNote()
    labels = {"label": label.name, "tags": label.tags, "pid": process.pid, "process": process.began}
    return {**job.model_dump(), **labels, **exit.model_dump()}


def exit_of(place: Path) -> ExitNote:
    """How a job ended that a version before ran; nothing, where no note says it."""
    return _read(place / EXIT, ExitNote)


N = TypeVar("N", bound=_Note)


def _read(path: Path, kind: type[N]) -> N:
    """A note; one that is not there says nothing."""
    try:
        return kind.model_validate_json(path.read_bytes() if kind is _JobNote or is_file(path) else b"{}")
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        field = ".".join(map(str, first["loc"]))
        raise KothaError("{name} is broken: {field}: {why}", name=path.name, field=field, why=first["msg"]) from error
    except OSError as error:
        raise KothaError("{name} cannot be read: {why}", name=path.name, why=error.strerror) from error


def _may_be_there(path: Path) -> bool:
    try:
        return is_file(path)
    except OSError:  # a disk that does not say: then it is told as damaged
        return True
