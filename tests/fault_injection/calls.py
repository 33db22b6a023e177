"""What a command asks of the file system, call by call, as ``strace`` sees it; and ``strace`` as the one who strikes.

A shim in the library of C would not see what ``fwrite`` or a static program writes, and would have to be compiled; the
kernel's own tracing sees every call of every thread. ``strace`` is attached to a process that has stopped itself before
its first step, so that the imports are neither waited for nor traced.
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

# What changes a file system, and what makes a change last; a processor has some of these and not others.
CHANGES = (
    *("open", "openat", "creat", "write", "pwrite64", "writev", "pwritev", "truncate", "ftruncate", "fallocate"),
    *("rename", "renameat", "renameat2", "unlink", "unlinkat", "rmdir", "mkdir", "mkdirat", "link", "linkat"),
    *("symlink", "symlinkat", "copy_file_range", "sendfile", "fsync", "fdatasync", "msync"),
)
# What moves the place at which a descriptor writes.
MOVES = ("lseek",)
# What brings something from a disk: a file's bytes, its pages, the names in a folder, what is known of a name.
READS = (
    *("read", "pread64", "readv", "preadv", "preadv2", "mmap", "getdents64", "readlink", "readlinkat"),
    *("stat", "lstat", "fstat", "newfstatat", "statx"),
)
# Of these calls the words among the brackets are contents, not names.
_CONTENTS = ("write", "pwrite64", "writev", "read", "pread64", "readv", "preadv", "preadv2")

_LINE = re.compile(r"^(\d+) +(\w+)\((.*)\) += (-?\d+|\?)(.*)$")
_WORD = re.compile(r'"((?:\\x[0-9a-f]{2})*)"|<((?:\\x[0-9a-f]{2})*)>')


@dataclass(frozen=True)
class Call:
    """One call: who made it, its name, its words as ``strace`` writes them, what came back."""

    process: int
    name: str
    words: str
    result: int
    rest: str
    ordinal: int  # the so-manieth of this name that this thread made

    def texts(self) -> list[bytes]:
        """The strings among the words, in their order."""
        return [_bytes(found[1]) for found in _WORD.finditer(self.words) if found[1] is not None]

    def places(self) -> list[str]:
        """The paths of the descriptors among the words and in what came back, in their order."""
        return [os.fsdecode(_bytes(found[2])) for found in _WORD.finditer(self.words + self.rest) if found[2]]

    def touches(self, folder: Path) -> bool:
        """Whether the call is about something in a folder, or about the folder."""
        named = self.places()[:1] if self.name in _CONTENTS else self.places()
        if self.name not in _CONTENTS:
            named += [os.fsdecode(text) for text in self.texts() if len(text) < 4096]
        return any(place == str(folder) or place.startswith(f"{folder}/") for place in named)


def _bytes(hexadecimal: str) -> bytes:
    return bytes.fromhex(hexadecimal.replace("\\x", ""))


def missing() -> str:
    """Why nothing can be traced here, or nothing."""
    if shutil.which("strace") is None:
        return "no strace on this machine"
    tried = subprocess.run(["strace", "-qq", "-e", "trace=none", "true"], check=False, capture_output=True)
    return "" if tried.returncode == 0 else "this machine lets nobody trace"


def traced(launcher: Launcher, words: Sequence[str], log: Path) -> tuple[int, list[Call]]:
    """Run a command to its end; its exit code, and every call that it made."""
    code, out = _run(launcher, words, log, ["-xx", "-s", "100000000", _only(*CHANGES, *MOVES)])
    return code, list(read_calls(out.read_text(encoding="ascii").splitlines()))


def traced_reading(launcher: Launcher, words: Sequence[str], log: Path) -> tuple[int, list[Call]]:
    """The same for the calls that read; what they brought is left out."""
    code, out = _run(launcher, words, log, ["-xx", "-s", "4096", _only(*READS)])
    return code, list(read_calls(out.read_text(encoding="ascii").splitlines()))


def struck(launcher: Launcher, words: Sequence[str], log: Path, name: str, ordinal: int, blow: str) -> int:
    """Run a command that is struck at a call: ``signal=KILL``, or ``error=EIO``; its exit code."""
    return _run(launcher, words, log, [_only(name), f"--inject={name}:{blow}:when={ordinal}"])[0]


def slowed(launcher: Launcher, words: Sequence[str], log: Path, microseconds: int) -> int:
    """Run a command to which every call that changes a disk takes so long; its exit code."""
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
        said = tracer.stderr.readline()
        assert "attached" in said, said
        os.kill(process, signal.SIGCONT)
        code = launcher.wait(process)
        tracer.stderr.read()
    return code, out


def _until(holds: Callable[[], bool], seconds: float = 60) -> None:
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end, "it never stopped itself"
        time.sleep(0.001)


def read_calls(lines: Iterable[str]) -> Iterable[Call]:
    """The calls in what ``strace`` wrote; one that another thread's call interrupted is put together again."""
    begun: dict[str, str] = {}
    made: Counter[tuple[str, str]] = Counter()
    for line in lines:
        process, _, said = line.partition(" ")
        if said.rstrip().endswith("<unfinished ...>"):
            begun[process] = said.rstrip().removesuffix("<unfinished ...>").strip()
            continue
        if resumed := re.match(r" *<\.\.\. \w+ resumed>(.*)", said):
            line = f"{process} {begun.pop(process, '')}{resumed[1]}"
        if found := _LINE.match(line):
            made[process, found[2]] += 1
            result = -1 if found[4] == "?" else int(found[4])
            yield Call(int(process), found[2], found[3], result, found[5], made[process, found[2]])
