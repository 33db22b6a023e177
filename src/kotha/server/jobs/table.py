"""The SQLite table of a server's jobs (``JOBS/jobs.sqlite``), with the commands, process and outcome of each job.

A write transaction also serves as the lock between servers that share a folder. The journal file keeps its size
(``PERSIST``) and each row reserves spare bytes, so the end of a job can be recorded even on a full disk.
"""

import errno
import json
import os
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any

from kotha.errors import KothaError

DATABASE = "jobs.sqlite"
SPARE_BYTES = 512  # reserved for the columns written at the end of a job
_BUSY_SECONDS = 60.0
_TABLE = """
CREATE TABLE IF NOT EXISTS jobs (
    id TEXT PRIMARY KEY,
    kind TEXT NOT NULL,
    name TEXT NOT NULL,               -- given at the start
    label TEXT NOT NULL DEFAULT '',   -- new name, if renamed
    tags TEXT NOT NULL DEFAULT '[]',
    commands TEXT NOT NULL,           -- lists of arguments, run in sequence
    files TEXT NOT NULL DEFAULT '[]', -- ids of its uploads, kept after its commands change
    began REAL NOT NULL,
    pid INTEGER,                      -- of the job's process
    process TEXT,                     -- start time of that process, since pids are reused
    code INTEGER,                     -- exit code of its command; negative: the signal
    ended REAL,
    why TEXT,                         -- error of the job's own process
    spare BLOB
)
"""


class NoSuchJobError(KothaError):
    """There is no job or file with this id."""

    status = 404


class JobConflictError(KothaError):
    """The request conflicts with the state of the jobs."""

    status = 409


@contextmanager
def transaction(folder: Path, *, write: bool = False) -> Iterator[sqlite3.Connection]:
    """Open the table in a folder in a transaction; with ``write``, no other process can write at the same time."""
    try:
        with closing(sqlite3.connect(folder / DATABASE, timeout=_BUSY_SECONDS, isolation_level=None)) as table:
            table.row_factory = sqlite3.Row
            if write:
                table.execute("PRAGMA journal_mode = PERSIST")
            table.execute("BEGIN IMMEDIATE" if write else "BEGIN")
            try:
                yield table
                table.execute("COMMIT")
            finally:
                if table.in_transaction:
                    table.execute("ROLLBACK")
    except sqlite3.Error as error:
        full = getattr(error, "sqlite_errorcode", None) == sqlite3.SQLITE_FULL
        why = os.strerror(errno.ENOSPC) if full else str(error)
        raise KothaError("the list of jobs cannot be read or written: {why}", why=why) from error


def create_table(folder: Path) -> None:
    """Create the table if it does not exist."""
    with transaction(folder, write=True) as table:
        table.execute(_TABLE)


def insert(table: sqlite3.Connection, **row: Any) -> None:
    """Insert a job; lists are stored as JSON."""
    values = list(map(_column, row.values()))
    table.execute(f"INSERT INTO jobs ({', '.join(row)}) VALUES ({', '.join('?' * len(row))})", values)


def update(table: sqlite3.Connection, id: str, **columns: Any) -> None:
    """Update columns in a job's row."""
    names = ", ".join(f"{name} = ?" for name in columns)
    table.execute(f"UPDATE jobs SET {names} WHERE id = ?", [*map(_column, columns.values()), id])


def _column(value: Any) -> Any:
    return json.dumps(value, ensure_ascii=False) if isinstance(value, list | tuple) else value


def row_of(table: sqlite3.Connection, id: str) -> sqlite3.Row:
    """Return a job's row."""
    row: sqlite3.Row | None = table.execute("SELECT * FROM jobs WHERE id = ?", (id,)).fetchone()
    if row is None:
        raise NoSuchJobError("job {id!r} not found", id=id)
    return row


def process_of(row: sqlite3.Row) -> int | None:
    """Return a job's pid if its process is alive, or None; a pid that another process reuses does not count."""
    if (
        row["code"] is not None or row["pid"] is None or sys.platform == "win32"
    ):  # on Windows, for a folder from another system
        return None
    pid: int = row["pid"]
    with suppress(ChildProcessError):  # reaps our own child, so it does not stay a zombie
        os.waitpid(pid, os.WNOHANG)
    return pid if process_start_time(pid) == row["process"] is not None else None


def words_of(row: sqlite3.Row) -> list[str]:
    """Return all arguments of a job's commands."""
    return [word for command in json.loads(row["commands"]) for word in command]


def needed_files(table: sqlite3.Connection) -> set[str]:
    """Return the ids of files that jobs need: a resumed run reads its table again, and an index cites files by name."""
    return {file for row in table.execute("SELECT files FROM jobs") for file in json.loads(row["files"])}


def process_start_time(pid: int) -> str | None:
    """Return a process's start time, in clock ticks or as ``ps`` prints it, or None if there is no such process."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(") ")[2].split()
    except OSError:
        return None if sys.platform == "linux" else _start_time_by_ps(pid)
    return None if fields[0] == "Z" else fields[19]


def _start_time_by_ps(pid: int) -> str | None:
    """Return the start time on systems without ``/proc``, such as macOS and BSD."""
    command = ["ps", "-o", "stat=", "-o", "lstart=", "-p", str(pid)]
    done = subprocess.run(command, capture_output=True, text=True, env={"LC_ALL": "C", "PATH": os.defpath}, check=False)
    state, _, when = done.stdout.strip().partition(" ")
    return " ".join(when.split()) or None if not state.startswith("Z") else None
