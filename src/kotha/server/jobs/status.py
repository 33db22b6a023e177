"""Job status, with a message if the command could not report how it ended.

Fields that cannot be read because of an I/O error are omitted.
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
from kotha.server.json_requests import Id, TranslatableMessage
from kotha.storage.status import matching

JobState = Literal["running", "done", "failed", "stopped", "killed"]
OUT = "out"
TRAININGS = ("train", "learn", "finetune", "adapt", "pairs")  # kinds that produce a run; older servers wrote "adapt"
_SIGKILL = 9  # the signal module has no SIGKILL on Windows
_STOPPED_CODES = (130, 143, -signal.SIGTERM, -signal.SIGINT)
_SHOWN_BYTES = 4000  # end of the log that is reported
T = TypeVar("T")


class Job(BaseModel):
    """The status of a job."""

    model_config = ConfigDict(frozen=True)

    id: Id
    kind: str
    name: str
    state: JobState
    started: float
    ended: float | None
    output: str
    tags: tuple[str, ...]
    error: TranslatableMessage | None


def state_of(row: sqlite3.Row) -> JobState:
    """Return a job's state from its row in the table."""
    code: int | None = row["code"]
    if code is None:
        return "killed" if process_of(row) is None else "running"
    if code == 0:
        return "done"
    if code == -_SIGKILL:
        return "killed"
    return "stopped" if code in _STOPPED_CODES else "failed"


def job_of(jobs: Path, row: sqlite3.Row) -> Job:
    """Return a job's status from its row in the table and its folder."""
    state, folder = state_of(row), jobs / row["id"]
    saved = row["kind"] in TRAININGS and _read_or(lambda: has_saved(folder), False)
    reason = _reason(state, row["code"], row["why"], saved)
    failure = TranslatableMessage.of(reason) if reason else None
    if reason is None and state == "failed":
        failure = _read_or(lambda: _error(jobs, row), None)
    parts = (_without_paths(_read_or(lambda: _end_of_log(folder), ""), jobs, words_of(row)), reason)
    return Job(
        **{name: row[name] for name in ("id", "kind", "ended")},
        started=row["began"],
        name=row["label"] or row["name"],
        state=state,
        output="\n".join(str(part).rstrip() for part in parts if part),
        tags=tuple(json.loads(row["tags"])),
        error=failure,
    )


def has_saved(folder: Path) -> bool:
    """Whether a job has a checkpoint to resume from."""
    return bool(matching(folder / OUT / CHECKPOINTS))


def _reason(state: JobState, code: int | None, why: str | None, saved: bool) -> Message | None:
    """Return why a job ended, if its command could not report it; ``saved`` means that the job has a checkpoint."""
    if why:  # from the job's own process
        return Message("its command could not be run: {why}; free disk space or memory, and start it again", why=why)
    if state == "killed":
        advice = Message("resume it from its last checkpoint") if saved else Message("start it again")
        return Message(
            "a user killed it, the system killed it because memory ran out, or the machine went down; {advice}",
            advice=advice,
        )
    if code is not None and state == "failed" and code < 0:
        is_known = -code in set(signal.Signals)
        name = signal.Signals(-code).name if is_known else Message("signal {number}", number=-code)
        return Message("its command was terminated by {signal}", signal=name)
    return None


def _end_of_log(folder: Path) -> str:
    """Return the last part of the output from a job's commands."""
    with (folder / LOG).open("rb") as file:
        file.seek(max(0, (folder / LOG).stat().st_size - _SHOWN_BYTES))
        return file.read().decode("utf-8", "replace")


def _error(jobs: Path, row: sqlite3.Row) -> TranslatableMessage:
    """Return the error that a command wrote."""
    text = (jobs / row["id"] / ERROR).read_text(encoding="utf-8")
    return TranslatableMessage.model_validate_json(_without_paths(text, jobs, words_of(row)))


def _without_paths(output: str, jobs: Path, words: list[str]) -> str:
    """Return a command's output with ids and names in place of paths on this machine."""
    for folder in {f"{jobs}/", f"{jobs.resolve()}/"}:
        output = output.replace(folder, "")
    external = [word for word in words if word.startswith("/") and not word.startswith(f"{jobs}/")]
    for path in sorted(external, key=len, reverse=True):  # such as a model of the server
        output = output.replace(path, Path(path).name)
    return output


def _read_or(read: Callable[[], T], default: T) -> T:
    try:
        return read()
    except (OSError, KothaError, ValueError):  # ValueError: JSON cut off by a full disk
        return default
