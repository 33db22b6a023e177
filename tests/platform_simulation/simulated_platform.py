"""Run commands as on Windows or macOS, as far as Python can simulate these systems.

    python -m tests.platform_simulation.simulated_platform windows FOLDER '[["presets"], ["corpus", "stories"]]'

Kotha's modules see the standard library of that system: no ``fcntl`` and no ``os.fork`` on Windows, no
``sched_getaffinity`` and no ``/proc`` on macOS. Other libraries are not changed. Within the folder, files behave as on
that system. On Windows, open files cannot be moved or removed, a rename does not replace an existing file, folders
cannot be opened, some names are rejected, and text files have CRLF line ends and the encoding ``cp1252`` by default. On
both systems, names that differ only in case (or in Unicode composition) refer to the same file. Path separators,
drives, consoles and other processes cannot be simulated.
"""

# The replacement for os cannot use pathlib, which uses os.
# ruff: noqa: PTH100, PTH112, PTH115, PTH118, PTH208
import builtins
import errno
import importlib.machinery
import io
import json
import os
import re
import signal
import stat
import sys
import unicodedata
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

# Names that exist on this system but not on the simulated one.
_NOT_ON_WINDOWS = {
    "os": "fork forkpty getuid geteuid getgid getegid getpgid getpgrp setsid killpg posix_spawn posix_spawnp "
    "POSIX_SPAWN_OPEN sched_getaffinity sched_setaffinity sysconf uname getloadavg statvfs fstatvfs "
    "fchmod fchown chown lchown mkfifo mknod pread pwrite preadv pwritev posix_fallocate posix_fadvise "
    "sendfile sync fdatasync O_NOFOLLOW O_DIRECTORY O_NONBLOCK O_CLOEXEC O_SYNC O_DSYNC O_TMPFILE WNOHANG "
    "wait wait3 wait4 waitid register_at_fork nice memfd_create pidfd_open openpty ttyname setpgid "
    "tcgetpgrp umount eventfd getrandom",
    "signal": "SIGKILL SIGBUS SIGHUP SIGALRM SIGCHLD SIGPIPE SIGSTOP SIGCONT SIGUSR1 SIGUSR2 SIGQUIT "
    "pthread_sigmask pthread_kill SIG_BLOCK SIG_UNBLOCK SIG_SETMASK alarm setitimer getitimer pause "
    "sigwait sigpending siginterrupt",
}
_NOT_ON_MACOS = {
    "os": "sched_getaffinity sched_setaffinity posix_fadvise O_TMPFILE memfd_create pidfd_open eventfd getrandom",
    "signal": "sigtimedwait sigwaitinfo",
}
_POSIX_MODULES = {"fcntl", "resource", "pwd", "grp", "termios", "tty", "pty", "syslog", "posix", "readline"}
_REFUSED = re.compile(r'[<>:"|?*\x00-\x1f]|[. ]$|^(con|prn|aux|nul|com[1-9]|lpt[1-9])(\.|$)', re.IGNORECASE)

_open, _stat, _os_open = io.open, os.stat, os.open  # the real ones on this system


class _Seen(ModuleType):
    """A module as on another system, without some names and with replacements for others."""

    def __init__(self, module: ModuleType, without: str = "", **instead: Any) -> None:
        super().__init__(module.__name__)
        self._module, self._without = module, frozenset(without.split())
        self.__dict__.update(instead)

    def __getattr__(self, name: str) -> Any:
        if name in self._without:
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r} on that system")
        return getattr(self._module, name)


def activate(system: str, folder: Path) -> "_Files":
    """From now on, simulate that system for Kotha's modules and for files in the folder."""
    assert system in ("windows", "macos"), system
    files = _Files(folder.resolve(), windows=system == "windows")
    if system == "windows":
        modules = _windows(files)
        absent = _POSIX_MODULES
    else:
        modules, absent = _macos(), set()
    files.watch()
    _simulate_imports(modules, absent)
    return files


def _windows(files: "_Files") -> dict[str, ModuleType]:
    import ctypes

    class NamedOnly(ctypes.CDLL):
        """Finds libraries only by name; the program itself cannot be opened as a library."""

        def __init__(self, name: Any, *rest: Any, **more: Any) -> None:
            if name is None:
                raise TypeError("argument of type 'NoneType' is not iterable")  # the message of Python on Windows
            super().__init__(name, *rest, **more)

    return {
        "os": _Seen(os, _NOT_ON_WINDOWS["os"], open=files.open_descriptor, O_BINARY=0, startfile=None),
        "signal": _Seen(signal, _NOT_ON_WINDOWS["signal"], CTRL_C_EVENT=0),
        "sys": _Seen(sys, platform="win32"),
        "ctypes": _Seen(ctypes, CDLL=NamedOnly),
        "msvcrt": _msvcrt(),
        "psutil": _psutil(),
    }


def _macos() -> dict[str, ModuleType]:
    import ctypes

    class Libc(ctypes.CDLL):
        """The C library without functions that only Linux has."""

        def __getattr__(self, name: str) -> Any:
            if name in ("renameat2", "prctl"):
                raise AttributeError(name)
            return super().__getattr__(name)

    return {
        "os": _Seen(os, _NOT_ON_MACOS["os"]),
        "signal": _Seen(signal, _NOT_ON_MACOS["signal"]),
        "sys": _Seen(sys, platform="darwin"),
        "ctypes": _Seen(ctypes, CDLL=Libc),
    }


def _msvcrt() -> ModuleType:
    """Return locks that belong to the opener of a file, as on Windows."""
    import fcntl

    made = ModuleType("msvcrt")

    def locking(descriptor: int, mode: int, n_bytes: int) -> None:
        assert n_bytes == 1
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise OSError(errno.EACCES, "Permission denied") from None

    made.__dict__.update(locking=locking, LK_NBLCK=2, LK_UNLCK=0, LK_LOCK=1)
    return made


def _psutil() -> ModuleType:
    """Return memory information as on Windows, where a process has a peak working set."""
    from types import SimpleNamespace

    memory = SimpleNamespace(total=16 << 30, available=8 << 30)
    made = ModuleType("psutil")
    process = SimpleNamespace(memory_info=lambda: SimpleNamespace(peak_wset=1 << 30, rss=1 << 29))
    made.__dict__.update(virtual_memory=lambda: memory, Process=lambda *_: process)
    return made


def _simulate_imports(modules: dict[str, ModuleType], absent: set[str]) -> None:
    """Replace modules only for imports from Kotha's modules."""

    def importing(name: str, globals: Any = None, locals: Any = None, fromlist: Any = (), level: int = 0) -> Any:
        if level == 0 and name.partition(".")[0] in absent:
            raise ModuleNotFoundError(f"No module named {name!r} on that system", name=name)
        if level == 0 and name in modules:
            return modules[name]
        return builtins.__import__(name, globals, locals, fromlist, level)

    real = importlib.machinery.SourceFileLoader.exec_module

    def exec_module(self: importlib.machinery.SourceFileLoader, module: ModuleType) -> None:
        if module.__name__.partition(".")[0] == "kotha":
            module.__dict__["__builtins__"] = {**vars(builtins), "__import__": importing, "open": io.open}
        real(self, module)

    importlib.machinery.SourceFileLoader.exec_module = exec_module  # type: ignore[method-assign]


class _Files:
    """Simulates another system's files."""

    def __init__(self, folder: Path, windows: bool) -> None:
        self._folder, self._windows = str(folder), windows
        self.broken: list[str] = []  # paths that are the same file on that system but not on this one

    def watch(self) -> None:
        """Check every file that Python opens, moves or removes."""
        builtins.open = io.open = self.open  # type: ignore[assignment]
        if not self._windows:
            os.stat = self._stat_without_proc  # type: ignore[assignment]
            return
        rename, replace, unlink, rmdir, mkdir = os.rename, os.replace, os.unlink, os.rmdir, os.mkdir

        def renamed(source: Any, target: Any, **more: Any) -> None:
            if self._is_ours(target):
                self._check_free(source, target)
                self._check_new(target)
                if os.path.lexists(target):
                    raise FileExistsError(errno.EEXIST, "Cannot create a file when that file already exists", target)
            rename(source, target, **more)

        def replaced(source: Any, target: Any, **more: Any) -> None:
            if self._is_ours(target):
                self._check_free(source, target)
                self._check_new(target)
                if os.path.isdir(target):
                    raise PermissionError(errno.EACCES, "Access is denied", target)
            replace(source, target, **more)

        def removed(real: Callable[..., None]) -> Callable[..., None]:
            def remove(path: Any, *, dir_fd: int | None = None) -> None:
                whole = path if dir_fd is None else os.path.join(os.readlink(f"/proc/self/fd/{dir_fd}"), path)
                if self._is_ours(whole) and not os.path.isdir(whole):
                    self._check_free(whole)
                real(path, dir_fd=dir_fd)

            return remove

        def made(path: Any, *rest: Any, **more: Any) -> None:
            if self._is_ours(path):
                self._check_new(path)
            mkdir(path, *rest, **more)

        os.rename, os.replace, os.mkdir = renamed, replaced, made
        os.unlink = os.remove = removed(unlink)
        os.rmdir = removed(rmdir)

    def open(
        self, file: Any, mode: str = "r", buffering: int = -1, encoding: Any = None, *rest: Any, **more: Any
    ) -> Any:
        """``open`` with that system's default encoding and line endings."""
        if isinstance(file, int):
            return _open(file, mode, buffering, encoding, *rest, **more)
        if not self._windows and str(file).startswith(("/proc/", "/sys/")):
            raise FileNotFoundError(errno.ENOENT, "No such file or directory", str(file))
        if self._is_ours(file):
            if set(mode) & set("wax"):
                self._check_new(file)
            if self._windows and "b" not in mode:
                encoding = "cp1252" if encoding in (None, "locale") else encoding
                newline = rest[1] if len(rest) > 1 else more.pop("newline", None)
                errors = rest[0] if rest else more.pop("errors", None)
                if newline is None and mode != "r":
                    newline = "\r\n"
                return _open(file, mode, buffering, encoding, errors, newline, **more)
        return _open(file, mode, buffering, encoding, *rest, **more)

    def open_descriptor(self, path: Any, flags: int, *rest: Any, **more: Any) -> int:
        """``os.open``, which cannot open folders on Windows."""
        if os.path.isdir(path):
            raise PermissionError(errno.EACCES, "Permission denied", str(path))
        if self._is_ours(path) and flags & os.O_CREAT:
            self._check_new(path)
        return _os_open(path, flags, *rest, **more)

    def _stat_without_proc(self, path: Any, *rest: Any, **more: Any) -> os.stat_result:
        if isinstance(path, str | os.PathLike) and str(path).startswith(("/proc/", "/sys/")):
            raise FileNotFoundError(errno.ENOENT, "No such file or directory", str(path))
        return _stat(path, *rest, **more)

    def _is_ours(self, path: Any) -> bool:
        return isinstance(path, str | os.PathLike) and os.path.abspath(os.fspath(path)).startswith(
            self._folder + os.sep
        )

    def _check_new(self, path: Any) -> None:
        """Reject names that Windows rejects, and record names that would refer to the same file."""
        where, name = os.path.split(os.path.abspath(os.fspath(path)))
        if self._windows and _REFUSED.search(name):
            raise OSError(errno.EINVAL, "Invalid argument", str(path))
        if os.path.isdir(where):
            for other in os.listdir(where):
                if other != name and _folded(other) == _folded(name):
                    self.broken.append(f"{name!r} and {other!r} are one file there")

    def _check_free(self, *paths: Any) -> None:
        """Reject access to files that this process has open or mapped, and to folders that contain one."""
        wanted = [os.path.abspath(os.fspath(path)) for path in paths]
        for name in _held_open():
            if any(name == each or name.startswith(each + os.sep) for each in wanted):
                result = "The process cannot access the file because it is being used by another process"
                raise PermissionError(errno.EACCES, result, name)


def _held_open() -> set[str]:
    found = set()
    for number in os.listdir("/proc/self/fd"):
        try:
            place = os.readlink(f"/proc/self/fd/{number}")
            # On this system, rmtree opens folders; on Windows it does not.
            if not stat.S_ISDIR(_stat(f"/proc/self/fd/{number}").st_mode):
                found.add(place)
        except OSError:
            continue
    with _open("/proc/self/maps", encoding="utf-8") as maps:
        found |= {line.split(maxsplit=5)[5].rstrip("\n") for line in maps if line.count("/")}
    return found


def _folded(name: str) -> str:
    return unicodedata.normalize("NFC", name).casefold()


def main(system: str, folder: Path, commands: list[list[str]]) -> None:
    """Run commands in the folder; print a line with the exit code of each, and finally a line about names."""
    os.chdir(folder)
    if system != "linux":
        import torch  # noqa: F401  (what it opens on its way in is not looked at)

        files = activate(system, folder)
    import kotha.storage.atomic
    from kotha.cli.main import main as command

    seen = {
        "platform": kotha.storage.atomic.sys.platform,
        "affinity": hasattr(kotha.storage.atomic.os, "sched_getaffinity"),
    }
    print(json.dumps({"seen": {**seen, "proc": Path("/proc/meminfo").exists()}}), flush=True)
    for words in commands:
        print(json.dumps({"command": words, "code": command(words)}), flush=True)
    print(json.dumps({"one_file_there": [] if system == "linux" else files.broken}))


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), json.loads(sys.argv[3]))
