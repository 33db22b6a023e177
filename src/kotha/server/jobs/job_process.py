"""The process of one job, ``python -m kotha.server.jobs.job_process FOLDER SERVER``: it runs its commands, one after
the other, and writes down how the last of them ended.

It belongs to no server: it is begun in a session of its own, goes on when the server stops, and leaves all that is to
be known of it in the table and in its folder. Whoever wants it to stop tells this process, and it tells the command
that runs. Nothing is done before the table says which process does it; a job of a server that died before is none.
"""

import json
import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from functools import partial
from pathlib import Path

from kotha.errors import KothaError
from kotha.server.jobs.table import transaction
from kotha.storage.processes import end_with_parent

LOG = "log.txt"
ERROR = "error.json"  # why the last command failed, as a message
ERROR_VARIABLE = "KOTHA_ERROR_FILE"  # by which a command knows where to leave it
STOPPING = (signal.SIGTERM, signal.SIGINT)  # the signals that tell a job to stop
_PAUSES = (0.0, 1.0, 5.0, 25.0)  # in seconds, before it is tried again to say how it ended


def main(folder: Path, server: int) -> None:
    """Run a folder's job, which the process ``server`` has begun."""
    told = _Told()
    commands = _commands(folder, server)
    if commands is None:
        return
    code, why = 0, None
    try:
        for words in commands:
            if told.number:  # stopped before there was anything to stop
                code = -told.number
            if code:
                break
            code = _run(words, folder, told)
    except (OSError, subprocess.SubprocessError) as error:  # no place on the disk, no memory for a process
        code, why = 1, getattr(error, "strerror", None) or str(error)
    _write_exit(folder, code, why)


def _commands(folder: Path, server: int) -> list[list[str]] | None:
    """What is to be done, once the table says that we do it; None where its server died before."""
    while True:
        alone = os.getppid() != server  # before the table is read: what a server writes it writes while it lives
        with transaction(folder.parent) as table:
            row = table.execute("SELECT pid, commands FROM jobs WHERE id = ?", (folder.name,)).fetchone()
        if row is not None and row["pid"] == os.getpid():
            commands: list[list[str]] = json.loads(row["commands"])
            return commands
        if alone:
            return None
        time.sleep(0.005)


def _run(words: list[str], folder: Path, told: "_Told") -> int:
    with (folder / LOG).open("ab") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "kotha", *words],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            env={**os.environ, ERROR_VARIABLE: str(folder / ERROR)},
            # The system stops a command whose job is killed: nobody would know of it any more.
            preexec_fn=partial(end_with_parent, signal.SIGTERM),
        )
        told.hand_on_to(process)
        code = process.wait()
        with suppress(OSError):  # its last words are there before it is said to have ended
            os.fsync(log.fileno())
    return code


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


def _write_exit(folder: Path, code: int, why: str | None) -> None:
    """Say how it ended; where the disk refuses it, a few times."""
    values = (code, time.time(), why, folder.name, os.getpid())
    for pause in _PAUSES:
        time.sleep(pause)
        with suppress(KothaError), transaction(folder.parent, write=True) as table:
            table.execute("UPDATE jobs SET code=?, ended=?, why=?, spare=NULL WHERE id=? AND pid=?", values)
            break


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
