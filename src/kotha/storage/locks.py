"""Locks on files and folders: held until released, or until the process ends.

On Linux and macOS the file or folder itself is locked (``flock``); file systems without locks are not protected. On
Windows, which cannot open folders or move open files, an empty file next to it is locked instead
(``.NAME.kotha-lock``). The lock file is removed on release; if its owner was killed, the next process reuses it.

The library ``filelock`` is not used: it leaves its lock file behind on Linux and macOS, cannot lock folders, does not
follow renames, and does not report which process holds the lock.
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
    """Another process holds the lock."""

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
        """A lock on a file or folder; without ``wait``, raises InUseError if another process holds it."""

        def __init__(self, path: Path, *, follow: bool = True, wait: bool = False) -> None:
            self._follow = follow
            self._take(path, wait)
            try:
                while wait and not self.is_of(path):  # its holder has moved it, and the name may have new content
                    self.release()
                    self._take(path, wait)
            except OSError:  # an I/O error
                self.release()
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
                pass  # the file system does not support locks

        def is_of(self, path: Path) -> bool:
            """Whether a path still refers to the locked file or folder, which may have been moved or replaced."""
            with suppress(FileNotFoundError):
                return os.path.samestat(os.fstat(self._descriptor), path.stat(follow_symlinks=self._follow))
            return False

        def sync(self) -> None:
            """Sync the locked file or folder to disk."""
            os.fsync(self._descriptor)

        def release(self) -> None:
            """Release the lock; may be called again, such as from a signal handler."""
            descriptor, self._descriptor = self._descriptor, -1
            if descriptor >= 0:
                os.close(descriptor)

else:
    import msvcrt

    _MOST_REFUSED = 100  # consecutive attempts, about one second in total

    def _lock_file(path: Path) -> Path:
        """Return the path of the lock file; for a drive, the lock file is stored on that drive."""
        if not path.name:
            return path / LOCK
        return path.with_name(f"{'' if path.name.startswith('.') else '.'}{path.name}{LOCK}")

    class Lock:
        """A lock on a file or folder; without ``wait``, raises InUseError if another process holds it."""

        def __init__(self, path: Path, *, follow: bool = True, wait: bool = False) -> None:
            full = path.resolve() if follow else path.parent.resolve() / path.name
            full.stat(follow_symlinks=follow)  # raises an error if it does not exist
            self._path, self._lock_path = full, _lock_file(full)
            refused = 0
            while not self._is_taken():
                refused = refused + 1 if self._descriptor < 0 else 0
                if refused > _MOST_REFUSED:
                    raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(self._lock_path))
                if not wait and not refused:
                    raise InUseError(path)
                time.sleep(0.01)

        def _is_taken(self) -> bool:
            """Try to acquire the lock. An open file cannot be removed, so the name always refers to the same lock."""
            self._descriptor = -1
            try:
                self._descriptor = os.open(self._lock_path, os.O_RDWR | os.O_CREAT)
            except PermissionError:  # its holder is removing it, or there is no permission
                return False
            try:
                msvcrt.locking(self._descriptor, msvcrt.LK_NBLCK, 1)
            except OSError:
                os.close(self._descriptor)
                return False
            return True

        def is_of(self, path: Path) -> bool:
            """Return whether the path exists; on Windows the lock is tied to the file name."""
            return exists(path)

        def sync(self) -> None:
            """Sync a locked file to disk; Windows does not need this for folders."""
            if is_file(self._path):
                with self._path.open("r+b") as file:
                    os.fsync(file.fileno())

        def release(self) -> None:
            """Release the lock; may be called again, such as from a signal handler."""
            descriptor, self._descriptor = self._descriptor, -1
            if descriptor >= 0:
                os.close(descriptor)
                with suppress(OSError):  # the next process has it open already
                    self._lock_path.unlink()


def _holder(inode: int) -> str:
    """Return the PID of the process that holds a lock, for the error message, if the kernel reports it."""
    with suppress(OSError):
        found = re.search(rf"FLOCK .* (\d+) \S+:{inode} ", Path("/proc/locks").read_text(encoding="ascii"))
        return f" (pid {found[1]})" if found else ""
    return ""
