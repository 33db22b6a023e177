"""Jobs of versions that kept them as notes in folders (``job.json`` and others beside it): read once, into the table.

The notes stay as they are. One of another shape makes its job a damaged one, which hides no other.
"""

import sqlite3
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError

from kotha.errors import KothaError
from kotha.server.jobs.table import insert
from kotha.server.jobs.uploads import ID, IDS_IN
from kotha.server.wire import Name, Tags
from kotha.storage.status import is_file

JOB, LABEL, PROCESS, EXIT = "job.json", "label.json", "process.json", "exit.json"
DAMAGED = "damaged"  # the kind of a job of which nothing says it any more
_HIGHEST_SIGNAL = 64
# Half a character of JSON's can be read, and never be sent on.
_IS_UTF8 = AfterValidator(lambda text: text.encode().decode())
_Text = Annotated[str, _IS_UTF8]


class _Note(BaseModel):
    """The columns of the table that a note holds, by their names there."""

    model_config = ConfigDict(strict=True, allow_inf_nan=False)


class _JobNote(_Note):
    kind: _Text
    name: _Text
    commands: list[list[_Text]] = Field(min_length=1)
    began: float
    files: list[_Text] = Field([])


class _LabelNote(_Note):
    label: Annotated[Name, _IS_UTF8] = Field("", alias="name")
    tags: Tags = Field([])


class _ProcessNote(_Note):
    # 0 and what is below it mean many processes at once to the system, and 1 is the first of all.
    pid: Annotated[int, Field(gt=1, lt=1 << 31)] | None = None
    process: str | None = Field(None, alias="began")


class _ExitNote(_Note):
    code: int | None = Field(None, ge=-_HIGHEST_SIGNAL, le=255)
    ended: float | None = None
    why: _Text | None = None


_NOTES: dict[str, type[_Note]] = {JOB: _JobNote, PROCESS: _ProcessNote, EXIT: _ExitNote, LABEL: _LabelNote}


def take_over(table: sqlite3.Connection, folder: Path) -> None:
    """Write the jobs of a folder's notes into the table, those that it does not have yet."""
    known = {row["id"] for row in table.execute("SELECT id FROM jobs")}
    for place in folder.iterdir():
        if ID.fullmatch(place.name) and place.name not in known and _may_be_there(place / JOB):
            insert(table, id=place.name, **_row(place))


def _row(place: Path) -> dict[str, Any]:
    try:
        found = read_note(place, JOB) | read_note(place, PROCESS) | read_note(place, EXIT)
    except KothaError as error:
        try:
            text, began = (place / JOB).read_text(encoding="utf-8", errors="replace"), place.stat().st_mtime
        except OSError:
            text, began = "", 0.0
        files = sorted(set(IDS_IN.findall(text)))  # a damaged note still says which files it needs
        told = {"code": 1, "why": str(error), "began": began}
        return {"kind": DAMAGED, "name": "", "commands": [], "files": files, **told}
    with suppress(KothaError):
        found |= read_note(place, LABEL)
    return found


def read_note(place: Path, name: str) -> dict[str, Any]:
    """What a note of a job says; one that is not there says nothing."""
    try:
        content = (place / name).read_bytes() if name == JOB or is_file(place / name) else b"{}"
        return _NOTES[name].model_validate_json(content).model_dump()
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        field = ".".join(map(str, first["loc"]))
        raise KothaError("{name} is broken: {field}: {why}", name=name, field=field, why=first["msg"]) from error
    except OSError as error:
        raise KothaError("{name} cannot be read: {why}", name=name, why=error.strerror) from error


def _may_be_there(path: Path) -> bool:
    try:
        return is_file(path)
    except OSError:  # a disk that does not say: then it is told as damaged
        return True
