"""All jobs of a server, in one folder: begun, looked at, stopped, gone on with, removed.

::

    JOBS/jobs.sqlite             every job: what was asked for, which process does it, how it ended (``table.py``)
    JOBS/uploads/ID.txt          what somebody brought (``uploads.py``)
    JOBS/ID/log.txt              what a job's command says
    JOBS/ID/error.json           why it failed, as a message
    JOBS/ID/out/                 what comes of it: a tokenizer, a data folder, a run, an index

Everything is on disk, so that a server that was killed and started again knows as much as before, and several servers
know the same. One at a time begins a job, in a transaction of the table: so no two of them begin the last that may run.
"""

import json
import os
import secrets
import shutil
import signal
import sqlite3
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from kotha.artifacts.model_folder import RUN_MODEL
from kotha.errors import KothaError
from kotha.i18n.message import Message
from kotha.server.errors import by_name
from kotha.server.jobs.job_process import ERROR, STOPPING
from kotha.server.jobs.status import OUT, TRAININGS, Job, has_saved, job_of, state_of
from kotha.server.jobs.table import (
    SPARE_BYTES,
    JobConflictError,
    NoSuchJobError,
    began,
    create_table,
    insert,
    needed_files,
    process_of,
    row_of,
    transaction,
    update,
    words_of,
)
from kotha.server.jobs.uploads import ID, Ending, Upload, Uploads
from kotha.server.settings import Limits
from kotha.storage.atomic import clear_leftovers, filled_folder, remove_directory
from kotha.storage.status import exists, is_directory

UPLOADS = "uploads"
# Words of a command that a job fills in; what people say has no NUL.
OUT_PLACE, JOB_PLACE = "\0out", "\0job"
# By which versions before kept a job in its folder: it is listed no more, and what came of it may still be wanted.
_NOTE = "job.json"
# Of most commands the first word says what is done.
_SECOND_SAYS = ("corpus",)


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
        known = {row["id"] for row in table.execute("SELECT id FROM jobs")}
        for id in known:
            with suppress(OSError):  # one that cannot be looked at stays as it is, and is no reason not to begin
                if not exists(self.folder / id):
                    table.execute("DELETE FROM jobs WHERE id = ?", (id,))
        for place in self.folder.iterdir():
            if ID.fullmatch(place.name) and place.name not in known and not exists(place / _NOTE):
                shutil.rmtree(place, ignore_errors=True)

    def begin(self, kind: str, name: str, *commands: Sequence[str], tags: Sequence[str] = ()) -> str:
        """Start commands as a job, one after the other.

        ``OUT_PLACE`` in a word stands for where the result shall be, ``JOB_PLACE`` for the job's own folder, for what
        is made on the way.
        """
        _check_system()
        id = secrets.token_hex(6)
        folder = self.folder / id
        filled = [
            [word.replace(OUT_PLACE, str(folder / OUT)).replace(JOB_PLACE, str(folder)) for word in words]
            for words in commands
        ]
        with self._started(folder, new=True) as table:
            self._check_room(table, new=1)
            with filled_folder(folder):  # a folder whose name is lost takes everything in it along
                pass
            files, now = self._named_files(filled), time.time()
            insert(table, id=id, kind=kind, name=name, tags=tags, commands=filled, files=files, began=now)
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
                command = [sys.executable, "-m", "kotha.server.jobs.job_process", str(folder), str(os.getpid())]
                nowhere = [(os.POSIX_SPAWN_OPEN, number, os.devnull, os.O_RDWR, 0) for number in range(3)]
                pid = os.posix_spawn(
                    sys.executable, command, os.environ, file_actions=nowhere, setsid=True, setsigmask=STOPPING
                )
                fresh = {"code": None, "ended": None, "why": None, "spare": bytes(SPARE_BYTES)}
                update(table, folder.name, pid=pid, process=began(pid), **fresh)
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
        with self._started(folder) as table:
            self._check_room(table)
            row = row_of(table, id)
            if state_of(row) == "running":  # another server was first
                raise JobConflictError("the job {id} is running", id=id)
            if status.state == "done":
                raise JobConflictError("the job {id} is done", id=id)
            if not has_saved(folder):
                raise JobConflictError("the job {id} has no checkpoint to resume from; start a new one", id=id)
            (folder / ERROR).unlink(missing_ok=True)
            command = json.loads(row["commands"])[-1][:2]  # train DATA, adapt USE: the rest is in the run's folder
            update(table, id, commands=[[*command, "--out", str(folder / OUT), "--resume"]])

    def label(self, id: str, name: str | None = None, tags: Sequence[str] | None = None) -> None:
        """Give a job another name, or other tags; what is None stays, and an empty name is the one it began with."""
        with self._alone() as table:
            row_of(table, id)
            if name is not None:
                update(table, id, label=name)
            if tags is not None:
                update(table, id, tags=tags)

    def _check_room(self, table: sqlite3.Connection, new: int = 0) -> None:
        jobs = table.execute("SELECT * FROM jobs").fetchall()
        running = sum(process_of(row) is not None for row in jobs)
        if running >= self._most:
            raise JobConflictError(
                "{running} jobs are already running; wait for one to end, or stop one", running=running
            )
        if len(jobs) + new > self._limits.jobs:
            raise JobConflictError(
                "{n:,} jobs are stored, which is the maximum; remove one that is no longer needed", n=len(jobs)
            )

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
            self._check_unused(table, folder, Message("the output of job {id}", id=id))
            table.execute("DELETE FROM jobs WHERE id=?", (id,))
            try:
                remove_directory(folder)
            except OSError as error:
                raise KothaError("it cannot be removed: {why}", why=error.strerror) from error
            for file in filter(self.uploads.has, set(json.loads(row["files"])) - needed_files(table)):
                self.uploads.remove(file)

    def bring(self, text: str, ending: Ending, name: str = "") -> str:
        """Keep a text; its id. Where there is no room for it, spare ones go, the oldest first."""
        with self._alone() as table:
            return self.uploads.bring(text, ending, name, needed_files(table))

    def files(self) -> list[Upload]:
        """Every file, the newest first."""
        with transaction(self.folder) as table:
            return self.uploads.all(needed_files(table))

    def remove_spare_files(self) -> list[Upload]:
        """Remove every file that no job needs; those that went."""
        with self._alone() as table:
            spares = [each for each in self.uploads.all(needed_files(table)) if each.spare]
            for each in spares:
                self.uploads.remove(each.id)
        return spares

    def remove_file(self, id: str) -> None:
        """Remove a file that was brought and that no job works on."""
        with self._alone() as table:
            self._check_unused(table, self.uploads.place(id), Message("the file {id}", id=id))
            self.uploads.remove(id)

    def _check_unused(self, table: sqlite3.Connection, place: Path, what: Message) -> None:
        """Refuse to take away what a job reads that is running."""
        for row in table.execute("SELECT * FROM jobs"):
            if process_of(row) is not None and any(word.startswith(str(place)) for word in words_of(row)):
                raise JobConflictError(
                    "{what} is in use by the job {id}; wait until the job ends, or stop it", what=what, id=row["id"]
                )

    def all(self) -> list[Job]:
        """Every job, the newest first."""
        with transaction(self.folder) as table:
            rows = table.execute("SELECT * FROM jobs ORDER BY began DESC").fetchall()
        return [job_of(self.folder, self._fresh(row)) for row in rows]

    def status(self, id: str) -> Job:
        """One job as it stands."""
        return job_of(self.folder, self._fresh(self._job(id)))

    def stages(self, id: str) -> dict[str, bool]:
        """The commands before the last, by name, and whether what each makes is there: whole, or not at all."""
        return {
            command[command[0] in _SECOND_SAYS]: exists(Path(command[command.index("--out") + 1]))
            for command in json.loads(self._job(id)["commands"])[:-1]
            if "--out" in command[:-1]
        }

    def _fresh(self, row: sqlite3.Row) -> sqlite3.Row:
        """A row, read again where its job seems killed: it may have written how it ended, and ended, since."""
        with suppress(NoSuchJobError):
            return self._job(row["id"]) if row["code"] is None and process_of(row) is None else row
        return row

    def result(self, id: str) -> Path:
        """Where what came of a job is."""
        return self._folder(id) / OUT

    def trained(self) -> dict[str, Path]:
        """The runs that have a model already, by their jobs' ids."""
        runs = {each.id: self.folder / each.id / OUT for each in self.all() if each.kind in TRAININGS}
        return {id: run for id, run in runs.items() if is_directory(run / RUN_MODEL)}

    def indexed(self) -> dict[str, tuple[str, str]]:
        """The indexes that were made, by their jobs' ids, each with what people call it."""
        done = [each for each in self.all() if each.kind == "index" and each.state == "done"]
        return {each.id: (each.name or each.id, str(self.folder / each.id / OUT)) for each in done}

    def trained_as(self, id: str) -> Path | None:
        """The run of one job; None where there is no such job, and in words where there is one without a model."""
        try:
            status = self.status(id)
        except NoSuchJobError:
            return None
        run = self.folder / id / OUT
        if not is_directory(run / RUN_MODEL):
            none = "the {kind} job {id} has no model; a training job has one once it has saved it"
            raise JobConflictError(none, kind=status.kind, id=id)
        return run

    def _job(self, id: str) -> sqlite3.Row:
        with transaction(self.folder) as table:
            return row_of(table, id)

    def _folder(self, id: str) -> Path:
        return self.folder / str(self._job(id)["id"])


def _check_system() -> None:
    """Refuse where a process cannot be told to stop, only be ended: a training would lose what it had not saved."""
    if sys.platform == "win32":
        raise JobConflictError(
            "the server cannot run jobs on Windows, where a process cannot be asked to save and stop; train "
            "with `kotha train`, or run the server under WSL"
        )
