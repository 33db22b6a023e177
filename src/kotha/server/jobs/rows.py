"""What a row of the table of jobs says."""

import json
import os
import sqlite3
import sys
from contextlib import suppress

from kotha.server.jobs.errors import NoSuchJobError
from kotha.server.jobs.job import began


def row_of(table: sqlite3.Connection, id: str) -> sqlite3.Row:
    """The row of a job."""
    row: sqlite3.Row | None = table.execute("SELECT * FROM jobs WHERE id = ?", (id,)).fetchone()
    if row is None:
        raise NoSuchJobError("there is no job {id!r}", id=id)
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


def as_json(value: object) -> str:
    """As a column has it."""
    return json.dumps(value, ensure_ascii=False)
