"""All jobs of a server, in one folder: begun, looked at, stopped, gone on with, removed.

::

    JOBS/jobs.sqlite             every job: what was asked for, which process does it, how it ended (``database.py``)
    JOBS/uploads/ID.txt          what somebody brought (``uploads.py``)
    JOBS/ID/log.txt              what a job's command says
    JOBS/ID/error.json           why it failed, as a message
    JOBS/ID/out/                 what comes of it: a tokenizer, a data folder, a run, an index

Everything is on disk, so that a server that was killed and started again knows as much as before, and several servers
know the same. One at a time begins a job, in a transaction of the table: so no two of them begin the last that may run.
Jobs of versions that kept notes in folders are taken over (``legacy.py``).
"""

import json
import os
import secrets
import shutil
import signal
import sqlite3
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import TypeVar

from kotha.artifacts.model_folder import RUN_MODEL
from kotha.artifacts.run_folder import CHECKPOINTS
from kotha.errors import KothaError, UsageError
from kotha.i18n.message import Message
from kotha.server.jobs.database import SPARE_BYTES, create_table, transaction
from kotha.server.jobs.errors import JobConflictError, NoSuchJobError
from kotha.server.jobs.job import ERROR, STOPPING, began, end_of_log
from kotha.server.jobs.legacy import DAMAGED, exit_of, take_over
from kotha.server.jobs.rows import as_json, needed_files, process_of, row_of, words_of
from kotha.server.jobs.status import Job, JobState, state_of, unsaid
from kotha.server.jobs.uploads import ID, Ending, Upload, Uploads, making_room, spare
from kotha.server.naming import by_name
from kotha.server.settings import Limits
from kotha.server.wire import ToldMessage
from kotha.storage.atomic import clear_leftovers, filled_folder, remove_whole
from kotha.storage.status import is_file, is_folder, is_there, matching

OUT, UPLOADS = "out", "uploads"
# Words of a command that a job fills in; what people say has no NUL.
OUT_PLACE, JOB_PLACE = "\0out", "\0job"
TRAININGS = ("train", "learn", "adapt", "pairs")  # kinds of which a run comes; they can go on where they stopped
# Of most commands the first word says what is done.
_SECOND_SAYS = ("corpus",)

T = TypeVar("T")


class JobStore:
    """A folder of jobs."""

    def __init__(self, folder: Path, most_running: int = 2, limits: Limits | None = None) -> None:
        self.folder, self._most, self._limits = folder.absolute(), most_running, limits or Limits()
        self.uploads = Uploads(self.folder / UPLOADS, self._limits)
        create_table(self.folder)
        with self._alone() as table:
            self._clear(table)

    @contextmanager
    def _alone(self) -> Iterator[sqlite3.Connection]:
        """Let no other server change anything meanwhile; what goes wrong is told without saying where it is."""
        with by_name({f"{self.folder}/": ""}), transaction(self.folder, write=True) as table:
            yield table

    def _clear(self, table: sqlite3.Connection) -> None:
        """Take away what a server left that was killed: what never became a job, what was a job no more."""
        clear_leftovers(self.folder, "*")
        self.uploads.clear()
        take_over(table, self.folder)
        known = {row["id"] for row in table.execute("SELECT id FROM jobs")}
        for id in known:
            with suppress(OSError):  # one that cannot be looked at stays as it is, and is no reason not to begin
                if not is_there(self.folder / id):
                    table.execute("DELETE FROM jobs WHERE id = ?", (id,))
        for place in self.folder.iterdir():
            if ID.fullmatch(place.name) and place.name not in known:
                shutil.rmtree(place, ignore_errors=True)

    def begin(self, kind: str, name: str, *commands: Sequence[str], tags: Sequence[str] = ()) -> str:
        """Start commands as a job, one after the other.

        ``OUT_PLACE`` in a word stands for where the result shall be, ``JOB_PLACE`` for the job's own folder, for what
        is made on the way.
        """
        _check_system()
        id = secrets.token_hex(6)
        folder = self.folder / id
        places = {OUT_PLACE: str(folder / OUT), JOB_PLACE: str(folder)}
        filled = [[_filled(word, places) for word in words] for words in commands]
        with self._started(folder, new=True) as table:
            self._check_room(table, new=1)
            with filled_folder(folder):  # a folder whose name is lost takes everything in it along
                pass
            table.execute(
                "INSERT INTO jobs (id, kind, name, tags, commands, files, began) VALUES (?, ?, ?, ?, ?, ?, ?)",
                (id, kind, name, as_json(tags), as_json(filled), as_json(self._named_files(filled)), time.time()),
            )
        return id

    def _named_files(self, commands: Sequence[Sequence[str]]) -> list[str]:
        """The files that commands read, by their ids; each of them is there."""
        places = {Path(word) for words in commands for word in words if word.startswith(f"{self.folder / UPLOADS}/")}
        return sorted(self.uploads.place(place.stem).stem for place in places)

    @contextmanager
    def _started(self, folder: Path, new: bool = False) -> Iterator[sqlite3.Connection]:
        """After what is written inside, begin a job's process, in a session of its own: what ends the server does not
        reach it. It does nothing before the table says that it is the one; what cannot be written must not run.

        That it shall stop waits until it listens.
        """
        pid = None
        try:
            with self._alone() as table:
                yield table
                if sys.platform == "win32":
                    raise NotImplementedError("see _check_system")
                command = [sys.executable, "-m", "kotha.server.jobs.job", str(folder), str(os.getpid())]
                nowhere = [(os.POSIX_SPAWN_OPEN, number, os.devnull, os.O_RDWR, 0) for number in range(3)]
                pid = os.posix_spawn(
                    sys.executable, command, os.environ, file_actions=nowhere, setsid=True, setsigmask=STOPPING
                )
                table.execute(
                    "UPDATE jobs SET pid=?, process=?, code=NULL, ended=NULL, why=NULL, spare=zeroblob(?) WHERE id=?",
                    (pid, began(pid), SPARE_BYTES, folder.name),
                )
        except BaseException:
            if pid is not None and sys.platform != "win32":
                os.killpg(pid, signal.SIGKILL)
                os.waitpid(pid, 0)
            if new:  # what never began is no job: a full disk, a file that went meanwhile
                shutil.rmtree(folder, ignore_errors=True)
            raise

    def go_on(self, id: str) -> None:
        """Go on with a training that was stopped, or was killed."""
        _check_system()
        folder, status = self._folder(id), self.status(id)
        if status.state == "running":
            raise JobConflictError("the job {id} is running", id=id)
        if status.kind == DAMAGED:
            raise JobConflictError("the job {id} cannot go on: {said}", id=id, said=status.said)
        if status.kind not in TRAININGS:
            raise JobConflictError("the job {id} is no training; begin it anew", id=id)
        with self._started(folder) as table:
            self._check_room(table)
            row = row_of(table, id)
            if self._state(row) == "running":  # another server was first
                raise JobConflictError("the job {id} is running", id=id)
            if status.state == "done":
                raise JobConflictError("the job {id} is done", id=id)
            if not _has_saved(folder):
                raise JobConflictError("the job {id} had saved nothing yet; begin it anew", id=id)
            (folder / ERROR).unlink(missing_ok=True)
            command = json.loads(row["commands"])[-1][:2]  # train DATA, adapt USE: the rest is in the run's folder
            words = [*command, "--out", str(folder / OUT), "--resume"]
            table.execute("UPDATE jobs SET commands=? WHERE id=?", (as_json([words]), id))

    def label(self, id: str, name: str | None = None, tags: Sequence[str] | None = None) -> None:
        """Give a job another name, or other tags; what is None stays, and an empty name is the one it began with."""
        with self._alone() as table:
            row_of(table, id)
            if name is not None:
                table.execute("UPDATE jobs SET label=? WHERE id=?", (name, id))
            if tags is not None:
                table.execute("UPDATE jobs SET tags=? WHERE id=?", (as_json(tags), id))

    def _check_room(self, table: sqlite3.Connection, new: int = 0) -> None:
        jobs = table.execute("SELECT * FROM jobs").fetchall()
        running = sum(process_of(row) is not None for row in jobs)
        if running >= self._most:
            raise JobConflictError("{running} jobs run already; wait for one, or stop it", running=running)
        if len(jobs) + new > self._limits.jobs:
            raise JobConflictError("{n:,} jobs are kept, which is the most; remove one that nobody needs", n=len(jobs))

    def stop(self, id: str) -> None:
        """Tell a job to stop; a training saves first."""
        process = process_of(self._job(id))
        if process is not None:
            with suppress(ProcessLookupError):
                os.kill(process, signal.SIGTERM)

    def remove(self, id: str) -> None:
        """Remove a job that does not run, with all that came of it, and the files that were brought for it alone."""
        folder = self._folder(id)
        with self._alone() as table:
            row = row_of(table, id)
            if process_of(row) is not None:
                raise JobConflictError("the job {id} is running; stop it first", id=id)
            self._check_unused(table, folder, Message("what came of the job {id}", id=id))
            table.execute("DELETE FROM jobs WHERE id=?", (id,))
            _try(lambda: remove_whole(folder))
            for file in set(json.loads(row["files"])) - needed_files(table):
                if self.uploads.has(file):
                    _try(partial(self.uploads.remove, file))

    def bring(self, text: str, ending: Ending, name: str = "") -> str:
        """Keep a text; its id. Where there is no room for it, spare ones go, the oldest first."""
        with self._alone() as table:
            for each in making_room(self.uploads.all(), self._spare_files(table), len(text.encode()), self._limits):
                _try(partial(self.uploads.remove, each.id))
            return self.uploads.bring(text, ending, name)

    def files(self) -> list[tuple[Upload, bool]]:
        """Every file, the newest first, and whether it is spare: no job needs it."""
        with transaction(self.folder) as table:
            spares = {each.id for each in self._spare_files(table)}
        return [(each, each.id in spares) for each in self.uploads.all()]

    def remove_spare_files(self) -> list[Upload]:
        """Remove every file that no job needs; those that went."""
        with self._alone() as table:
            spares = self._spare_files(table)
            for each in spares:
                _try(partial(self.uploads.remove, each.id))
        return spares

    def _spare_files(self, table: sqlite3.Connection) -> list[Upload]:
        return spare(self.uploads.all(), needed_files(table), self._limits)

    def remove_file(self, id: str) -> None:
        """Remove a file that was brought and that no job works on."""
        with self._alone() as table:
            self._check_unused(table, self.uploads.place(id), Message("the file {id}", id=id))
            _try(lambda: self.uploads.remove(id))

    def _check_unused(self, table: sqlite3.Connection, place: Path, what: Message) -> None:
        """Refuse to take away what a job reads that is running."""
        for row in table.execute("SELECT * FROM jobs"):
            if process_of(row) is not None and any(word.startswith(str(place)) for word in words_of(row)):
                raise JobConflictError(
                    "{what} is used by the job {id}; wait until it has ended, or stop it", what=what, id=row["id"]
                )

    def all(self) -> list[Job]:
        """Every job, the newest first."""
        with transaction(self.folder) as table:
            rows = table.execute("SELECT * FROM jobs ORDER BY began DESC").fetchall()
        return [self._status(row) for row in rows]

    def status(self, id: str) -> Job:
        """One job as it stands."""
        return self._status(self._job(id))

    def stages(self, id: str) -> dict[str, bool]:
        """The commands before the last, by name, and whether what each makes is there: whole, or not at all."""
        return {
            command[command[0] in _SECOND_SAYS]: is_there(Path(command[command.index("--out") + 1]))
            for command in json.loads(self._job(id)["commands"])[:-1]
            if "--out" in command[:-1]
        }

    def _state(self, row: sqlite3.Row) -> JobState:
        if row["code"] is not None:
            return state_of(row["code"])
        return "running" if process_of(row) is not None else "killed"

    def _status(self, row: sqlite3.Row) -> Job:
        state = self._state(row)
        if state == "killed" and row["code"] is None:  # unless it wrote how it ended, and ended, while we looked
            with suppress(NoSuchJobError):
                row = self._job(row["id"])
            state = self._state(row)
        folder, code, ended, why = self.folder / row["id"], row["code"], row["ended"], row["why"]
        if state == "killed" and code is None and (old := _told(lambda: exit_of(folder), None)) is not None:
            code, ended, why = old.code, old.ended, old.why
            state = state_of(code) if code is not None else state
        if row["kind"] == DAMAGED:
            silent: Message | None = Message("its folder is damaged: {why}", why=why)
        else:
            saved = row["kind"] in TRAININGS and _told(lambda: _has_saved(folder), False)
            silent = unsaid(state, code, why, saved)
        last_words = _told(lambda: end_of_log(folder), "")
        parts = (self._without_places(last_words, words_of(row)), silent)
        failure = ToldMessage.of(silent) if silent else None
        if silent is None and state == "failed":
            failure = _told(lambda: self._error(folder, row), None)
        return Job(
            id=row["id"],
            kind=row["kind"],
            name=row["label"] or row["name"],
            state=state,
            began=row["began"],
            ended=ended,
            said="\n".join(str(part).rstrip() for part in parts if part),
            tags=tuple(json.loads(row["tags"])),
            error=failure,
        )

    def _error(self, folder: Path, row: sqlite3.Row) -> ToldMessage | None:
        """Why its command failed, as it left it."""
        try:
            text = (folder / ERROR).read_text(encoding="utf-8") if is_file(folder / ERROR) else ""
            return ToldMessage.model_validate_json(self._without_places(text, words_of(row))) if text else None
        except ValueError:  # a full disk broke it off
            return None

    def _without_places(self, said: str, words: Sequence[str]) -> str:
        """What a command said, with ids and names instead of where things are on this machine."""
        for folder in {f"{self.folder}/", f"{self.folder.resolve()}/"}:
            said = said.replace(folder, "")
        elsewhere = [word for word in words if word.startswith("/") and not word.startswith(f"{self.folder}/")]
        for place in sorted(elsewhere, key=len, reverse=True):  # a model that the server was started with
            said = said.replace(place, Path(place).name)
        return said

    def result(self, id: str) -> Path:
        """Where what came of a job is."""
        return self._folder(id) / OUT

    def trained(self) -> dict[str, Path]:
        """The runs that have a model already, by their jobs' ids."""
        runs = {each.id: self.folder / each.id / OUT for each in self.all() if each.kind in TRAININGS}
        return {id: run for id, run in runs.items() if is_folder(run / RUN_MODEL)}

    def indexed(self) -> dict[str, tuple[str, Path]]:
        """The indexes that were made, by their jobs' ids, each with what people call it."""
        done = [each for each in self.all() if each.kind == "index" and each.state == "done"]
        return {each.id: (each.name or each.id, self.folder / each.id / OUT) for each in done}

    def trained_as(self, id: str) -> Path | None:
        """The run of one job; None where there is no such job, and in words where there is one without a model."""
        try:
            status = self.status(id)
        except NoSuchJobError:
            return None
        run = self.folder / id / OUT
        if status.kind == DAMAGED:
            raise JobConflictError("the job {id} cannot be asked: {said}", id=id, said=status.said)
        if status.kind not in TRAININGS:
            raise UsageError("{id} is a {kind} job, of which no model comes; name a training", id=id, kind=status.kind)
        if not is_folder(run / RUN_MODEL):
            advice = Message("it ended as {state}", state=status.state)
            if status.state == "running":
                advice = Message("ask again when it has saved one")
            raise JobConflictError(
                "the {kind} job {id} has no model yet; {advice}", kind=status.kind, id=id, advice=advice
            )
        return run

    def has(self, id: str) -> bool:
        """Whether an id is a job's."""
        with suppress(NoSuchJobError):
            return bool(self._job(id))
        return False

    def _job(self, id: str) -> sqlite3.Row:
        with transaction(self.folder) as table:
            return row_of(table, id)

    def _folder(self, id: str) -> Path:
        return self.folder / str(self._job(id)["id"])


def _check_system() -> None:
    """Refuse where a process cannot be told to stop, only be ended: a training would lose what it had not saved."""
    if sys.platform == "win32":
        raise JobConflictError(
            "a server keeps no jobs on Windows, where it could not tell them to stop and save; train by command "
            "(kotha train), or run the server under WSL"
        )


def _told(part: Callable[[], T], otherwise: T) -> T:
    """A part of what is told of a job; what the disk does not give is left out, and the job is told all the same."""
    try:
        return part()
    except (OSError, KothaError):
        return otherwise


def _has_saved(folder: Path) -> bool:
    """Whether a training left something to go on from."""
    return bool(matching(folder / OUT / CHECKPOINTS))


def _filled(word: str, places: dict[str, str]) -> str:
    for name, place in places.items():
        word = word.replace(name, place)
    return word


def _try(remove: Callable[[], object]) -> None:
    try:
        remove()
    except OSError as error:
        raise KothaError("it cannot be removed: {why}", why=error.strerror) from error
