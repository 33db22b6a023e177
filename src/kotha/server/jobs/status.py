"""A job as it stands, or how it ended: in words, where its command had no chance to say it.

What the disk does not give is left out, and the job is told all the same.
"""

import json
import signal
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Literal, TypeVar

from pydantic import BaseModel, ConfigDict

from kotha.artifacts.run_folder import CHECKPOINTS
from kotha.errors import KothaError
from kotha.i18n.message import Message
from kotha.server.jobs.job_process import ERROR, LOG
from kotha.server.jobs.table import process_of, words_of
from kotha.server.json_requests import Id, ToldMessage
from kotha.storage.status import matching

JobState = Literal["running", "done", "failed", "stopped", "killed"]
OUT = "out"
TRAININGS = ("train", "learn", "adapt", "pairs")  # kinds of which a run comes; they can go on where they stopped
_SIGKILL = 9  # which Windows has no name for
_STOPPED_CODES = (130, 143, -signal.SIGTERM, -signal.SIGINT)
_SHOWN_BYTES = 4000  # of a log
T = TypeVar("T")


class Job(BaseModel):
    """A job as it stands."""

    model_config = ConfigDict(frozen=True)

    id: Id
    kind: str
    name: str
    state: JobState
    began: float
    ended: float | None
    said: str
    tags: tuple[str, ...]
    error: ToldMessage | None


def state_of(row: sqlite3.Row) -> JobState:
    """How a job stands, as far as the table says it."""
    code: int | None = row["code"]
    if code is None:
        return "killed" if process_of(row) is None else "running"
    if code == 0:
        return "done"
    if code == -_SIGKILL:
        return "killed"
    return "stopped" if code in _STOPPED_CODES else "failed"


def job_of(jobs: Path, row: sqlite3.Row) -> Job:
    """One job of a folder of jobs."""
    state, folder = state_of(row), jobs / row["id"]
    saved = row["kind"] in TRAININGS and _given(lambda: has_saved(folder), False)
    unsaid = _unsaid(state, row["code"], row["why"], saved)
    failure = ToldMessage.of(unsaid) if unsaid else None
    if unsaid is None and state == "failed":
        failure = _given(lambda: _error(jobs, row), None)
    parts = (_without_places(_given(lambda: _end_of_log(folder), ""), jobs, words_of(row)), unsaid)
    return Job(
        **{name: row[name] for name in ("id", "kind", "began", "ended")},
        name=row["label"] or row["name"],
        state=state,
        said="\n".join(str(part).rstrip() for part in parts if part),
        tags=tuple(json.loads(row["tags"])),
        error=failure,
    )


def has_saved(folder: Path) -> bool:
    """Whether a training left something to go on from."""
    return bool(matching(folder / OUT / CHECKPOINTS))


def _unsaid(state: JobState, code: int | None, why: str | None, saved: bool) -> Message | None:
    """What to add to the last words of a command; ``saved`` says whether it left something to go on from."""
    if why:  # of whoever looked after the command
        return Message("its command could not be run: {why}; free disk space or memory, and start it again", why=why)
    if state == "killed":
        advice = Message("resume it from its last checkpoint") if saved else Message("start it again")
        return Message(
            "it was killed: by a user, by the system for lack of memory, or because the machine went down; {advice}",
            advice=advice,
        )
    if code is not None and state == "failed" and code < 0:
        is_known = -code in set(signal.Signals)
        name = signal.Signals(-code).name if is_known else Message("signal {number}", number=-code)
        return Message("its command was terminated by {signal}", signal=name)
    return None


def _end_of_log(folder: Path) -> str:
    """The last lines of what a job's commands said."""
    with (folder / LOG).open("rb") as file:
        file.seek(max(0, (folder / LOG).stat().st_size - _SHOWN_BYTES))
        return file.read().decode("utf-8", "replace")


def _error(jobs: Path, row: sqlite3.Row) -> ToldMessage:
    """Why a command failed, as it left it."""
    text = (jobs / row["id"] / ERROR).read_text(encoding="utf-8")
    return ToldMessage.model_validate_json(_without_places(text, jobs, words_of(row)))


def _without_places(said: str, jobs: Path, words: list[str]) -> str:
    """What a command said, with ids and names instead of where things are on this machine."""
    for folder in {f"{jobs}/", f"{jobs.resolve()}/"}:
        said = said.replace(folder, "")
    elsewhere = [word for word in words if word.startswith("/") and not word.startswith(f"{jobs}/")]
    for place in sorted(elsewhere, key=len, reverse=True):  # a model that the server was started with
        said = said.replace(place, Path(place).name)
    return said


def _given(part: Callable[[], T], otherwise: T) -> T:
    try:
        return part()
    except (OSError, KothaError, ValueError):  # of which the last is what a full disk broke off
        return otherwise
