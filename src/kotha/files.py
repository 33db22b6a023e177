"""Files and folders that appear whole or not at all.

Write beside the target, make sure that it is on the disk, then rename: a reader, or a run after a power cut, sees the
old state or the new one and nothing between.
"""

import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

from kotha.errors import KothaError


@contextmanager
def whole_file(path: Path) -> Iterator[TextIO]:
    """A text file (UTF-8) to write into, at ``path`` when the block ends well; missing folders are made."""
    partial = path.with_name(f".{path.name}.partial-{os.getpid()}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            with partial.open("w", encoding="utf-8") as file:
                yield file
                file.flush()
                os.fsync(file.fileno())
            partial.replace(path)
        finally:
            partial.unlink(missing_ok=True)
    except OSError as error:
        raise KothaError(f"{path} could not be written: {error.strerror or error}") from error


def write_whole(path: Path, text: str) -> None:
    """Write a text file (UTF-8), whole or not at all."""
    with whole_file(path) as file:
        file.write(text)


@contextmanager
def whole_folder(out: Path, may_replace: Callable[[Path], bool], mark: str | None = None) -> Iterator[Path]:
    """A folder to write into: moved to ``out`` when the block ends well, removed when it does not.

    An ``out`` that exists is replaced only if it is empty or ``may_replace`` says so. ``mark`` names the folder until
    then; processes that write into one folder agree on it.
    """
    partial = partial_path(out, mark or str(os.getpid()))
    try:
        _check_place(out, may_replace)
        shutil.rmtree(partial, ignore_errors=True)
        partial.mkdir(parents=True)
        yield partial
        sync_folder(partial)
        _move(partial, out)
        sync_folder(out.parent)
    except OSError as error:
        raise KothaError(f"{out} could not be written: {error.strerror or error}; nothing was left behind") from error
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def _check_place(out: Path, may_replace: Callable[[Path], bool]) -> None:
    if out.is_symlink():
        raise KothaError(f"{out} is a link to {out.readlink()}; name the folder itself")
    if out.exists() and not (out.is_dir() and (not any(out.iterdir()) or may_replace(out))):
        raise KothaError(
            f"{out} exists; choose another --out, or replace what this command made there with --overwrite"
        )


def partial_path(out: Path, mark: str) -> Path:
    """Where a folder is written before it is moved to ``out``."""
    return out.with_name(f".{out.name}.partial-{mark}")


def sync_folder(folder: Path) -> None:
    """Make sure that the names in a folder are on the disk."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _move(partial: Path, out: Path) -> None:
    if not out.exists():
        partial.rename(out)
        return
    old = out.with_name(f".{out.name}.old-{os.getpid()}")
    out.rename(old)  # a folder cannot be renamed over one that has files
    partial.rename(out)
    shutil.rmtree(old)
