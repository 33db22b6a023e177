"""The process of one job, ``python -m kotha.server.jobs.job FOLDER SERVER``: it runs its commands, one after
the other, and writes down how the last of them ended.

It belongs to no server: it is begun in a session of its own, goes on when the server stops, and leaves all that is to
be known of it in its folder. Whoever wants it to stop tells this process, and it tells the command that runs.

A disk that is full takes no last words either. So the place for them is taken at the start, and where they cannot be
written as everything else is, they are written over it.
"""

import json
import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

from kotha.errors import KothaError
from kotha.storage.atomic import write_whole
from kotha.storage.processes import end_with_parent

JOB, PROCESS, LOG, EXIT = "job.json", "process.json", "log.txt", "exit.json"
ERROR = "error.json"  # why the last command failed, as a message
ERROR_VARIABLE = "KOTHA_ERROR_FILE"  # by which a command knows where to leave it
STOPPING = (signal.SIGTERM, signal.SIGINT)  # the signals that tell a job to stop
RESERVED, _RESERVED_BYTES = "reserved.txt", 4096


def main(folder: Path, server: int) -> None:
    """Run a folder's job, which the process ``server`` has begun."""
    told = _Told()
    reserved = folder / RESERVED
    try:
        _wait_until_noted(folder, server)
        _reserve(reserved)
        code = 0
        for words in json.loads((folder / JOB).read_text(encoding="utf-8"))["commands"]:
            if told.number:  # stopped before there was anything to stop
                code = -told.number
            if code:
                break
            with (folder / LOG).open("ab") as log:
                process = subprocess.Popen(
                    [sys.executable, "-m", "kotha", *words],
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                    env={**os.environ, ERROR_VARIABLE: str(folder / ERROR)},
                    preexec_fn=_end_with_this_one,
                )
                told.hand_on_to(process)
                code = process.wait()
                with suppress(OSError):  # its last words are there before it is said to have ended
                    os.fsync(log.fileno())
    except (OSError, subprocess.SubprocessError) as error:  # no place on the disk, no memory for a process
        _write_exit(folder, 1, getattr(error, "strerror", None) or str(error))
        return
    _write_exit(folder, code)
    reserved.unlink(missing_ok=True)


def note_process(folder: Path, pid: int) -> None:
    """Write down which process does a job: by whoever began it, so that it can be found from then on."""
    write_whole(folder / PROCESS, json.dumps({"pid": pid, "began": began(pid)}))


def began(pid: int) -> str | None:
    """When a process began, in the machine's ticks, or as ``ps`` says it; None where there is none."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(") ")[2].split()
    except OSError:
        return None if sys.platform == "linux" else _began_by_ps(pid)
    return None if fields[0] == "Z" else fields[19]


def _began_by_ps(pid: int) -> str | None:
    """The same where there is no ``/proc``: macOS, BSD."""
    asked = ["ps", "-o", "stat=", "-o", "lstart=", "-p", str(pid)]
    told = subprocess.run(asked, capture_output=True, text=True, env={"LC_ALL": "C", "PATH": os.defpath}, check=False)
    state, _, when = told.stdout.strip().partition(" ")
    return " ".join(when.split()) or None if not state.startswith("Z") else None


def _wait_until_noted(folder: Path, server: int) -> None:
    """Do nothing that nobody could find again: if the server died before it wrote us down, we do it."""
    while not _is_noted(folder):
        if os.getppid() != server:
            note_process(folder, os.getpid())
        time.sleep(0.001)


def _is_noted(folder: Path) -> bool:
    try:
        return bool(json.loads((folder / PROCESS).read_text(encoding="utf-8"))["pid"] == os.getpid())
    except (FileNotFoundError, ValueError):
        return False


def _end_with_this_one() -> None:
    """Have the system stop a command whose job is killed: nobody would know of it any more."""
    end_with_parent(signal.SIGTERM)


class _Told:
    """Hears that the job shall stop from the first moment on, and tells the command as soon as there is one.

    Whoever begins us keeps the signals waiting until they are listened to here: before, they would end us unheard.
    """

    def __init__(self) -> None:
        self.number = 0  # of the signal that came; 0: none
        self._process: subprocess.Popen[bytes] | None = None
        for number in STOPPING:
            signal.signal(number, self._hear)
        _keep_waiting(False)  # also for the command, which inherits what waits

    def _hear(self, number: int, _: object) -> None:
        self.number = number
        if self._process is not None:
            self._process.terminate()

    def hand_on_to(self, process: "subprocess.Popen[bytes]") -> None:
        """Tell a command what came, and what comes; once, since a second time would not let it finish."""
        _keep_waiting(True)
        if self.number:
            process.terminate()
        self._process = process
        _keep_waiting(False)


def _keep_waiting(kept: bool) -> None:
    """Have the signals that tell a job to stop wait, or come."""
    if sys.platform != "win32":  # where no job is begun
        signal.pthread_sigmask(signal.SIG_BLOCK if kept else signal.SIG_UNBLOCK, STOPPING)


def _reserve(place: Path) -> None:
    """Take a block of the disk."""
    with place.open("wb") as file:
        file.write(b" " * _RESERVED_BYTES)
        os.fsync(file.fileno())


def _write_exit(folder: Path, code: int, why: str | None = None) -> None:
    """Say how it ended, on a full disk too, if the system changes a file where it lies."""
    found = {"code": code, "ended": time.time(), "why": why}
    try:
        write_whole(folder / EXIT, json.dumps(found))
    except KothaError as error:
        reason = error.__cause__.strerror if isinstance(error.__cause__, OSError) else str(error)
        with (folder / RESERVED).open("r+b") as file:
            file.write(json.dumps({**found, "why": why or reason}).encode())
            os.fsync(file.fileno())
        (folder / RESERVED).replace(folder / EXIT)


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
