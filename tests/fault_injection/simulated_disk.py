"""Simulate what a power cut leaves on disk after a sequence of system calls.

POSIX guarantees file contents only after ``fsync`` of the file, and directory entries only after ``fsync`` of the
directory. The two extremes are simulated:

- ``data`` lost: directory entries are current, and files contain what was last synced (new files are empty), as on a
file system that journals only metadata.
- ``names`` lost: a directory contains the entries that it had when it was last synced.
"""

import os
import posixpath
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from tests.fault_injection.system_calls import Call

LOST = ("data", "names")


@dataclass
class _File:
    held: bytearray
    synced: bytes = b""
    is_directory = False

    def sync(self) -> None:
        self.synced = bytes(self.held)


@dataclass
class _Folder:
    held: dict[str, "_File | _Folder"] = field(default_factory=dict)
    synced: dict[str, "_File | _Folder"] = field(default_factory=dict)
    is_directory = True

    def sync(self) -> None:
        self.synced = dict(self.held)


class Disk:
    """A directory, in its current state and in the possible states after a power cut."""

    def __init__(self, root: Path) -> None:
        """Load a directory; everything in it counts as synced."""
        self._root = str(root)
        self._top = _read(root)
        self._places: dict[tuple[int, int], int] = {}  # file offsets by process and descriptor; -1 appends

    def apply(self, call: Call) -> None:
        """Apply a system call."""
        if call.result >= 0 and (do := getattr(self, f"_{call.name}", None)) is not None:
            do(call)

    def left(self, lost: str | None = None) -> dict[str, bytes | None]:
        """Return contents by path (None for directories): the current state, or the state after a power cut."""
        return dict(self._walk(self._top, "", lost))

    def _walk(self, folder: _Folder, above: str, lost: str | None) -> Iterator[tuple[str, bytes | None]]:
        for name, node in sorted((folder.synced if lost == "names" else folder.held).items()):
            path = posixpath.join(above, name)
            if isinstance(node, _Folder):
                yield path, None
                yield from self._walk(node, path, lost)
            else:
                yield path, bytes(node.held) if lost is None else node.synced

    # -- lookup --------------------------------------------------------------------------------------------------------

    def _split(self, path: str) -> tuple[_Folder, str] | None:
        """Return the parent directory of a path and its name; None outside the root."""
        inside = posixpath.relpath(path, self._root)
        if inside.startswith("..") or inside == ".":
            return None
        *above, name = inside.split("/")
        folder = self._top
        for each in above:
            found = folder.held.get(each)
            if not isinstance(found, _Folder):
                return None
            folder = found
        return folder, name

    def _node(self, path: str) -> "_File | _Folder | None":
        if path == self._root:
            return self._top
        found = self._split(path)
        return found[0].held.get(found[1]) if found else None

    def _file(self, call: Call) -> _File | None:
        """Return the file of a call's first descriptor."""
        node = self._node(call.places()[0]) if call.places() else None
        return node if isinstance(node, _File) else None

    @staticmethod
    def _paths(call: Call) -> list[str]:
        """Return the paths that a call names, resolved against their directory descriptors."""
        folders, named = call.places(), [os.fsdecode(text) for text in call.texts()]
        if call.name.endswith(("at", "at2")):
            return [posixpath.join(folder, name) for folder, name in zip(folders, named, strict=False)]
        return named

    # -- system calls -------------------------------------------------------------------------------------------------

    def _openat(self, call: Call) -> None:
        path, flags = call.places()[-1], call.words
        self._places[call.process, call.result] = 0
        found = self._split(path)
        if found is None:
            return
        folder, name = found
        if "O_CREAT" in flags and name not in folder.held:
            folder.held[name] = _File(bytearray())
        node = folder.held.get(name)
        if isinstance(node, _File):
            if "O_TRUNC" in flags:
                node.held.clear()
            if "O_APPEND" in flags:
                self._places[call.process, call.result] = -1

    _open = _creat = _openat

    def _lseek(self, call: Call) -> None:
        key = call.process, _descriptor(call)
        if self._places.get(key) != -1:
            self._places[key] = call.result

    def _write(self, call: Call) -> None:
        file = self._file(call)
        if file is None:
            return
        key = call.process, _descriptor(call)
        at = self._places.get(key, 0)
        at = len(file.held) if at == -1 else at
        self._put(file, at, call.texts()[0][: call.result])
        if self._places.get(key) != -1:
            self._places[key] = at + call.result

    def _pwrite64(self, call: Call) -> None:
        file = self._file(call)
        if file is not None:
            self._put(file, int(call.words.rsplit(", ", 1)[1]), call.texts()[0][: call.result])

    @staticmethod
    def _put(file: _File, at: int, data: bytes) -> None:
        if len(file.held) < at:
            file.held.extend(bytes(at - len(file.held)))
        file.held[at : at + len(data)] = data

    def _ftruncate(self, call: Call) -> None:
        file, size = self._file(call), int(call.words.rsplit(", ", 1)[1])
        if file is not None:
            del file.held[size:]
            file.held.extend(bytes(size - len(file.held)))

    def _fsync(self, call: Call) -> None:
        node = self._node(call.places()[0])
        if node is not None:
            node.sync()

    _fdatasync = _fsync

    def _mkdirat(self, call: Call) -> None:
        found = self._split(self._paths(call)[0])
        if found is not None:
            found[0].held[found[1]] = _Folder()

    _mkdir = _mkdirat

    def _unlinkat(self, call: Call) -> None:
        found = self._split(self._paths(call)[0])
        if found is not None:
            found[0].held.pop(found[1], None)

    _unlink = _rmdir = _unlinkat

    def _renameat2(self, call: Call) -> None:
        source, target = (self._split(path) for path in self._paths(call)[:2])
        if source is None or target is None:
            return
        moved, there = source[0].held.pop(source[1]), target[0].held.get(target[1])
        target[0].held[target[1]] = moved
        if "RENAME_EXCHANGE" in call.words and there is not None:
            source[0].held[source[1]] = there

    _rename = _renameat = _renameat2


def _descriptor(call: Call) -> int:
    found = re.match(r"\d+", call.words)
    return int(found[0]) if found else -1


def _read(folder: Path) -> _Folder:
    found = _Folder()
    for path in folder.iterdir():
        if path.is_dir():
            found.held[path.name] = _read(path)
        else:
            found.held[path.name] = _File(bytearray(path.read_bytes()), path.read_bytes())
    found.sync()
    return found
