"""Looks at a disk: is something there, and what is it?

Of a disk that does not answer, ``Path.exists`` and its sisters say no from Python 3.14 on, and ``Path.glob`` finds
nothing from 3.12 on. To them a run would be one that never began, or that saved nothing; a tokenizer one without its
settings; a file that must not be replaced one that is not there. So what is asked here answers yes or no, or raises
what the system said, with every Python.
"""

import errno
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from fnmatch import fnmatchcase
from pathlib import Path

# What the system says of a name that nothing has; on Windows of a drive without a disk, and of no name at all, too.
_NOBODY = (errno.ENOENT, errno.ENOTDIR, errno.EBADF, errno.ELOOP)
_NOBODY_ON_WINDOWS = (21, 123, 1921)
# What it says of a name that nothing can have: too long, or made of what its disk has no letters for.
_NO_NAME = (errno.ENAMETOOLONG, errno.EINVAL, errno.EILSEQ)


def exists(path: Path) -> bool:
    """Whether anything has this name; a link that leads nowhere is nothing."""
    return _mode(path) is not None


def is_file(path: Path) -> bool:
    """Whether it is a regular file, or a link to one."""
    mode = _mode(path)
    return mode is not None and stat.S_ISREG(mode)


def is_directory(path: Path) -> bool:
    """Whether it is a folder, or a link to one."""
    mode = _mode(path)
    return mode is not None and stat.S_ISDIR(mode)


def is_link(path: Path) -> bool:
    """Whether it is a link, wherever that leads."""
    mode = _mode(path, follow=False)
    return mode is not None and stat.S_ISLNK(mode)


def matching(folder: Path, pattern: str = "*") -> list[Path]:
    """What a folder holds under such names, in their order; nothing where there is no such folder."""
    try:
        return sorted(path for path in folder.iterdir() if fnmatchcase(path.name, pattern))
    except OSError as error:
        if _is_of_nobody(error):
            return []
        raise


def walk(folder: Path) -> list[Path]:
    """All that is in a folder and in those in it, in order; what links lead to is not entered."""
    found = []
    for path in matching(folder):
        found += [path, *(walk(path) if is_directory(path) and not is_link(path) else [])]
    return found


def _mode(path: Path, follow: bool = True) -> int | None:
    """What kind of thing it is, as ``stat`` has it; None where there is none."""
    try:
        return path.stat(follow_symlinks=follow).st_mode
    except ValueError:  # a NUL, which no name has
        return None
    except OSError as error:
        if _is_of_nobody(error):
            return None
        raise


def _is_of_nobody(error: OSError) -> bool:
    return error.errno in _NOBODY or getattr(error, "winerror", None) in _NOBODY_ON_WINDOWS


def is_file_in(folder: Path, name: str) -> bool:
    """Whether a folder has a file of this plain name; one that leads elsewhere, or that no file can have, is none."""
    try:
        return Path(name).name == name and is_file(folder / name)
    except OSError as error:
        if error.errno not in _NO_NAME:
            raise
        return False


@contextmanager
def reading(path: Path) -> Iterator[None]:
    """What goes wrong while a file is read names it; Python says so of opening it, and of nothing after that."""
    try:
        yield
    except OSError as error:
        error.filename = error.filename or str(path)
        raise
