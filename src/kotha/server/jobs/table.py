"""The table of a server's jobs (SQLite, ``JOBS/jobs.sqlite``): what was asked for, which process does it, how it ended.

A transaction that writes is also the lock by which several servers agree on one folder. The journal stays as long as it
was (``PERSIST``) and a row has spare bytes from the start, so that how a job ended can be written on a full disk too:
nothing new is needed for it.
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
SPARE_BYTES = 512  # for what is written at a job's end
_BUSY_SECONDS = 60.0
_TABLE = """
CREATE TABLE IF NOT EXISTS jobs (
    id TEXT PRIMARY KEY,
    kind TEXT NOT NULL,
    name TEXT NOT NULL,               -- as it was begun
    label TEXT NOT NULL DEFAULT '',   -- what people call it since
    tags TEXT NOT NULL DEFAULT '[]',
    commands TEXT NOT NULL,           -- lists of words, one after the other
    files TEXT NOT NULL DEFAULT '[]', -- that were brought for it, by their ids; also once no command names them
    began REAL NOT NULL,
    pid INTEGER,                      -- of the process that does it
    process TEXT,                     -- when that one began: a number is given to others later
    code INTEGER,                     -- how its command ended; a negative one is the signal that ended it
    ended REAL,
    why TEXT,                         -- what went wrong around the command
    spare BLOB
)
"""


class NoSuchJobError(KothaError):
    """An id that no job, and no file, has."""

    status = 404


class JobConflictError(KothaError):
    """What is asked for does not go with how jobs stand."""

    status = 409


@contextmanager
def transaction(folder: Path, *, write: bool = False) -> Iterator[sqlite3.Connection]:
    """The table of a folder: all that is done inside is done, or nothing; while one writes, no other does."""
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
    """Make the table, where there is none yet."""
    with transaction(folder, write=True) as table:
        table.execute(_TABLE)


def insert(table: sqlite3.Connection, **row: Any) -> None:
    """Write a new job; lists are kept as JSON."""
    values = list(map(_column, row.values()))
    table.execute(f"INSERT INTO jobs ({', '.join(row)}) VALUES ({', '.join('?' * len(row))})", values)


def update(table: sqlite3.Connection, id: str, **columns: Any) -> None:
    """Write some columns of a job anew."""
    names = ", ".join(f"{name} = ?" for name in columns)
    table.execute(f"UPDATE jobs SET {names} WHERE id = ?", [*map(_column, columns.values()), id])


def _column(value: Any) -> Any:
    return json.dumps(value, ensure_ascii=False) if isinstance(value, list | tuple) else value


def row_of(table: sqlite3.Connection, id: str) -> sqlite3.Row:
    """The row of a job."""
    row: sqlite3.Row | None = table.execute("SELECT * FROM jobs WHERE id = ?", (id,)).fetchone()
    if row is None:
        raise NoSuchJobError("job {id!r} not found", id=id)
    return row


def process_of(row: sqlite3.Row) -> int | None:
    """The process of a job, while it lives; a number may have been given to another since."""
    if row["code"] is not None or row["pid"] is None or sys.platform == "win32":  # the last of another system's folder
        return None
    pid: int = row["pid"]
    with suppress(ChildProcessError):  # ours, if this server began it: it must not stay as a zombie
        os.waitpid(pid, os.WNOHANG)
    return pid if began(pid) == row["process"] is not None else None


def words_of(row: sqlite3.Row) -> list[str]:
    """Every word of a job's commands."""
    return [word for command in json.loads(row["commands"]) for word in command]


def needed_files(table: sqlite3.Connection) -> set[str]:
    """The files that jobs need for as long as they are kept: a training that goes on reads its table again, and an
    index says by their names where a passage stands.
    """
    return {file for row in table.execute("SELECT files FROM jobs") for file in json.loads(row["files"])}


def began(pid: int) -> str | None:
    """When a process began, in the machine's ticks, or as ``ps`` says it; None where there is none."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(") ")[2].split()
    except OSError:
        return None if sys.platform == "linux" else _began_by_ps(pid)
    return None if fields[0] == "Z" else fields[19]


def _began_by_ps(pid: int) -> str | None:
    """The same where there is no ``/proc``: macOS, BSD."""
    command = ["ps", "-o", "stat=", "-o", "lstart=", "-p", str(pid)]
    told = subprocess.run(command, capture_output=True, text=True, env={"LC_ALL": "C", "PATH": os.defpath}, check=False)
    state, _, when = told.stdout.strip().partition(" ")
    return " ".join(when.split()) or None if not state.startswith("Z") else None
