"""Trace and inject faults into the file-system calls of a command with ``strace``.

Unlike a libc shim, kernel tracing sees every call of every thread and needs no compiler. ``strace`` is attached to a
process that stopped itself after its imports, so the imports are not traced.
"""

import os
import re
import shutil
import signal
import subprocess
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.launching import Launcher

# Calls that change a file system or make a change durable; not every architecture has all of them.
CHANGES = (
    *("open", "openat", "creat", "write", "pwrite64", "writev", "pwritev", "truncate", "ftruncate", "fallocate"),
    *("rename", "renameat", "renameat2", "unlink", "unlinkat", "rmdir", "mkdir", "mkdirat", "link", "linkat"),
    *("symlink", "symlinkat", "copy_file_range", "sendfile", "fsync", "fdatasync", "msync"),
)
# Calls that move a file offset.
MOVES = ("lseek",)
# Calls that read data, directory entries or metadata.
READS = (
    *("read", "pread64", "readv", "preadv", "preadv2", "mmap", "getdents64", "readlink", "readlinkat"),
    *("stat", "lstat", "fstat", "newfstatat", "statx"),
)
# Calls whose string arguments are data rather than paths.
_CONTENTS = ("write", "pwrite64", "writev", "read", "pread64", "readv", "preadv", "preadv2")

_LINE = re.compile(r"^(\d+) +(\w+)\((.*)\) += (-?\d+|\?)(.*)$")
_WORD = re.compile(r'"((?:\\x[0-9a-f]{2})*)"|<((?:\\x[0-9a-f]{2})*)>')


@dataclass(frozen=True)
class Call:
    """A system call, with its result and its arguments as printed by ``strace``."""

    process: int
    name: str
    words: str
    result: int
    rest: str
    ordinal: int  # the call is the n-th call with this name in its thread

    def texts(self) -> list[bytes]:
        """Return the string arguments in order."""
        return [_bytes(found[1]) for found in _WORD.finditer(self.words) if found[1] is not None]

    def places(self) -> list[str]:
        """Return the paths of the file descriptors in the arguments and the result."""
        return [os.fsdecode(_bytes(found[2])) for found in _WORD.finditer(self.words + self.rest) if found[2]]

    def touches(self, folder: Path) -> bool:
        """Return whether the call concerns a directory or something in it."""
        named = self.places()[:1] if self.name in _CONTENTS else self.places()
        if self.name not in _CONTENTS:
            named += [os.fsdecode(text) for text in self.texts() if len(text) < 4096]
        return any(place == str(folder) or place.startswith(f"{folder}/") for place in named)


def _bytes(hexadecimal: str) -> bytes:
    return bytes.fromhex(hexadecimal.replace("\\x", ""))


def missing() -> str:
    """Return why tracing is impossible on this machine, or an empty string."""
    if shutil.which("strace") is None:
        return "no strace on this machine"
    tried = subprocess.run(["strace", "-qq", "-e", "trace=none", "true"], check=False, capture_output=True)
    return "" if tried.returncode == 0 else "ptrace is not permitted on this machine"


def trace(launcher: Launcher, words: Sequence[str], log: Path) -> tuple[int, list[Call]]:
    """Run a command; return its exit code and its calls that change the file system."""
    code, out = _run(launcher, words, log, ["-xx", "-s", "100000000", _only(*CHANGES, *MOVES)])
    return code, list(read_calls(out.read_text(encoding="ascii").splitlines()))


def trace_reads(launcher: Launcher, words: Sequence[str], log: Path) -> tuple[int, list[Call]]:
    """Run a command; return its exit code and its read calls, without the data."""
    code, out = _run(launcher, words, log, ["-xx", "-s", "4096", _only(*READS)])
    return code, list(read_calls(out.read_text(encoding="ascii").splitlines()))


def run_with_fault(launcher: Launcher, words: Sequence[str], log: Path, name: str, ordinal: int, fault: str) -> int:
    """Run a command with a fault (``signal=KILL`` or ``error=EIO``) at one call; return its exit code."""
    return _run(launcher, words, log, [_only(name), f"--inject={name}:{fault}:when={ordinal}"])[0]


def run_slowed(launcher: Launcher, words: Sequence[str], log: Path, microseconds: int) -> int:
    """Run a command with a delay after every call that changes the disk; return its exit code."""
    every = ",".join(f"?{name}" for name in CHANGES)
    return _run(launcher, words, log, [_only(*CHANGES), f"--inject={every}:delay_exit={microseconds}"])[0]


def _only(*names: str) -> str:
    return f"--trace={','.join(f'?{name}' for name in names)}"


def _run(launcher: Launcher, words: Sequence[str], log: Path, options: Sequence[str]) -> tuple[int, Path]:
    process = launcher.start(words, log, stops=True)
    _until(lambda: Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()[0] == "T")
    out = log.with_name(f"{log.name}.calls")
    command = ["strace", "-f", "-y", *options, "-o", str(out), "-p", str(process)]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as tracer:
        assert tracer.stderr is not None
        result = tracer.stderr.readline()
        assert "attached" in result, result
        os.kill(process, signal.SIGCONT)
        code = launcher.wait(process)
        tracer.stderr.read()
    return code, out


def _until(holds: Callable[[], bool], seconds: float = 60) -> None:
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end, "the process never stopped itself"
        time.sleep(0.001)


def read_calls(lines: Iterable[str]) -> Iterable[Call]:
    """Parse the output of ``strace``; join the two lines of an interrupted call."""
    begun: dict[str, str] = {}
    made: Counter[tuple[str, str]] = Counter()
    for line in lines:
        process, _, answer = line.partition(" ")
        if answer.rstrip().endswith("<unfinished ...>"):
            begun[process] = answer.rstrip().removesuffix("<unfinished ...>").strip()
            continue
        if resumed := re.match(r" *<\.\.\. \w+ resumed>(.*)", answer):
            line = f"{process} {begun.pop(process, '')}{resumed[1]}"
        if found := _LINE.match(line):
            made[process, found[2]] += 1
            result = -1 if found[4] == "?" else int(found[4])
            yield Call(int(process), found[2], found[3], result, found[5], made[process, found[2]])
