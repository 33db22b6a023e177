"""Files and folders that appear whole or not at all, and have one writer at a time.

Write beside the target, make sure that it is on the disk, then rename, and make sure of the name: a reader, or a run
after a power cut, sees the old state or the new one and nothing between. A folder takes another's place in one
exchange, where the kernel has it (``renameat2``).

What is being written is ``.NAME.kotha-partial`` beside its target, under a lock that the kernel lets go when the
process ends, however it ends (``locks.py``). So two writers never meet, and what a killed one left is cleared by the
next. In a shared folder anyone can put something of that name there: a link is taken away, never followed, and what
another user made is refused and not emptied.
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

_NOT_FOLLOWED: int = getattr(os, "O_NOFOLLOW", 0)  # a link that is in the way; with O_EXCL none is followed anyway
_EXCHANGE, _HERE = 2, -100  # RENAME_EXCHANGE of linux/fs.h, AT_FDCWD of fcntl.h


@contextmanager
def atomic_path(path: Path) -> Iterator[Path]:
    """Where to write a file that is moved to ``path`` when the block ends well; missing folders are made."""
    with _partial(path, _make_file) as (partial, entry):
        yield partial
        entry.sync()
        partial.replace(path)
        _sync_folder(path.parent)


@contextmanager
def atomic_file(path: Path, *endings: str) -> Iterator[TextIO]:
    """A text file (UTF-8) to write into, at ``path`` when the block ends well; missing folders are made.

    With ``endings`` a file that is there is replaced only if its name has one of them: others are of another kind.
    """
    check_file_place(path, *endings)
    with atomic_path(path) as partial, partial.open("w", encoding="utf-8", newline="\n") as file:
        yield file


def atomic_write(path: Path, text: str, *endings: str) -> None:
    """Write a text file (UTF-8), whole or not at all."""
    with atomic_file(path, *endings) as file:
        file.write(text)


def write_page(path: Path, html: str) -> None:
    """Write a page that someone has named, whole or not at all; nothing but a page is replaced."""
    atomic_write(path, html, *PAGE_ENDINGS)


@contextmanager
def atomic_directory(out: Path, may_replace: Callable[[Path], bool]) -> Iterator[Path]:
    """A folder to write into: moved to ``out`` when the block ends well, removed when it does not.

    An ``out`` that exists is replaced only if it is empty or ``may_replace`` says so.
    """
    here, place = Path.cwd(), checked_path(out).resolve()
    if place in (here, *here.parents):  # whoever is in a folder that is replaced stays in the old one
        raise KothaError("{path} is the current directory, or contains it; name another folder", path=out)
    with _partial(out, Path.mkdir) as (partial, entry):
        old = out.with_name(f".{out.name}{OLD}")
        _refuse_others(old)
        is_whole = is_directory(old) and not is_link(old)
        if is_whole and not exists(out):  # killed between two renames, where there was no exchange
            old.rename(out)
        check_replaceable(out, may_replace)
        for left in [*partial.iterdir(), old]:
            _remove(left)
        yield partial
        entry.sync()
        check_replaceable(out, may_replace)  # something may have come there while we wrote
        entry.exchanged = _move(partial, out, old)
        _sync_folder(out.parent)


@contextmanager
def filled_folder(folder: Path) -> Iterator[None]:
    """Make a folder and fill it; if that does not end well it is gone again, unless it was there before."""
    if is_directory(folder):
        yield
        return
    with _begun(folder, folder) as entry:
        try:
            folder.mkdir()
            entry.mine = True
        except FileExistsError:  # another made it in this moment, and fills it too
            pass
        try:
            yield
        except InUseError as error:
            entry.mine = entry.mine and error.path != folder  # it is held by another, and so no longer ours to remove
            raise
        _sync_folder(folder.parent)
        entry.mine, entry.made = False, []


def remove_directory(folder: Path) -> None:
    """Let a folder go at once: whoever comes later finds all of it or nothing, never a part under its name."""
    gone = folder.with_name(f".{folder.name}{GONE}")
    _remove(gone)
    folder.rename(gone)
    try:
        _sync_folder(folder.parent)  # or a power cut could bring its name back, and not all that it held
    finally:
        _remove(gone)


def clear_leftovers(folder: Path, pattern: str) -> None:
    """Remove what killed writers left beside things of such a name; what was only moved out of the way comes back."""
    for leftover in matching(folder, f".{pattern}.kotha-*"):
        place = leftover.with_name(leftover.name.removeprefix(".").removesuffix(OLD))
        if leftover.name.endswith(OLD) and not exists(place):  # killed between two renames, see atomic_directory
            leftover.rename(place)
        else:
            _remove(leftover)


@contextmanager
def scratch_folder(prefix: str = "kotha-") -> Iterator[Path]:
    """A folder for what is needed for a moment; gone at the end, and when a signal ends us."""
    folder = Path(tempfile.mkdtemp(prefix=prefix))
    entry = _Unfinished(folder, mine=True)
    try:
        yield folder
    finally:
        entry.discard()


def partial_path(target: Path) -> Path:
    """Where something is written before it is moved to its target."""
    if not target.name:
        raise KothaError("{path} is a folder; name the file or folder to write in it", path=target)
    return target.with_name(f".{target.name}{PARTIAL}")


# -- one writer -------------------------------------------------------------------------------------------------------


class NotWrittenError(KothaError):
    """Something could not be written, and nothing of it stays; ``what`` says what, and why."""

    def __init__(self, what: Message) -> None:
        super().__init__("{what}; no partial output was left", what=what)
        self.what = what


def give_up() -> bool:
    """Remove what this process is writing, for a signal that ends it at once; Windows may keep what is open."""
    gone = [entry.discard() for entry in list(_unfinished.values())]
    return all(gone)


@dataclass
class _Unfinished:
    """Something that must not stay if it is not finished, with the folders that were made to hold it.

    Of things under a name that others use too, only that is removed which is locked by us, or which nobody has locked.
    """

    partial: Path
    made: list[Path] = field(default_factory=list)
    mine: bool = False
    held: Lock | None = None
    making: bool = False  # it may be there, and is not locked yet
    exchanged: bool = False  # what was at the target has its name, and is to go

    def __post_init__(self) -> None:
        _unfinished[self.partial] = self

    def sync(self) -> None:
        """Make sure that it is on the disk, and still what we wrote."""
        if self.held is not None:
            self.held.sync()
        if self.held is None or not self.held.is_of(self.partial):
            raise FileNotFoundError(Message("it was removed while it was being written"))

    def discard(self) -> bool:
        """Leave nothing behind, if that is possible; what another process is writing is left alone."""
        if self.mine and (self.held is None or self._has_its_name() is True):
            _remove(self.partial)
        elif self.making or self.exchanged:
            self._remove_if_free()
        for folder in self.made:
            with suppress(OSError):  # it has something in it by now
                folder.rmdir()
        gone = self.held is None or self._has_its_name() is False
        held, self.held = self.held, None
        if held is not None:
            held.let_go()
        _unfinished.pop(self.partial, None)
        return gone

    def _has_its_name(self) -> bool | None:
        """Whether what is held has the name still; None where a broken disk does not say, asked twice."""
        for _ in range(2):
            with suppress(OSError):
                return self.held is not None and self.held.is_of(self.partial)
        return None

    def _remove_if_free(self) -> None:
        try:
            found = Lock(self.partial, follow=False)
        except (KothaError, OSError):  # another has it by now, or it is gone
            return
        try:
            _refuse_others(self.partial)
            if found.is_of(self.partial):
                _remove(self.partial)
        except (KothaError, OSError):
            pass
        finally:
            found.let_go()


_unfinished: dict[Path, _Unfinished] = {}


@contextmanager
def _begun(path: Path, target: Path) -> Iterator[_Unfinished]:
    """Something that is written at ``path`` on its way to ``target``; what goes wrong is said of the target."""
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
    """A file or folder to write into: ours alone, and gone at the end, however it ends."""
    with _begun(partial_path(target), target) as entry:
        entry.held = _claim(entry, make)
        entry.mine, entry.making = True, False
        yield entry.partial, entry
        entry.made = []


def _claim(entry: _Unfinished, make: Callable[[Path], None]) -> Lock:
    """Make and hold it; if another writer moved it to its target just then, make it again."""
    partial = entry.partial
    while True:
        _clear_way(partial)
        entry.making = True
        try:
            make(partial)
        except FileExistsError:  # only then: some file systems say of all files that they are another's
            entry.making = False
            _refuse_others(partial)
        try:
            held = Lock(partial, follow=False)
        except FileNotFoundError:
            continue
        except InUseError:
            entry.making = False  # another has it
            raise
        try:
            if held.is_of(partial):
                return held
        except OSError:  # a broken disk; held, it could not be taken away
            held.let_go()
            raise
        held.let_go()


def _clear_way(partial: Path) -> None:
    """Take away what would lead elsewhere under a name of ours: a link of either kind, a pipe."""
    with suppress(FileNotFoundError):
        found = partial.lstat()
        is_ours = stat.S_ISREG(found.st_mode) and found.st_nlink == 1
        if not is_ours and not stat.S_ISDIR(found.st_mode):
            partial.unlink()


def _refuse_others(path: Path) -> None:
    """Refuse something of a name of ours that another user made, if it is there; Windows has no such numbers."""
    if sys.platform == "win32":
        return
    with suppress(FileNotFoundError):
        if path.lstat().st_uid != os.geteuid():
            raise KothaError("{path} belongs to another user; have it removed, or choose another path", path=path)


def _make_file(partial: Path) -> None:
    os.close(os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL | _NOT_FOLLOWED, 0o666))


# -- taking a place ---------------------------------------------------------------------------------------------------


def _move(partial: Path, out: Path, old: Path) -> bool:
    """Give a folder its name; True if what was there has the other's now, and is to go."""
    if exists(out) and any(out.iterdir()):  # a folder cannot be renamed over one that has files
        if _exchange(partial, out):
            return True
        out.rename(old)
    elif exists(out) and sys.platform == "win32":  # there not even over an empty one
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
    """Make names last too: a file that is on the disk may have its old name there, or none. Windows sees to it."""
    if sys.platform == "win32":
        return
    try:
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
    except FileNotFoundError:  # it was taken away, and what was written with it
        raise
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.ENOTSUP):  # some file systems have nothing to sync
            raise KothaError(
                "{path}: the new content is in place, but could not be synced to disk: {why}",
                path=folder,
                why=reason(error),
            ) from error


def _exchange(one: Path, other: Path) -> bool:
    """Let two folders change names in one step; False where the kernel or the file system cannot."""
    if sys.platform == "win32":
        return False
    import ctypes

    rename = getattr(ctypes.CDLL(None), "renameat2", None)
    return rename is not None and rename(_HERE, os.fsencode(one), _HERE, os.fsencode(other), _EXCHANGE) == 0


def _remove(path: Path) -> None:
    """Take away a file, a link or a folder, as far as that is possible; a broken disk is not asked what it is."""
    try:
        path.unlink()
    except FileNotFoundError:
        pass
    except OSError:  # a folder
        with suppress(OSError):  # one of its own looks may fail, and is not among the errors that it ignores
            shutil.rmtree(path, ignore_errors=True)
