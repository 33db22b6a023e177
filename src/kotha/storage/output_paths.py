"""Check that output paths can be written, and that existing content may be replaced.

The checks run before any work starts, so that errors are reported at once, and again at the end.
"""

import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from kotha.errors import KothaError, UsageError, reason
from kotha.i18n.message import Option
from kotha.storage.json_files import read_table
from kotha.storage.locks import LOCK
from kotha.storage.status import exists, is_directory, is_file, is_link

PAGE_ENDINGS = (".html", ".htm")
# Suffixes of temporary names: unfinished output, replaced content until it is removed, content being removed.
PARTIAL, OLD, GONE = ".kotha-partial", ".kotha-old", ".kotha-gone"
_MOST_DESCRIPTION_BYTES = 1 << 28


def check_file_place(path: Path, *endings: str) -> Path:
    """Return the path if a file can be written there; raises UsageError if not.

    With ``endings``, an existing file may be replaced only if its name ends in one of them.
    """
    with _errors_of(path):
        if is_directory(path):
            raise UsageError("{path} is a folder; specify a file in it", path=path)
        if endings and path.suffix.lower() not in endings and is_file(path):
            raise UsageError(
                "{path} exists and is not a {ending} file; choose another name", path=path, ending=endings[0]
            )
        _check_above(path)
    return path


def check_folder_place(out: Path, may_replace: Callable[[Path], bool]) -> Path:
    """Return the path if a folder can be written there; an existing one must be empty or pass ``may_replace``."""
    with _errors_of(out):
        check_replaceable(out, may_replace)
        _check_above(out)
    return out


@contextmanager
def _errors_of(path: Path) -> Iterator[None]:
    checked_path(path)
    try:
        with suppress(FileNotFoundError, NotADirectoryError):
            path.lstat()  # reports invalid names, which would otherwise count as missing
        yield
    except OSError as error:
        raise UsageError("{path} cannot be written: {why}", path=path, why=reason(error)) from error


def _check_above(path: Path) -> None:
    """Check that the nearest existing parent is a folder in which the missing folders can be created."""
    above = next((folder for folder in path.absolute().parents if exists(folder) or is_link(folder)), None)
    if above is not None and not is_directory(above):
        raise UsageError("{path} cannot be written: {above} is a file, not a folder", path=path, above=above)
    if above is None or not os.access(above, os.W_OK | os.X_OK):  # None: the drive does not exist
        raise UsageError(
            "{path} cannot be written: no files can be created in {above}",
            path=path,
            above=above or path.absolute().anchor,
        )


def check_replaceable(out: Path, may_replace: Callable[[Path], bool]) -> None:
    """Raise KothaError if a path is a link or a file, or has content that must not be replaced."""
    if is_link(out):
        raise KothaError("{path} is a link to {target}; specify the folder itself", path=out, target=out.readlink())
    if exists(out) and not is_directory(out):
        raise KothaError("{path} is a file, but the output is a folder; choose another name", path=out)
    if exists(out) and any(out.iterdir()) and not may_replace(out):
        raise KothaError(
            "{path} exists; choose another folder, or use {overwrite} to replace earlier output of the same kind",
            path=out,
            overwrite=Option("overwrite", True),
        )


def is_made_of(
    folder: Path, description: str, is_ours: Callable[[dict[str, Any]], bool], written: Iterable[str]
) -> bool:
    """Whether Kotha wrote a folder, judging by its description file; raises KothaError if it contains other files.

    ``written`` lists patterns of the file names that Kotha writes. Other files would be lost if the folder were
    replaced.
    """
    try:
        if not is_ours(read_table(folder / description, most_bytes=_MOST_DESCRIPTION_BYTES)):
            return False
    except KothaError:
        return False
    for name in names_in(folder):
        if not any(fnmatchcase(name, pattern) for pattern in [description, *written]):
            raise KothaError(
                "{path} contains {name}, which is not part of the earlier output and would be deleted; move "
                "it, or choose another folder",
                path=folder,
                name=name,
            )
    return True


def names_in(folder: Path) -> list[str]:
    """Return the sorted names in a folder, without temporary files of killed processes."""
    names = (path.name for path in folder.iterdir())
    return sorted(name for name in names if not (name.startswith(".") and name.endswith((PARTIAL, OLD, GONE, LOCK))))


def checked_path(path: str | os.PathLike[str]) -> Path:
    """Return a path; raises KothaError if it contains NUL or is not valid Unicode."""
    try:
        if b"\0" not in str(path).encode():
            return Path(path)
    except UnicodeEncodeError:
        pass
    raise KothaError("{path!r} is not a valid file name: it contains a NUL or is not Unicode", path=str(path))
