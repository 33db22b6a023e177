"""All jobs of a server, in one folder: begun, looked at, stopped, gone on with, removed.

::

    JOBS/uploads/ID.txt          what somebody brought (``uploads.py``)
    JOBS/ID/job.json             what was asked for, and the command that does it
    JOBS/ID/label.json           what people call it since, and its tags
    JOBS/ID/process.json         which process does it, and when that one began
    JOBS/ID/log.txt              what the command says
    JOBS/ID/out/                 what comes of it: a tokenizer, a data folder, a run, an index
    JOBS/ID/exit.json            how it ended

Everything is on disk, so that a server that was killed and started again knows as much as before, and several workers
know the same. One at a time begins a job, held by a lock on the folder: so no two of them begin the last that may run.
"""

import json
import os
import secrets
import shutil
import signal
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from kotha.artifacts.model_folder import RUN_MODEL
from kotha.artifacts.run_folder import CHECKPOINTS
from kotha.errors import KothaError, UsageError
from kotha.i18n.catalogue import Messenger, to_json
from kotha.i18n.message import Message
from kotha.server.jobs.endings import JobState, state_of, unsaid
from kotha.server.jobs.errors import DamagedJobError, JobConflictError, NoSuchJobError
from kotha.server.jobs.job import ERROR, EXIT, JOB, LOG, PROCESS, RESERVED, STOPPING, began, note_process
from kotha.server.jobs.keeping import making_room, needed, spare
from kotha.server.jobs.labels import LABEL
from kotha.server.jobs.notes import ExitNote, JobNote, LabelNote, ProcessNote, label_of, read_label, read_note
from kotha.server.jobs.uploads import ID, Ending, Upload, Uploads, alone
from kotha.server.settings import Limits
from kotha.storage.atomic import clear_leftovers, filled_folder, remove_whole, write_whole
from kotha.storage.status import is_file, is_folder, is_there, matching

OUT, UPLOADS = "out", "uploads"
_SHOWN_BYTES = 4000
# Words of a command that a job fills in; what people say has no NUL.
OUT_PLACE, JOB_PLACE = "\0out", "\0job"
DAMAGED = "damaged"  # the kind of a job whose folder does not say it any more
TRAININGS = ("train", "learn", "adapt", "pairs")  # kinds of which a run comes; they can go on where they stopped

T = TypeVar("T")


@dataclass(frozen=True)
class JobStatus:
    """A job as it stands."""

    id: str
    kind: str
    name: str
    state: JobState
    began: float
    ended: float | None
    said: str  # the last of what its command said, and how it ended where it could not say so itself
    tags: tuple[str, ...] = ()
    error: dict[str, Any] | None = None  # why it failed, as a message of JSON

    def to_dict(self) -> dict[str, Any]:
        """Ready for JSON."""
        return asdict(self)


class JobStore:
    """A folder of jobs."""

    def __init__(self, folder: Path, most_running: int = 2, limits: Limits | None = None) -> None:
        self.folder, self._most, self._limits = folder.absolute(), most_running, limits or Limits()
        self.uploads = Uploads(self.folder / UPLOADS, self._limits)
        with alone(self.folder):
            self._clear()

    def _clear(self) -> None:
        """Take away what a server left that was killed: what never became a job, what was a job no more, and partial
        files; not those of a job that may be running, which writes its own.
        """
        clear_leftovers(self.folder, "*")
        self.uploads.clear()
        for place in self.folder.iterdir():
            if ID.fullmatch(place.name):
                with suppress(OSError):  # one that cannot be looked at stays as it is, and is no reason not to begin
                    clear_leftovers(place, LABEL)
                    if is_there(place / EXIT):
                        (place / RESERVED).unlink(missing_ok=True)
                    if not is_there(place / JOB):
                        shutil.rmtree(place, ignore_errors=True)

    def begin(self, kind: str, name: str, *commands: Sequence[str], tags: Sequence[str] = ()) -> str:
        """Start commands as a job, one after the other.

        ``OUT_PLACE`` in a word stands for where the result shall be, ``JOB_PLACE`` for the job's own folder, for what
        is made on the way.
        """
        _check_system()
        with alone(self.folder):
            self._check_room(new=1)
            id = secrets.token_hex(6)
            folder = self.folder / id
            places = {OUT_PLACE: str(folder / OUT), JOB_PLACE: str(folder)}
            filled = [[_filled(word, places) for word in words] for words in commands]
            with filled_folder(folder):  # a full disk, a file that went meanwhile: what never began is no job
                files = self._named_files(filled)
                job = JobNote(kind=kind, name=name, commands=filled, began=time.time(), files=files)
                write_whole(folder / JOB, job.model_dump_json())
                if tags:
                    write_whole(folder / LABEL, LabelNote(tags=list(tags)).model_dump_json())
                self._start(folder)
        return id

    def _named_files(self, commands: Sequence[Sequence[str]]) -> list[str]:
        """The files that commands read, by their ids; each of them is there."""
        places = {Path(word) for words in commands for word in words if word.startswith(f"{self.folder / UPLOADS}/")}
        return sorted(self.uploads.place(place.stem).stem for place in places)

    def go_on(self, id: str) -> None:
        """Go on with a training that was stopped, or was killed."""
        _check_system()
        with alone(self.folder):
            folder, status = self._folder(id), self.status(id)
            if status.state == "running":
                raise JobConflictError("the job {id} is running", id=id)
            if status.kind == DAMAGED:
                raise JobConflictError("the job {id} cannot go on: {said}", id=id, said=status.said)
            job = read_note(folder / JOB, JobNote)
            if job.kind not in TRAININGS:
                raise JobConflictError("the job {id} is no training; begin it anew", id=id)
            self._check_room()
            if status.state == "done":
                raise JobConflictError("the job {id} is done", id=id)
            if not _has_saved(folder):
                raise JobConflictError("the job {id} had saved nothing yet; begin it anew", id=id)
            for note in (EXIT, ERROR):
                (folder / note).unlink(missing_ok=True)
            command = job.commands[-1][:2]  # train DATA, adapt USE: the rest is in the run's folder
            words = [*command, "--out", str(folder / OUT), "--resume"]
            write_whole(folder / JOB, job.model_copy(update={"commands": [words]}).model_dump_json())
            self._start(folder)

    def label(self, id: str, name: str | None = None, tags: Sequence[str] | None = None) -> None:
        """Give a job another name, or other tags; what is None stays, and an empty name is the one it began with."""
        with alone(self.folder):
            folder = self._folder(id)
            changes = {"name": name, "tags": None if tags is None else list(tags)}
            label = {**read_label(folder).model_dump(), **{key: to for key, to in changes.items() if to is not None}}
            write_whole(folder / LABEL, LabelNote(**label).model_dump_json())

    def _check_room(self, new: int = 0) -> None:
        jobs = self.all()
        running = sum(each.state == "running" for each in jobs)
        if running >= self._most:
            raise JobConflictError("{running} jobs run already; wait for one, or stop it", running=running)
        if len(jobs) + new > self._limits.jobs:
            raise JobConflictError("{n:,} jobs are kept, which is the most; remove one that nobody needs", n=len(jobs))

    def stop(self, id: str) -> None:
        """Tell a job to stop; a training saves first."""
        process = self._process(self._folder(id))
        if process is not None:
            with suppress(ProcessLookupError):
                os.kill(process, signal.SIGTERM)

    def remove(self, id: str) -> None:
        """Remove a job that does not run, with all that came of it, and the files that were brought for it alone."""
        with alone(self.folder):
            folder = self._folder(id)
            if self.status(id).state == "running":
                raise JobConflictError("the job {id} is running; stop it first", id=id)
            self._check_unused(folder, Message("what came of the job {id}", id=id))
            files = needed(self.folder, [each.id for each in self.uploads.all()])
            _try(lambda: remove_whole(folder))
            for file in files - needed(self.folder, files):
                _try(partial(self.uploads.remove, file))

    def bring(self, text: str, ending: Ending, name: str = "") -> str:
        """Keep a text; its id. Where there is no room for it, spare ones go, the oldest first."""
        with alone(self.folder):
            for each in making_room(self.uploads.all(), self._spare_files(), len(text.encode()), self._limits):
                _try(partial(self.uploads.remove, each.id))
            return self.uploads.bring(text, ending, name)

    def files(self) -> list[tuple[Upload, bool]]:
        """Every file, the newest first, and whether it is spare: no job needs it."""
        spares = {each.id for each in self._spare_files()}
        return [(each, each.id in spares) for each in self.uploads.all()]

    def remove_spare_files(self) -> list[Upload]:
        """Remove every file that no job needs; those that went."""
        with alone(self.folder):
            spares = self._spare_files()
            for each in spares:
                _try(partial(self.uploads.remove, each.id))
        return spares

    def _spare_files(self) -> list[Upload]:
        files = self.uploads.all()
        return spare(files, needed(self.folder, [each.id for each in files]), self._limits)

    def remove_file(self, id: str) -> None:
        """Remove a file that was brought and that no job works on."""
        with alone(self.folder):
            self._check_unused(self.uploads.place(id), Message("the file {id}", id=id))
            _try(lambda: self.uploads.remove(id))

    def _check_unused(self, place: Path, what: Message) -> None:
        """Refuse to take away what a job reads that is running."""
        for each in self.all():
            if each.state != "running" or each.kind == DAMAGED:
                continue
            words = read_note(self.folder / each.id / JOB, JobNote).words
            if any(word.startswith(str(place)) for word in words):
                raise JobConflictError(
                    "{what} is used by the job {id}; wait until it has ended, or stop it", what=what, id=each.id
                )

    def all(self) -> list[JobStatus]:
        """Every job, the newest first."""
        found = []
        for place in self.folder.iterdir():
            if ID.fullmatch(place.name):
                with suppress(NoSuchJobError, FileNotFoundError):  # being made, or removed
                    found.append(self._status_among_others(place.name))
        return sorted(found, key=lambda status: -status.began)

    def _status_among_others(self, id: str) -> JobStatus:
        """One job as it stands; one that cannot be looked at must not hide the others."""
        try:
            return self.status(id)
        except OSError as error:
            return _damaged(
                id, self.folder / id, Message("it cannot be read: {why}", why=error.strerror or type(error).__name__)
            )

    def status(self, id: str) -> JobStatus:
        """One job as it stands."""
        folder = self._folder(id)
        try:
            return self._read(id, folder)
        except FileNotFoundError as error:  # it was removed while we looked
            raise NoSuchJobError("there is no job {id!r}", id=id) from error

    def _read(self, id: str, folder: Path) -> JobStatus:
        lives = False
        try:
            lives = self._process(folder) is not None  # before its end is looked for: it is written while it lives
            job = read_note(folder / JOB, JobNote)
            exit = read_note(folder / EXIT, ExitNote) if is_file(folder / EXIT) else None
        except DamagedJobError as error:
            return _damaged(id, folder, error, "running" if lives else "failed")
        state: JobState = state_of(exit.code) if exit else "running" if lives else "killed"
        unlabelled: tuple[LabelNote, Message | None] = LabelNote(), Message("its label cannot be read")
        label, unread = _told(lambda: label_of(folder), unlabelled)
        saved = job.kind in TRAININGS and _told(lambda: _has_saved(folder), False)
        last_words = _told(lambda: _end_of(folder / LOG), "")
        silent = unsaid(state, exit, saved)
        parts = (self._without_places(last_words, job.words), silent, unread)
        said = "\n".join(str(part).rstrip() for part in parts if part)
        failure = to_json(silent) if silent else None
        if silent is None and state == "failed":
            failure = _told(lambda: self._error(folder, job), None)
        ended = exit.ended if exit else None
        name, tags = label.name or job.name, tuple(label.tags)
        return JobStatus(id, job.kind, name, state, job.began, ended, said, tags, failure)

    def _error(self, folder: Path, job: JobNote) -> dict[str, Any] | None:
        """Why its command failed, as it left it."""
        try:
            text = (folder / ERROR).read_text(encoding="utf-8") if is_file(folder / ERROR) else "null"
            found = json.loads(self._without_places(text, job.words))
        except ValueError:  # a full disk broke it off
            return None
        return found if isinstance(found, dict) and isinstance(found.get("values"), dict) else None

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
            run = self.result(id)
        except NoSuchJobError:
            return None
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
        return bool(ID.fullmatch(id)) and is_file(self.folder / id / JOB)

    def _folder(self, id: str) -> Path:
        if not self.has(id):
            raise NoSuchJobError("there is no job {id!r}", id=id)
        return self.folder / id

    def _start(self, folder: Path) -> None:
        """Begin its process, in a session of its own: what ends the server does not reach it.

        That it shall stop waits until it listens.
        """
        if sys.platform == "win32":
            raise NotImplementedError("see _check_system")
        command = [sys.executable, "-m", "kotha.server.jobs.job", str(folder), str(os.getpid())]
        nowhere = [(os.POSIX_SPAWN_OPEN, number, os.devnull, os.O_RDWR, 0) for number in range(3)]
        pid = os.posix_spawn(
            sys.executable, command, os.environ, file_actions=nowhere, setsid=True, setsigmask=STOPPING
        )
        try:
            note_process(folder, pid)
        except KothaError:  # what nobody could find again must not run
            os.killpg(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
            raise

    @staticmethod
    def _process(folder: Path) -> int | None:
        """The process of a job, while it lives; a number may have been given to another since."""
        if is_file(folder / EXIT) or not is_file(folder / PROCESS):
            return None
        if sys.platform == "win32":  # of another system's folder
            return None
        about = read_note(folder / PROCESS, ProcessNote)
        with suppress(ChildProcessError):  # ours, if this server began it: it must not stay as a zombie
            os.waitpid(about.pid, os.WNOHANG)
        return about.pid if began(about.pid) == about.began is not None else None


def _check_system() -> None:
    """Refuse where a process cannot be told to stop, only be ended: a training would lose what it had not saved."""
    if sys.platform == "win32":
        raise JobConflictError(
            "a server keeps no jobs on Windows, where it could not tell them to stop and save; train by command "
            "(kotha train), or run the server under WSL"
        )


def _damaged(id: str, folder: Path, why: Messenger, state: JobState = "failed") -> JobStatus:
    began = 0.0
    try:
        began = folder.stat().st_mtime
    except FileNotFoundError:  # it was removed while we looked
        raise
    except OSError:  # a disk that is broken there
        pass
    damage = Message("its folder is damaged: {why}", why=why)
    return JobStatus(id, DAMAGED, "", state, began, None, str(damage), error=to_json(damage))


def _told(part: Callable[[], T], otherwise: T) -> T:
    """A part of what is told of a job; what the disk does not give is left out, and the job is told all the same."""
    try:
        return part()
    except FileNotFoundError:  # it was removed while we looked
        raise
    except OSError:
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


def _end_of(log: Path) -> str:
    """The last lines of a log."""
    if not is_file(log):
        return ""
    with log.open("rb") as file:
        file.seek(max(0, log.stat().st_size - _SHOWN_BYTES))
        return file.read().decode("utf-8", "replace")
