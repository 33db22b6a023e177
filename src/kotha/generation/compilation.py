"""Compile ``native.c``, which takes about a second, and cache the library for other processes.

The compiled library is cached in the user's home (``~/.cache/kotha``, or under ``$XDG_CACHE_HOME``). Its file name is a
hash of everything it depends on: the source, the compiler and its flags, the CPU (``-march=native``) and the OpenMP
library. The cached library is loaded only if the directory and the file belong to this user and no other user can write
to them. If the library cannot be cached, each process compiles it again.
"""

import ctypes
import hashlib
import importlib.util
import os
import platform
import re
import shutil
import stat
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from pathlib import Path

from kotha.errors import KothaError
from kotha.storage.atomic import atomic_path, scratch_folder

_SOURCE = Path(__file__).with_name("native.c")
# Allow reordering of sums. Without -ffast-math, because its start-up code makes the process flush denormals to zero.
_REORDER = ("-fno-math-errno", "-fno-trapping-math", "-fno-signed-zeros", "-fassociative-math", "-freciprocal-math")
# -O3 is no faster here and takes more than twice as long to compile.
_FLAGS = ("-O2", "-ftree-vectorize", "-march=native", *_REORDER, "-fPIC", "-shared")
_TIMEOUT = 60  # time limit for the compiler in seconds
_CPUINFO = Path("/proc/cpuinfo")
_CPU = re.compile(r"^(?:vendor_id|cpu family|model|stepping|flags|Features|CPU \w+)\b.*", re.MULTILINE)
_KEPT = 8  # compiled libraries, for other versions and for machines that share the directory
_OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH


@cache
def native() -> ctypes.CDLL | None:
    """Return the compiled ``native.c``, or None if there is no C compiler."""
    compiler = shutil.which("cc")
    if compiler is None:
        return None
    openmp = _openmp()
    command = [compiler, *_FLAGS, *openmp, str(_SOURCE), "-lm"]
    kept = _kept_file([compiler, *openmp[1:]])
    library = None
    if kept is not None and _is_ours(kept.parent, stat.S_ISDIR) and _is_ours(kept, stat.S_ISREG):
        with suppress(OSError):
            library = ctypes.CDLL(str(kept))
    library = library or _compile(command, kept)
    if library is not None:
        library.step.argtypes = [*[ctypes.c_void_p] * 7, ctypes.c_int]
        library.step.restype = None
    return library


def _compile(command: list[str], kept: Path | None) -> ctypes.CDLL | None:
    with scratch_folder() as folder:  # private to this user; the file is not needed after loading
        path = folder / "native.so"
        try:
            subprocess.run([*command, "-o", str(path)], check=True, capture_output=True, timeout=_TIMEOUT)
            library = ctypes.CDLL(str(path))
        except (subprocess.SubprocessError, OSError):
            return None
        if kept is not None:
            with suppress(OSError, KothaError):  # a full or read-only disk, or another process is writing the same file
                _keep(path, kept)
    return library


def _kept_file(files: list[str]) -> Path | None:
    """Return the cache path of the library compiled from these files; None if this system cannot cache it."""
    if sys.platform == "win32":  # files have no owner
        return None
    try:
        states = [(name, Path(name).stat()) for name in (os.path.realpath(each) for each in files)]
        made_of = [(name, state.st_size, state.st_mtime_ns) for name, state in states]
        with suppress(OSError):
            with _CPUINFO.open(encoding="utf-8", errors="replace") as file:
                first = file.read(1 << 14).split("\n\n")[0]  # of the first core
            made_of += _CPU.findall(first)
        key = repr((_SOURCE.read_bytes(), _FLAGS, made_of, platform.machine(), platform.node()))
        home = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    except (OSError, RuntimeError):  # RuntimeError: the user has no home directory
        return None
    return Path(home) / "kotha" / f"native-{hashlib.sha256(key.encode()).hexdigest()[:32]}.so"


def _is_ours(path: Path, is_kind: Callable[[int], bool]) -> bool:
    """Return whether a path has this type, is not a link, belongs to this user, and is writable only by this user."""
    try:
        found = path.lstat()
    except OSError:
        return False
    owner = sys.platform == "win32" or found.st_uid == os.geteuid()
    return is_kind(found.st_mode) and owner and not found.st_mode & _OTHERS_WRITE


def _keep(library: Path, kept: Path) -> None:
    """Copy a compiled library atomically into the cache, and remove the oldest libraries."""
    kept.parent.parent.mkdir(parents=True, exist_ok=True)
    with suppress(FileExistsError):
        kept.parent.mkdir(mode=0o700)
    if not _is_ours(kept.parent, stat.S_ISDIR):
        return
    with atomic_path(kept) as partial:
        partial.write_bytes(library.read_bytes())
        partial.chmod(0o600)
    libraries = sorted(kept.parent.glob("native-*.so"), key=lambda path: path.stat().st_mtime)
    for old in libraries[:-_KEPT]:
        old.unlink(missing_ok=True)


def _openmp() -> list[str]:
    """Return compiler flags that link the OpenMP runtime shipped with torch.

    The threads of two runtimes would compete. If torch is not imported yet, only its OpenMP library is loaded; torch
    uses the same library if it is imported later.
    """
    lines: list[str] = []
    with suppress(OSError):  # Linux only, and may be forbidden
        lines = Path("/proc/self/maps").read_text(encoding="utf-8", errors="surrogateescape").splitlines()
    # Five columns, then the path, which may contain spaces.
    loaded = [found[1] for line in lines if (found := re.match(r"(?:\S+\s+){5}(/.*/libgomp[^/]*)$", line))]
    torch = None if "torch" in sys.modules else importlib.util.find_spec("torch")
    if torch is not None and torch.origin is not None:
        package = Path(torch.origin).parent
        loaded = [
            str(path) for part in (package / "lib", package.parent / "torch.libs") for path in part.glob("libgomp*")
        ]
    try:
        ctypes.CDLL(loaded[0], mode=ctypes.RTLD_GLOBAL)
    except (IndexError, OSError):  # not loaded, or the file was replaced: use one thread
        return []
    return ["-fopenmp", loaded[0]]
