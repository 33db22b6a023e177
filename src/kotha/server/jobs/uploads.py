"""Uploaded files, each stored as ``ID.txt`` (or with another extension), with limits on their number and total size.

A file's display name is stored in ``ID.name``.
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

FileType = Literal["txt", "jsonl", "csv", "tsv"]
ID = re.compile(r"[0-9a-f]{12}")
IDS_IN = re.compile(rf"(?<![0-9a-f]){ID.pattern}(?![0-9a-f])")  # ids in a text


@dataclass(frozen=True)
class Upload:
    """A stored file."""

    id: Id
    file_type: FileType
    n_bytes: int
    uploaded: float
    name: str
    unused: bool  # no job needs it, and it is old enough that no client is about to start a job with it


class Uploads:
    """A folder of uploaded files."""

    def __init__(self, folder: Path, limits: Limits) -> None:
        self._folder, self._limits = folder, limits
        with filled_folder(folder):  # syncs the new name to disk
            pass

    def clear(self) -> None:
        """Remove files left behind by a server that was killed while it stored an upload."""
        clear_leftovers(self._folder, "*")
        for path in matching(self._folder, "*.name"):
            if not self.has(path.stem):
                path.unlink(missing_ok=True)

    def upload(self, text: str, file_type: FileType, name: str, needed: Collection[str]) -> str:
        """Store a file and return its id; the caller must hold the store's write transaction."""
        self._make_room(len(text.encode()), needed)
        id = secrets.token_hex(6)
        try:
            if name:
                atomic_write(self._folder / f"{id}.name", name)
            atomic_write(self._folder / f"{id}.{file_type}", text)
        except KothaError:  # full disk: remove both the file and its name
            with suppress(OSError):
                (self._folder / f"{id}.{file_type}").unlink(missing_ok=True)
                (self._folder / f"{id}.name").unlink(missing_ok=True)
            raise
        return id

    def name(self, id: str) -> str:
        """Return a file's display name, or an empty string."""
        try:
            return (self._folder / f"{id}.name").read_text(encoding="utf-8") if ID.fullmatch(id) else ""
        except (OSError, UnicodeDecodeError):
            return ""

    def _make_room(self, n_bytes: int, needed: Collection[str]) -> None:
        """Remove unused files, oldest first, to make room for one more; remove none if that is not enough."""
        files, limits = self.all(needed), self._limits
        kept = [each.n_bytes for each in files]
        count, total, removed = len(kept), sum(kept), []
        for each in reversed(files):
            if each.unused and (count >= limits.files or total + n_bytes > limits.files_bytes):
                count, total = count - 1, total - each.n_bytes
                removed.append(each.id)
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
        for id in removed:
            self.remove(id)

    def path(self, id: str) -> Path:
        """Return the path of a file."""
        found = self._find(id)
        if found is None:
            raise NoSuchJobError("file {id!r} not found; upload it first", id=id)
        return found

    def has(self, id: str) -> bool:
        """Whether there is a file with this id."""
        return self._find(id) is not None

    def _find(self, id: str) -> Path | None:
        paths = [self._folder / f"{id}.{file_type}" for file_type in get_args(FileType)] if ID.fullmatch(id) else []
        return next(filter(is_file, paths), None)

    def all(self, needed: Collection[str] = ()) -> list[Upload]:
        """Return all files, newest first; those that jobs need are not marked as unused."""
        found, since = [], time.time() - self._limits.file_rest_seconds
        for file_type in get_args(FileType):
            for path in matching(self._folder, f"*.{file_type}"):
                if ID.fullmatch(path.stem):
                    with suppress(FileNotFoundError):  # removed meanwhile
                        about, id = path.stat(), path.stem
                        unused = id not in needed and about.st_mtime <= since
                        found.append(Upload(id, file_type, about.st_size, about.st_mtime, self.name(id), unused))
        return sorted(found, key=lambda each: -each.uploaded)

    def remove(self, id: str) -> None:
        """Delete a file and its name."""
        try:
            self.path(id).unlink(missing_ok=True)
            (self._folder / f"{id}.name").unlink(missing_ok=True)
        except OSError as error:
            raise KothaError("it cannot be removed: {why}", why=error.strerror) from error
