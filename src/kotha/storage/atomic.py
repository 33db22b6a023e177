"""Atomic writing of files and folders, with one writer at a time.

Content is written next to the target, synced to disk and renamed, and then the folder is synced. A reader gets either
the old content or the new content, but never a mixture, even after a power failure. An existing folder is replaced in a
single exchange if the kernel supports it (``renameat2``).

Unfinished content is kept in ``.NAME.kotha-partial``, which is locked until the process ends (``locks.py``). The output
of two writers therefore never mixes, and the next writer removes the leftovers of a killed one. In a shared folder,
other users can create a file with this name: a link is removed without being followed, and a file that belongs to
another user raises an error.
"""

import errno
import os
import shutil
import stat
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TextIO

from kotha.errors import KothaError, reason
from kotha.i18n.message import Message
from kotha.storage.locks import InUseError, Lock
from kotha.storage.output_paths import (
    GONE,
    OLD,
    PAGE_ENDINGS,
    PARTIAL,
    check_file_place,
    check_replaceable,
    checked_path,
)
from kotha.storage.status import exists, is_directory, is_link, matching

_NOT_FOLLOWED: int = getattr(os, "O_NOFOLLOW", 0)  # when opening existing files; O_EXCL never follows links
_EXCHANGE, _HERE = 2, -100  # RENAME_EXCHANGE from linux/fs.h, AT_FDCWD from fcntl.h


@contextmanager
def atomic_path(path: Path) -> Iterator[Path]:
    """Yield a path to write to; the file is moved to ``path`` on success. Missing folders are created."""
    with _partial(path, _make_file) as (partial, entry):
        yield partial
        entry.sync()
        partial.replace(path)
        _sync_folder(path.parent)


@contextmanager
def atomic_file(path: Path, *endings: str) -> Iterator[TextIO]:
    """Yield a UTF-8 text file that is moved to ``path`` on success. Missing folders are created.

    With ``endings``, an existing file is replaced only if its name ends in one of them.
    """
    check_file_place(path, *endings)
    with atomic_path(path) as partial, partial.open("w", encoding="utf-8", newline="\n") as file:
        yield file


def atomic_write(path: Path, text: str, *endings: str) -> None:
    """Write a UTF-8 text file atomically."""
    with atomic_file(path, *endings) as file:
        file.write(text)


def write_page(path: Path, html: str) -> None:
    """Write an HTML page atomically; an existing file is replaced only if it is an HTML page."""
    atomic_write(path, html, *PAGE_ENDINGS)


@contextmanager
def atomic_directory(out: Path, may_replace: Callable[[Path], bool]) -> Iterator[Path]:
    """Yield a folder to write into; it is moved to ``out`` on success and removed on an error.

    An existing ``out`` is replaced only if it is empty or ``may_replace`` returns True.
    """
    here, target = Path.cwd(), checked_path(out).resolve()
    if target in (here, *here.parents):  # a process whose working directory is replaced would stay in the old one
        raise KothaError("{path} is the current directory, or contains it; choose another folder", path=out)
    with _partial(out, Path.mkdir) as (partial, entry):
        old = out.with_name(f".{out.name}{OLD}")
        _refuse_others(old)
        is_complete = is_directory(old) and not is_link(old)
        if is_complete and not exists(out):  # killed between the two renames of _move
            old.rename(out)
        check_replaceable(out, may_replace)
        for left in [*partial.iterdir(), old]:
            _remove(left)
        yield partial
        entry.sync()
        check_replaceable(out, may_replace)  # it may have changed meanwhile
        entry.exchanged = _move(partial, out, old)
        _sync_folder(out.parent)


@contextmanager
def filled_folder(folder: Path) -> Iterator[None]:
    """Create a folder to be filled in the ``with`` block; on an error, remove it unless it existed before."""
    if is_directory(folder):
        yield
        return
    with _begun(folder, folder) as entry:
        try:
            folder.mkdir()
            entry.mine = True
        except FileExistsError:  # another process created it and is filling it too
            pass
        try:
            yield
        except InUseError as error:
            entry.mine = entry.mine and error.path != folder  # another process holds it, so it must not be removed
            raise
        _sync_folder(folder.parent)
        entry.mine, entry.made = False, []


def remove_directory(folder: Path) -> None:
    """Remove a folder atomically: a reader sees either the complete folder or nothing."""
    gone = folder.with_name(f".{folder.name}{GONE}")
    _remove(gone)
    folder.rename(gone)
    try:
        _sync_folder(folder.parent)  # or a power cut could restore the name with only part of the content
    finally:
        _remove(gone)


def clear_leftovers(folder: Path, pattern: str) -> None:
    """Remove leftovers of killed writers for names that match ``pattern``; restore content that was moved aside."""
    for leftover in matching(folder, f".{pattern}.kotha-*"):
        target = leftover.with_name(leftover.name.removeprefix(".").removesuffix(OLD))
        if leftover.name.endswith(OLD) and not exists(target):  # killed between the two renames of _move
            leftover.rename(target)
        else:
            _remove(leftover)


@contextmanager
def scratch_folder(prefix: str = "kotha-") -> Iterator[Path]:
    """Yield a temporary folder; it is removed at the end, even if a signal ends the process."""
    folder = Path(tempfile.mkdtemp(prefix=prefix))
    entry = _Unfinished(folder, mine=True)
    try:
        yield folder
    finally:
        entry.discard()


def partial_path(target: Path) -> Path:
    """Return the temporary path used while a target is being written."""
    if not target.name:
        raise KothaError("{path} is a folder; specify the file or folder to write in it", path=target)
    return target.with_name(f".{target.name}{PARTIAL}")


# -- one writer -------------------------------------------------------------------------------------------------------


class NotWrittenError(KothaError):
    """Raised when output could not be written and no partial output is left; ``what`` describes the error."""

    def __init__(self, what: Message) -> None:
        super().__init__("{what}; no partial output was left", what=what)
        self.what = what


def give_up() -> bool:
    """Remove all unfinished output of this process (for signal handlers); on Windows, open files may remain."""
    gone = [entry.discard() for entry in list(_unfinished.values())]
    return all(gone)


@dataclass
class _Unfinished:
    """Output to remove unless it is finished, and the folders that were created for it.

    Content under a shared name is removed only if this process holds its lock, or no process does.
    """

    partial: Path
    made: list[Path] = field(default_factory=list)
    mine: bool = False
    held: Lock | None = None
    making: bool = False  # it may exist but is not locked yet
    exchanged: bool = False  # the partial name now has the replaced content, to be removed

    def __post_init__(self) -> None:
        _unfinished[self.partial] = self

    def sync(self) -> None:
        """Sync the content to disk, and check that the name still refers to it."""
        if self.held is not None:
            self.held.sync()
        if self.held is None or not self.held.is_of(self.partial):
            raise FileNotFoundError(Message("it was removed while it was being written"))

    def discard(self) -> bool:
        """Remove the unfinished output, but not that of another process; return True if nothing is left."""
        if self.mine and (self.held is None or self._has_its_name() is True):
            _remove(self.partial)
        elif self.making or self.exchanged:
            self._remove_if_free()
        for folder in self.made:
            with suppress(OSError):  # no longer empty
                folder.rmdir()
        gone = self.held is None or self._has_its_name() is False
        held, self.held = self.held, None
        if held is not None:
            held.release()
        _unfinished.pop(self.partial, None)
        return gone

    def _has_its_name(self) -> bool | None:
        """Whether the path still refers to the locked content; None after two I/O errors."""
        for _ in range(2):
            with suppress(OSError):
                return self.held is not None and self.held.is_of(self.partial)
        return None

    def _remove_if_free(self) -> None:
        try:
            found = Lock(self.partial, follow=False)
        except (KothaError, OSError):  # locked by another process, or removed
            return
        try:
            _refuse_others(self.partial)
            if found.is_of(self.partial):
                _remove(self.partial)
        except (KothaError, OSError):
            pass
        finally:
            found.release()


_unfinished: dict[Path, _Unfinished] = {}


@contextmanager
def _begun(path: Path, target: Path) -> Iterator[_Unfinished]:
    """Register output at ``path`` for ``target``, and create the target's folders; error messages name the target."""
    checked_path(target)
    entry = _Unfinished(path)
    try:
        entry.made = [folder for folder in target.parents if not exists(folder)]
        target.parent.mkdir(parents=True, exist_ok=True)
        for folder in entry.made:
            _sync_folder(folder.parent)
        yield entry
    except InUseError as error:
        raise InUseError(target, error.holder) from error
    except OSError as error:
        what = Message("{path} could not be written: {why}", path=target, why=reason(error))
        raise NotWrittenError(what) from error
    finally:
        entry.discard()


@contextmanager
def _partial(target: Path, make: Callable[[Path], None]) -> Iterator[tuple[Path, _Unfinished]]:
    """Yield a locked file or folder for unfinished output; it is removed at the end."""
    with _begun(partial_path(target), target) as entry:
        entry.held = _claim(entry, make)
        entry.mine, entry.making = True, False
        yield entry.partial, entry
        entry.made = []


def _claim(entry: _Unfinished, make: Callable[[Path], None]) -> Lock:
    """Create and lock the partial path; repeat if another writer moved it to its target meanwhile."""
    partial = entry.partial
    while True:
        _clear_way(partial)
        entry.making = True
        try:
            make(partial)
        except FileExistsError:  # check only then: some file systems report the wrong owner for all files
            entry.making = False
            _refuse_others(partial)
        try:
            held = Lock(partial, follow=False)
        except FileNotFoundError:
            continue
        except InUseError:
            entry.making = False  # locked by another process
            raise
        try:
            if held.is_of(partial):
                return held
        except OSError:  # an I/O error; release it, so that it can be removed
            held.release()
            raise
        held.release()


def _clear_way(partial: Path) -> None:
    """Remove symbolic links, hard links and pipes from the partial path."""
    with suppress(FileNotFoundError):
        found = partial.lstat()
        is_plain = stat.S_ISREG(found.st_mode) and found.st_nlink == 1
        if not is_plain and not stat.S_ISDIR(found.st_mode):
            partial.unlink()


def _refuse_others(path: Path) -> None:
    """Raise KothaError if a path belongs to another user; Windows has no user ids."""
    if sys.platform == "win32":
        return
    with suppress(FileNotFoundError):
        if path.lstat().st_uid != os.geteuid():
            raise KothaError("{path} belongs to another user; have it removed, or choose another path", path=path)


def _make_file(partial: Path) -> None:
    os.close(os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL | _NOT_FOLLOWED, 0o666))


# -- replacing ----------------------------------------------------------------------------------------------------


def _move(partial: Path, out: Path, old: Path) -> bool:
    """Move a folder into place; return True if the replaced content is now at ``partial`` and must be removed."""
    if exists(out) and any(out.iterdir()):  # a folder cannot be renamed over one that is not empty
        if _exchange(partial, out):
            return True
        out.rename(old)
    elif exists(out) and sys.platform == "win32":  # nor over an empty one on Windows
        out.rmdir()
    try:
        partial.rename(out)
    except OSError:
        with suppress(OSError):
            old.rename(out)
        raise
    _remove(old)
    return False


def _sync_folder(folder: Path) -> None:
    """Sync a folder, so that new names survive a power cut; Windows does this itself."""
    if sys.platform == "win32":
        return
    try:
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
    except FileNotFoundError:  # the folder was removed with its content
        raise
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.ENOTSUP):  # the file system does not support it
            raise KothaError(
                "{path}: the new content is in place, but could not be synced to disk: {why}",
                path=folder,
                why=reason(error),
            ) from error


def _exchange(one: Path, other: Path) -> bool:
    """Exchange the names of two folders atomically; return False if the kernel or file system does not support it."""
    if sys.platform == "win32":
        return False
    import ctypes

    rename = getattr(ctypes.CDLL(None), "renameat2", None)
    return rename is not None and rename(_HERE, os.fsencode(one), _HERE, os.fsencode(other), _EXCHANGE) == 0


def _remove(path: Path) -> None:
    """Remove a file, link or folder as far as possible, without checking its type, since the check could fail too."""
    try:
        path.unlink()
    except FileNotFoundError:
        pass
    except OSError:  # a folder
        with suppress(OSError):  # rmtree does not ignore all of its own errors
            shutil.rmtree(path, ignore_errors=True)
