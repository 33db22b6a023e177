"""The files that people bring, each under a name of ours (``ID.txt``), so many and so large together.

What people call a file stands beside it (``ID.name``).
"""

import re
import secrets
import time
from collections.abc import Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, get_args

from kotha.errors import KothaError
from kotha.server.jobs.table import FilesFullError, JobConflictError, NoSuchJobError
from kotha.server.settings import Limits
from kotha.storage.atomic import atomic_write, clear_leftovers, filled_folder
from kotha.storage.status import is_file, matching

Ending = Literal["txt", "jsonl", "csv", "tsv"]
ID = re.compile(r"[0-9a-f]{12}")
IDS_IN = re.compile(rf"(?<![0-9a-f]){ID.pattern}(?![0-9a-f])")  # a text


@dataclass(frozen=True)
class Upload:
    """A file that was brought."""

    id: str
    ending: str
    n_bytes: int
    brought: float
    name: str


class Uploads:
    """A folder of files."""

    def __init__(self, folder: Path, limits: Limits) -> None:
        self._folder, self._limits = folder, limits
        with filled_folder(folder):  # a folder whose name is lost takes everything in it along
            pass

    def clear(self) -> None:
        """Take away what a server left that was killed while it kept a file."""
        clear_leftovers(self._folder, "*")
        for place in matching(self._folder, "*.name"):
            if not self.has(place.stem):
                place.unlink(missing_ok=True)

    def bring(self, text: str, ending: Ending, name: str = "") -> str:
        """Keep a text; its id. No other server changes anything meanwhile: the store sees to that."""
        self._check_room(len(text.encode()))
        id = secrets.token_hex(6)
        place, called = self._folder / f"{id}.{ending}", self._called(id)
        try:
            if name:
                atomic_write(called, name)
            atomic_write(place, text)
        except KothaError:  # a full disk: neither a name without its file nor a file that was refused may stay
            with suppress(OSError):
                place.unlink(missing_ok=True)
                called.unlink(missing_ok=True)
            raise
        return id

    def _called(self, id: str) -> Path:
        return self._folder / f"{id}.name"

    def name(self, id: str) -> str:
        """What people call a file; empty where nobody said it."""
        try:
            return self._called(id).read_text(encoding="utf-8") if ID.fullmatch(id) else ""
        except (OSError, UnicodeDecodeError):
            return ""

    def _check_room(self, n_bytes: int) -> None:
        files, most = self.all(), self._limits.files_bytes
        if len(files) >= self._limits.files:
            raise JobConflictError(
                "{n:,} files are kept, which is the most; remove a job that nobody needs, and its files go with it",
                n=len(files),
            )
        kept = sum(each.n_bytes for each in files)
        if kept + n_bytes > most:
            raise FilesFullError(
                "the files that are kept take {kept:,} bytes, and this one {n_bytes:,} more; {most:,} "
                "together are allowed: remove a job that nobody needs, and its files go with it, or "
                "bring less",
                kept=kept,
                n_bytes=n_bytes,
                most=most,
            )

    def place(self, id: str) -> Path:
        """The file with an id."""
        found = self._find(id)
        if found is None:
            raise NoSuchJobError("there is no file {id!r}; bring it first", id=id)
        return found

    def has(self, id: str) -> bool:
        """Whether an id is a file's."""
        return self._find(id) is not None

    def _find(self, id: str) -> Path | None:
        places = [self._folder / f"{id}.{ending}" for ending in get_args(Ending)] if ID.fullmatch(id) else []
        return next(filter(is_file, places), None)

    def all(self) -> list[Upload]:
        """Every file, the newest first."""
        found = []
        for place in self._folder.iterdir():
            id, _, ending = place.name.partition(".")
            if ID.fullmatch(id) and ending in get_args(Ending):
                with suppress(FileNotFoundError):  # somebody removed it while we looked
                    about = place.stat()
                    found.append(Upload(id, ending, about.st_size, about.st_mtime, self.name(id)))
        return sorted(found, key=lambda each: -each.brought)

    def remove(self, id: str) -> None:
        """Remove a file for good."""
        self.place(id).unlink(missing_ok=True)
        self._called(id).unlink(missing_ok=True)


def spare(files: Sequence[Upload], needed: Collection[str], limits: Limits) -> list[Upload]:
    """Files that no job needs (``needed``: the ids of those that one does), the oldest first.

    They have lain for a while: whoever brings a file begins something with it soon after.
    """
    since = time.time() - limits.file_rest_seconds
    found = [each for each in files if each.id not in needed and each.brought <= since]
    return sorted(found, key=lambda each: each.brought)


def making_room(files: Sequence[Upload], spares: Sequence[Upload], n_bytes: int, limits: Limits) -> list[Upload]:
    """The spare files that must go so that one of ``n_bytes`` more can be kept; none where that would not be enough."""
    count, kept, gone = len(files), sum(each.n_bytes for each in files), 0
    while count >= limits.files or kept + n_bytes > limits.files_bytes:
        if gone == len(spares):
            return []
        count, kept, gone = count - 1, kept - spares[gone].n_bytes, gone + 1
    return list(spares[:gone])
