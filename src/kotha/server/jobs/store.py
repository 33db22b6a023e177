"""A server's jobs, stored in one folder: start, inspect, stop, resume and remove them.

::

    JOBS/jobs.sqlite             every job: commands, process, and how it ended (``table.py``)
    JOBS/uploads/ID.txt          uploaded files (``uploads.py``)
    JOBS/ID/log.txt              output of the job's commands
    JOBS/ID/error.json           the error, if it failed
    JOBS/ID/out/                 output: a run or an index

All state is on disk, so a restarted server has the same jobs, and several servers can share the folder. Jobs are
started in a transaction on the table, so that all servers together respect the limit on running jobs.
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
from kotha.server.jobs.access import check_folder, is_job_process
from kotha.server.jobs.job_process import ERROR, STOPPING
from kotha.server.jobs.status import OUT, TRAININGS, Job, has_saved, job_of, state_of
from kotha.server.jobs.table import (
    SPARE_BYTES,
    JobConflictError,
    NoSuchJobError,
    create_table,
    insert,
    needed_files,
    process_of,
    process_start_time,
    row_of,
    transaction,
    update,
    words_of,
)
from kotha.server.jobs.uploads import ID, FileType, Upload, Uploads
from kotha.server.settings import Limits
from kotha.storage.atomic import clear_leftovers, filled_folder, remove_directory
from kotha.storage.status import exists, is_directory

UPLOADS = "uploads"
# Placeholders in commands; user input cannot contain NUL.
OUT_PLACE, JOB_PLACE = "\0out", "\0job"
# File that earlier versions wrote for each job; these jobs are not listed, but their folders are kept.
_OLD_JOB = "job.json"
# Commands whose stage is named after their second word; all others are named after the first.
_GROUPS = ("corpus",)


class JobStore:
    """A folder of jobs."""

    def __init__(self, folder: Path, most_running: int = 2, limits: Limits | None = None) -> None:
        self.folder, self._most, self._limits = folder.absolute(), most_running, limits or Limits()
        check_folder(self.folder)
        self.uploads = Uploads(self.folder / UPLOADS, self._limits)
        create_table(self.folder)
        with self._locked() as table:
            self._clear(table)

    @contextmanager
    def _locked(self) -> Iterator[sqlite3.Connection]:
        """Hold a write transaction, so that no other server changes anything; errors omit the folder's path."""
        with by_name({f"{self.folder}/": ""}), transaction(self.folder, write=True) as table:
            yield table

    def _clear(self, table: sqlite3.Connection) -> None:
        """Remove leftovers from a killed server: folders that never became a job, and rows without a folder."""
        clear_leftovers(self.folder, "*")
        self.uploads.clear()
        known = {row["id"] for row in table.execute("SELECT id FROM jobs")}
        for id in known:
            with suppress(OSError):  # keep a job whose folder cannot be read, and start anyway
                if not exists(self.folder / id):
                    table.execute("DELETE FROM jobs WHERE id = ?", (id,))
        for path in self.folder.iterdir():
            if ID.fullmatch(path.name) and path.name not in known and not exists(path / _OLD_JOB):
                shutil.rmtree(path, ignore_errors=True)

    def begin(self, kind: str, name: str, *commands: Sequence[str], tags: Sequence[str] = ()) -> str:
        """Start a job that runs commands in sequence, and return its id.

        In arguments, ``OUT_PLACE`` stands for the path of the job's output and ``JOB_PLACE`` for that of its folder.
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
            with filled_folder(folder):  # syncs the new name to disk
                pass
            files, now = self._named_files(filled), time.time()
            insert(table, id=id, kind=kind, name=name, tags=tags, commands=filled, files=files, began=now)
        return id

    def _named_files(self, commands: Sequence[Sequence[str]]) -> list[str]:
        """Return the ids of the uploads that commands read; raises an error if one does not exist."""
        paths = {Path(word) for words in commands for word in words if word.startswith(f"{self.folder / UPLOADS}/")}
        return sorted(self.uploads.path(path.stem).stem for path in paths)

    @contextmanager
    def _started(self, folder: Path, new: bool = False) -> Iterator[sqlite3.Connection]:
        """Start a job's process when the ``with`` block ends, in its own session, so that it outlives the server.

        The process waits until its pid is in the table; if the pid cannot be written, the process is killed. Stop
        signals are blocked until the process has installed its handlers.
        """
        pid = None
        try:
            with self._locked() as table:
                yield table
                if sys.platform == "win32":
                    raise NotImplementedError("see _check_system")
                command = [sys.executable, "-m", "kotha.server.jobs.job_process", str(folder), str(os.getpid())]
                nowhere = [(os.POSIX_SPAWN_OPEN, number, os.devnull, os.O_RDWR, 0) for number in range(3)]
                pid = os.posix_spawn(
                    sys.executable, command, os.environ, file_actions=nowhere, setsid=True, setsigmask=STOPPING
                )
                fresh = {"code": None, "ended": None, "why": None, "spare": bytes(SPARE_BYTES)}
                update(table, folder.name, pid=pid, process=process_start_time(pid), **fresh)
        except BaseException:
            if pid is not None and sys.platform != "win32":
                os.killpg(pid, signal.SIGKILL)
                os.waitpid(pid, 0)
            if new:  # not started: full disk, or a file removed meanwhile
                shutil.rmtree(folder, ignore_errors=True)
            raise

    def resume(self, id: str) -> None:
        """Resume a training job that was stopped or killed."""
        _check_system()
        folder, status = self._folder(id), self.status(id)
        if status.state == "running":
            raise JobConflictError("the job {id} is running", id=id)
        with self._started(folder) as table:
            self._check_room(table)
            row = row_of(table, id)
            if state_of(row) == "running":  # started by another server
                raise JobConflictError("the job {id} is running", id=id)
            if status.state == "done":
                raise JobConflictError("the job {id} is done", id=id)
            if not has_saved(folder):
                raise JobConflictError("the job {id} has no checkpoint to resume from; start a new one", id=id)
            (folder / ERROR).unlink(missing_ok=True)
            command = json.loads(row["commands"])[-1][
                :2
            ]  # `train DATA`, `finetune USE`: settings are in the run folder
            update(table, id, commands=[[*command, "--out", str(folder / OUT), "--resume"]])

    def label(self, id: str, name: str | None = None, tags: Sequence[str] | None = None) -> None:
        """Change a job's name or tags; None keeps them, and an empty name restores the original one."""
        with self._locked() as table:
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
        """Signal a job to stop; a training run saves a checkpoint first."""
        process = process_of(self._job(id))
        if process is not None:
            if not is_job_process(process, id):
                raise JobConflictError(
                    "process {pid} was not started for the job {id}; it was not stopped", pid=str(process), id=id
                )
            with suppress(ProcessLookupError):
                os.kill(process, signal.SIGTERM)

    def remove(self, id: str) -> None:
        """Remove a job that is not running, with its output and the uploads that no other job needs."""
        folder = self._folder(id)
        with self._locked() as table:
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

    def upload(self, text: str, file_type: FileType, name: str = "") -> str:
        """Store a file and return its id; if the store is full, unused files are removed, oldest first."""
        with self._locked() as table:
            return self.uploads.upload(text, file_type, name, needed_files(table))

    def files(self) -> list[Upload]:
        """Return all files, newest first."""
        with transaction(self.folder) as table:
            return self.uploads.all(needed_files(table))

    def remove_unused_files(self) -> list[Upload]:
        """Remove all files that no job needs, and return them."""
        with self._locked() as table:
            unused = [each for each in self.uploads.all(needed_files(table)) if each.unused]
            for each in unused:
                self.uploads.remove(each.id)
        return unused

    def remove_file(self, id: str) -> None:
        """Remove a file that no running job reads."""
        with self._locked() as table:
            self._check_unused(table, self.uploads.path(id), Message("the file {id}", id=id))
            self.uploads.remove(id)

    def _check_unused(self, table: sqlite3.Connection, path: Path, what: Message) -> None:
        """Raise JobConflictError if a running job reads a path."""
        for row in table.execute("SELECT * FROM jobs"):
            if process_of(row) is not None and any(word.startswith(str(path)) for word in words_of(row)):
                raise JobConflictError(
                    "{what} is in use by the job {id}; wait until the job ends, or stop it", what=what, id=row["id"]
                )

    def all(self) -> list[Job]:
        """Return all jobs, newest first."""
        with transaction(self.folder) as table:
            rows = table.execute("SELECT * FROM jobs ORDER BY began DESC").fetchall()
        return [job_of(self.folder, self._fresh(row)) for row in rows]

    def status(self, id: str) -> Job:
        """Return the status of a job."""
        return job_of(self.folder, self._fresh(self._job(id)))

    def stages(self, id: str) -> dict[str, bool]:
        """Return the stages before the last command, by name, and whether the output of each is complete."""
        return {
            command[command[0] in _GROUPS]: exists(Path(command[command.index("--out") + 1]))
            for command in json.loads(self._job(id)["commands"])[:-1]
            if "--out" in command[:-1]
        }

    def _fresh(self, row: sqlite3.Row) -> sqlite3.Row:
        """Read the row again if its process is gone, because the job may have recorded its end in the meantime."""
        with suppress(NoSuchJobError):
            return self._job(row["id"]) if row["code"] is None and process_of(row) is None else row
        return row

    def result(self, id: str) -> Path:
        """Return the path of a job's output."""
        return self._folder(id) / OUT

    def trained(self) -> dict[str, Path]:
        """Return the run folders that have a model, by job id."""
        runs = {each.id: self.folder / each.id / OUT for each in self.all() if each.kind in TRAININGS}
        return {id: run for id, run in runs.items() if is_directory(run / RUN_MODEL)}

    def indexed(self) -> dict[str, tuple[str, str]]:
        """Return the finished indexes by job id, each with its title and path."""
        done = [each for each in self.all() if each.kind == "index" and each.state == "done"]
        return {each.id: (each.name or each.id, str(self.folder / each.id / OUT)) for each in done}

    def trained_as(self, id: str) -> Path | None:
        """Return a job's run folder, or None if there is no such job; raises JobConflictError if it has no model."""
        try:
            status = self.status(id)
        except NoSuchJobError:
            return None
        run = self.folder / id / OUT
        if not is_directory(run / RUN_MODEL):
            none = "the {kind} job {id} has no model; a training job has a model once it has saved one"
            raise JobConflictError(none, kind=status.kind, id=id)
        return run

    def _job(self, id: str) -> sqlite3.Row:
        with transaction(self.folder) as table:
            return row_of(table, id)

    def _folder(self, id: str) -> Path:
        return self.folder / str(self._job(id)["id"])


def _check_system() -> None:
    """Raise JobConflictError on Windows, where processes can only be killed, so training would lose its progress."""
    if sys.platform == "win32":
        raise JobConflictError(
            "the server cannot run jobs on Windows, where it cannot signal a process to save and stop; train "
            "with `kotha train`, or run the server under WSL"
        )
