"""The process for one job, started as ``python -m kotha.server.jobs.job_process FOLDER SERVER``.

The process runs the job's commands in sequence, and records how the last one ended. This process has its own session,
so it continues when the server stops. The state of the job is stored only in the table and in the job's folder. Stop
signals go to this process, which forwards them to the running command. The process starts no command until its process
id is in the table; if the server dies before writing the id, the process exits.
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
ERROR_VARIABLE = "KOTHA_ERROR_FILE"  # tells a command where to write it
STOPPING = (signal.SIGTERM, signal.SIGINT)  # the signals that tell a job to stop
_PAUSES = (0.0, 1.0, 5.0, 25.0)  # seconds before each attempt to record the end


def main(folder: Path, server: int) -> None:
    """Run the job in a folder; ``server`` is the process id of the server that started it."""
    signals = _StopSignals()
    commands = _commands(folder, server)
    if commands is None:
        return
    code, why = 0, None
    try:
        for words in commands:
            if signals.number:  # stopped before a command was running
                code = -signals.number
            if code:
                break
            code = _run(words, folder, signals)
    except (OSError, subprocess.SubprocessError) as error:  # no disk space, or no memory for a process
        code, why = 1, getattr(error, "strerror", None) or str(error)
    _write_exit(folder, code, why)


def _commands(folder: Path, server: int) -> list[list[str]] | None:
    """Wait until this process is in the table; return the job's commands, or None if the server died before that."""
    while True:
        is_orphan = os.getppid() != server  # checked before the table is read: the server may write and then die
        with transaction(folder.parent) as table:
            row = table.execute("SELECT pid, commands FROM jobs WHERE id = ?", (folder.name,)).fetchone()
        if row is not None and row["pid"] == os.getpid():
            commands: list[list[str]] = json.loads(row["commands"])
            return commands
        if is_orphan:
            return None
        time.sleep(0.005)


def _run(words: list[str], folder: Path, signals: "_StopSignals") -> int:
    with (folder / LOG).open("ab") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "kotha", *words],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            env={**os.environ, ERROR_VARIABLE: str(folder / ERROR)},
            # If this process is killed, the system also stops the command; nothing else would stop it.
            preexec_fn=partial(end_with_parent, signal.SIGTERM),
        )
        signals.forward_to(process)
        code = process.wait()
        with suppress(OSError):  # the log must be on disk before the end is recorded
            os.fsync(log.fileno())
    return code


class _StopSignals:
    """Receives stop signals from the start, and forwards them to the command once one is running.

    The server starts this process with these signals blocked, so that none is lost before the handlers are installed.
    """

    def __init__(self) -> None:
        self.number = 0  # of the received signal; 0: none
        self._process: subprocess.Popen[bytes] | None = None
        for number in STOPPING:
            signal.signal(number, self._handle)
        _block_signals(False)  # also for the command, which inherits the mask

    def _handle(self, number: int, _: object) -> None:
        self.number = number
        if self._process is not None:
            self._process.terminate()

    def forward_to(self, process: "subprocess.Popen[bytes]") -> None:
        """Forward the stop signal to a command, now or as soon as it is received.

        The signal is forwarded only once, because a second one would kill the command.
        """
        _block_signals(True)
        if self.number:
            process.terminate()
        self._process = process
        _block_signals(False)


def _block_signals(blocked: bool) -> None:
    """Block or unblock the stop signals."""
    if sys.platform != "win32":  # where jobs are not supported
        signal.pthread_sigmask(signal.SIG_BLOCK if blocked else signal.SIG_UNBLOCK, STOPPING)


def _write_exit(folder: Path, code: int, why: str | None) -> None:
    """Record how the job ended; retry a few times on an I/O error."""
    values = (code, time.time(), why, folder.name, os.getpid())
    for pause in _PAUSES:
        time.sleep(pause)
        with suppress(KothaError), transaction(folder.parent, write=True) as table:
            table.execute("UPDATE jobs SET code=?, ended=?, why=?, spare=NULL WHERE id=? AND pid=?", values)
            break


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
