"""The table of a server's jobs (SQLite, ``JOBS/jobs.sqlite``): what was asked for, which process does it, how it ended.

A transaction that writes is also the lock by which several servers agree on one folder. The journal stays as long as it
was (``PERSIST``) and a row has spare bytes from the start, so that how a job ended can be written on a full disk too:
nothing new is needed for it.
"""

import errno
import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

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
