"""The files that people bring, each under a name of ours (``ID.txt``), so many and so large together.

What people call a file stands beside it (``ID.name``).
"""

import re
import secrets
import time
from collections.abc import Collection
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, get_args

from kotha.errors import KothaError
from kotha.server.errors import RefusedError
from kotha.server.jobs.table import JobConflictError, NoSuchJobError
from kotha.server.json_requests import Id
from kotha.server.settings import Limits
from kotha.storage.atomic import atomic_write, clear_leftovers, filled_folder
from kotha.storage.status import is_file, matching

Ending = Literal["txt", "jsonl", "csv", "tsv"]
ID = re.compile(r"[0-9a-f]{12}")
IDS_IN = re.compile(rf"(?<![0-9a-f]){ID.pattern}(?![0-9a-f])")  # a text


@dataclass(frozen=True)
class Upload:
    """A text that is kept."""

    id: Id
    ending: Ending
    n_bytes: int
    brought: float
    name: str
    spare: bool  # no job needs it, and it has lain for a while: whoever brings a file begins something with it soon


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

    def bring(self, text: str, ending: Ending, name: str, needed: Collection[str]) -> str:
        """Keep a text; its id. No other server changes anything meanwhile: the store sees to that."""
        self._make_room(len(text.encode()), needed)
        id = secrets.token_hex(6)
        try:
            if name:
                atomic_write(self._folder / f"{id}.name", name)
            atomic_write(self._folder / f"{id}.{ending}", text)
        except KothaError:  # a full disk: neither a name without its file nor a file that was refused may stay
            with suppress(OSError):
                (self._folder / f"{id}.{ending}").unlink(missing_ok=True)
                (self._folder / f"{id}.name").unlink(missing_ok=True)
            raise
        return id

    def name(self, id: str) -> str:
        """What people call a file; empty where nobody said it."""
        try:
            return (self._folder / f"{id}.name").read_text(encoding="utf-8") if ID.fullmatch(id) else ""
        except (OSError, UnicodeDecodeError):
            return ""

    def _make_room(self, n_bytes: int, needed: Collection[str]) -> None:
        """Let spare files go, the oldest first, so that one more can be kept; none where that would not be enough."""
        files, limits = self.all(needed), self._limits
        kept = [each.n_bytes for each in files]
        count, total, gone = len(kept), sum(kept), []
        for each in reversed(files):
            if each.spare and (count >= limits.files or total + n_bytes > limits.files_bytes):
                count, total = count - 1, total - each.n_bytes
                gone.append(each.id)
        if count >= limits.files:
            raise JobConflictError(
                "{n:,} files are stored, which is the maximum; remove a job that is no longer needed (its "
                "files are removed with it)",
                n=len(files),
            )
        if total + n_bytes > limits.files_bytes:
            raise RefusedError(
                "the stored files take {kept:,} bytes and this one {n_bytes:,} more; at most {most:,} are "
                "allowed: remove a job that is no longer needed (its files are removed with it), or upload a "
                "smaller file",
                413,
                kept=sum(kept),
                n_bytes=n_bytes,
                most=limits.files_bytes,
            )
        for id in gone:
            self.remove(id)

    def place(self, id: str) -> Path:
        """The file with an id."""
        found = self._find(id)
        if found is None:
            raise NoSuchJobError("file {id!r} not found; upload it first", id=id)
        return found

    def has(self, id: str) -> bool:
        """Whether an id is a file's."""
        return self._find(id) is not None

    def _find(self, id: str) -> Path | None:
        places = [self._folder / f"{id}.{ending}" for ending in get_args(Ending)] if ID.fullmatch(id) else []
        return next(filter(is_file, places), None)

    def all(self, needed: Collection[str] = ()) -> list[Upload]:
        """Every file, the newest first; those that jobs need are not spare."""
        found, since = [], time.time() - self._limits.file_rest_seconds
        for ending in get_args(Ending):
            for place in matching(self._folder, f"*.{ending}"):
                if ID.fullmatch(place.stem):
                    with suppress(FileNotFoundError):  # somebody removed it while we looked
                        about, id = place.stat(), place.stem
                        spare = id not in needed and about.st_mtime <= since
                        found.append(Upload(id, ending, about.st_size, about.st_mtime, self.name(id), spare))
        return sorted(found, key=lambda each: -each.brought)

    def remove(self, id: str) -> None:
        """Remove a file for good."""
        try:
            self.place(id).unlink(missing_ok=True)
            (self._folder / f"{id}.name").unlink(missing_ok=True)
        except OSError as error:
            raise KothaError("it cannot be removed: {why}", why=error.strerror) from error
