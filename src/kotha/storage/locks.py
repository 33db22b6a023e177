"""One writer at a time: what is held stays so until it is let go, or until this process ends, however it ends.

Linux and macOS lock the file or folder itself (``flock``); on a file system without locks nothing is held. Windows
opens no folder, and moves nothing that is open: there an empty file beside it is locked in its place
(``.NAME.kotha-lock``), which goes when it is let go, and is taken over by the next if its holder was killed.

The library ``filelock`` holds a file of its own beside the thing, which stays there on Linux and macOS; it locks no
folder, does not follow what is renamed, and names no holder.
"""

import errno
import os
import re
import sys
import time
from contextlib import suppress
from pathlib import Path

from kotha.errors import KothaError
from kotha.storage.status import exists, is_file

LOCK = ".kotha-lock"


class InUseError(KothaError):
    """Another process is writing there."""

    def __init__(self, path: Path, holder: str = "") -> None:
        super().__init__(
            "{path} is in use: another process{holder} is writing there; wait until it ends, stop it, or "
            "choose another path",
            path=path,
            holder=holder,
        )
        self.path, self.holder = path, holder


if sys.platform != "win32":
    import fcntl

    class Lock:
        """A file or folder that is held; with ``wait`` as soon as nobody else does, or else at once or not at all."""

        def __init__(self, path: Path, *, follow: bool = True, wait: bool = False) -> None:
            self._follow = follow
            self._take(path, wait)
            try:
                while wait and not self.is_of(path):  # who held it has taken it away, and another may be there
                    self.let_go()
                    self._take(path, wait)
            except OSError:  # a broken disk
                self.let_go()
                raise

        def _take(self, path: Path, wait: bool) -> None:
            self._descriptor = os.open(path, os.O_RDONLY if self._follow else os.O_RDONLY | os.O_NOFOLLOW)
            try:
                fcntl.flock(self._descriptor, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError as error:
                holder = _holder(os.fstat(self._descriptor).st_ino)
                os.close(self._descriptor)
                raise InUseError(path, holder) from error
            except OSError:
                pass  # this file system has no locks

        def is_of(self, path: Path) -> bool:
            """Whether what is held has this name still: it may have been moved, and another be there."""
            with suppress(FileNotFoundError):
                return os.path.samestat(os.fstat(self._descriptor), path.stat(follow_symlinks=self._follow))
            return False

        def sync(self) -> None:
            """Make sure that what is held is on the disk."""
            os.fsync(self._descriptor)

        def let_go(self) -> None:
            """Hold it no more; a second time, from a signal's handler perhaps, does nothing."""
            descriptor, self._descriptor = self._descriptor, -1
            if descriptor >= 0:
                os.close(descriptor)

else:
    import msvcrt

    _MOST_REFUSED = 100  # times in a row, a second in all

    def _beside(whole: Path) -> Path:
        """What stands for the lock of a thing; a drive itself has nothing beside it."""
        if not whole.name:
            return whole / LOCK
        return whole.with_name(f"{'' if whole.name.startswith('.') else '.'}{whole.name}{LOCK}")

    class Lock:
        """A file or folder that is held; with ``wait`` as soon as nobody else does, or else at once or not at all."""

        def __init__(self, path: Path, *, follow: bool = True, wait: bool = False) -> None:
            whole = path.resolve() if follow else path.parent.resolve() / path.name
            whole.stat(follow_symlinks=follow)  # what is not there cannot be held
            self._path, self._place = whole, _beside(whole)
            refused = 0
            while not self._is_taken():
                refused = refused + 1 if self._descriptor < 0 else 0
                if refused > _MOST_REFUSED:
                    raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(self._place))
                if not wait and not refused:
                    raise InUseError(path)
                time.sleep(0.01)

        def _is_taken(self) -> bool:
            """Try to be its holder. A file that somebody has open stays: so its name is the lock's, and no other's."""
            self._descriptor = -1
            try:
                self._descriptor = os.open(self._place, os.O_RDWR | os.O_CREAT)
            except PermissionError:  # its holder is just removing it; or it will never be opened
                return False
            try:
                msvcrt.locking(self._descriptor, msvcrt.LK_NBLCK, 1)
            except OSError:
                os.close(self._descriptor)
                return False
            return True

        def is_of(self, path: Path) -> bool:
            """Whether what is held has this name still: here it is held by its name."""
            return exists(path)

        def sync(self) -> None:
            """Make sure that what is held is on the disk; of folders Windows looks after itself."""
            if is_file(self._path):
                with self._path.open("r+b") as file:
                    os.fsync(file.fileno())

        def let_go(self) -> None:
            """Hold it no more; a second time, from a signal's handler perhaps, does nothing."""
            descriptor, self._descriptor = self._descriptor, -1
            if descriptor >= 0:
                os.close(descriptor)
                with suppress(OSError):  # the next one has it already
                    self._place.unlink()


def _holder(inode: int) -> str:
    """Who holds a lock, where the kernel says so."""
    with suppress(OSError):
        found = re.search(rf"FLOCK .* (\d+) \S+:{inode} ", Path("/proc/locks").read_text(encoding="ascii"))
        return f" (pid {found[1]})" if found else ""
    return ""
