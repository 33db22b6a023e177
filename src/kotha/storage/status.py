"""Check whether paths exist and what type they have; I/O errors are raised.

On an I/O error, ``Path.exists`` and similar methods return False from Python 3.14 on, and ``Path.glob`` finds nothing
from 3.12 on. After such an error, a run, or a file that must not be replaced, would seem not to exist. These functions
return a result or raise the operating system's error, in every version of Python.
"""

import errno
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from fnmatch import fnmatchcase
from pathlib import Path

# Errors that mean that a name does not exist; on Windows, also that a drive is empty or a name is invalid.
_MISSING = (errno.ENOENT, errno.ENOTDIR, errno.EBADF, errno.ELOOP)
_MISSING_ON_WINDOWS = (21, 123, 1921)
# Errors that mean that a name is invalid: too long, or with characters that the file system does not support.
_INVALID = (errno.ENAMETOOLONG, errno.EINVAL, errno.EILSEQ)


def exists(path: Path) -> bool:
    """Whether the path exists; False for a broken link."""
    return _mode(path) is not None


def is_file(path: Path) -> bool:
    """Whether the path is a regular file, or a link to one."""
    mode = _mode(path)
    return mode is not None and stat.S_ISREG(mode)


def is_directory(path: Path) -> bool:
    """Whether the path is a folder, or a link to one."""
    mode = _mode(path)
    return mode is not None and stat.S_ISDIR(mode)


def is_link(path: Path) -> bool:
    """Whether the path is a symbolic link, broken or not."""
    mode = _mode(path, follow=False)
    return mode is not None and stat.S_ISLNK(mode)


def matching(folder: Path, pattern: str = "*") -> list[Path]:
    """Return the sorted paths in a folder that match a pattern; empty if the folder does not exist."""
    try:
        return sorted(path for path in folder.iterdir() if fnmatchcase(path.name, pattern))
    except OSError as error:
        if _is_missing(error):
            return []
        raise


def walk(folder: Path) -> list[Path]:
    """Return all paths below a folder, sorted; links to folders are not followed."""
    found = []
    for path in matching(folder):
        found += [path, *(walk(path) if is_directory(path) and not is_link(path) else [])]
    return found


def _mode(path: Path, follow: bool = True) -> int | None:
    """Return the mode from ``stat``, or None if the path does not exist."""
    try:
        return path.stat(follow_symlinks=follow).st_mode
    except ValueError:  # NUL in the name
        return None
    except OSError as error:
        if _is_missing(error):
            return None
        raise


def _is_missing(error: OSError) -> bool:
    return error.errno in _MISSING or getattr(error, "winerror", None) in _MISSING_ON_WINDOWS


def is_file_in(folder: Path, name: str) -> bool:
    """Whether a folder has a file with this name; False for invalid names and for names that include a folder."""
    try:
        return Path(name).name == name and is_file(folder / name)
    except OSError as error:
        if error.errno not in _INVALID:
            raise
        return False


@contextmanager
def reading(path: Path) -> Iterator[None]:
    """Add the path to I/O errors while a file is read; Python adds the path only when opening a file."""
    try:
        yield
    except OSError as error:
        error.filename = error.filename or str(path)
        raise
