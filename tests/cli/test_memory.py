"""Where memory is short, a command says so in words; ``make memory`` tries every command under many bounds."""

import errno
import subprocess
import sys
from pathlib import Path

import pytest

import kotha.cli.memory
from kotha.cli.main import FAILED, main
from kotha.cli.memory import LEAST, bounded_imports
from kotha.errors import DataError, KothaError, is_short_of_memory

NO_MEMORY = "kotha: there is not enough memory for this"


def came_from(error: Exception, cause: Exception) -> Exception:
    error.__cause__ = cause
    return error


@pytest.mark.parametrize(
    "error",
    [
        MemoryError(),
        OSError(errno.ENOMEM, "Cannot allocate memory", "weights"),
        RuntimeError("[enforce fail at alloc_cpu.cpp:113] data. DefaultCPUAllocator: not enough memory: you tried …"),
        RuntimeError("std::bad_alloc"),
        RuntimeError("can't start new thread"),
        ImportError("libx.so: failed to map segment from shared object"),
        came_from(DataError("weights cannot be read"), OSError(errno.ENOMEM, "Cannot allocate memory")),
    ],
    ids=repr,
)
def test_memory_that_is_refused_is_told(
    error: Exception, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(words: list[str]) -> None:
        raise error

    monkeypatch.setattr("kotha.cli.main._run", fail)
    assert main(["presets"]) == FAILED
    assert capsys.readouterr().err.startswith(NO_MEMORY)


@pytest.mark.parametrize(
    "error", [RuntimeError("a bug"), KothaError("the text says: out of memory"), OSError(errno.ENOSPC, "No space")]
)
def test_nothing_else_is_taken_for_it(error: Exception) -> None:
    assert not is_short_of_memory(error)


def test_a_bug_is_still_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kotha.cli.main._run", lambda words: [][0])
    with pytest.raises(IndexError):
        main(["presets"])


@pytest.mark.parametrize("name", LEAST)
def test_a_library_that_has_no_room_is_not_begun_with(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kotha.cli.memory, "bound_bytes", lambda: LEAST[name] - 1)
    monkeypatch.delitem(sys.modules, name, raising=False)
    with bounded_imports(), pytest.raises(KothaError, match=f"the libraries alone take {LEAST[name] // 1_000_000} MB"):
        __import__(name)
    assert not any(type(each).__name__ == "_Door" for each in sys.meta_path)


@pytest.mark.skipif(sys.platform != "linux", reason="bounds are set as Linux does it")
def test_a_bound_is_told_before_the_libraries_end_the_process(tmp_path: Path) -> None:
    from tests.fault_injection.memory import begun, judge

    ran = begun(["generate", "আমি"], tmp_path, 300)
    assert judge(ran) is None and ran.returncode == FAILED
    assert "may take 300 MB of memory" in ran.stderr
    assert begun(["presets"], tmp_path, 300).returncode == 0, "what needs no library needs no room for it"


@pytest.mark.skipif(sys.platform != "linux", reason="bounds are set as Linux does it")
@pytest.mark.parametrize(
    ("does", "code", "told"),
    [
        ("os.abort()", 1, "kotha: it was ended for want of memory, of which it may take 2000 MB (ulimit -v)"),
        ("os.kill(os.getpid(), 9)", 1, "kotha: it was ended for want of memory"),
        ("sys.exit(7)", 7, ""),
        ("print('done')", 0, ""),
    ],
)
def test_who_is_ended_by_a_library_is_spoken_for(does: str, code: int, told: str) -> None:
    program = f"""
import os, resource, sys
resource.setrlimit(resource.RLIMIT_AS, (2_000_000_000,) * 2)
from kotha.cli.memory import watched
ended = watched()
if ended is not None:
    sys.exit(ended)
{does}
"""
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert ran.returncode == code and ran.stderr.startswith(told) and bool(ran.stderr) == bool(told)


@pytest.mark.skipif(sys.platform != "linux", reason="bounds are set as Linux does it")
def test_who_reads_bangla_is_told_in_bangla(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KOTHA_LANGUAGE", "bn")
    program = """
import os, resource, sys
resource.setrlimit(resource.RLIMIT_AS, (2_000_000_000,) * 2)
from kotha.cli.memory import watched
ended = watched()
if ended is not None:
    sys.exit(ended)
os.abort()
"""
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, encoding="utf-8")
    assert ran.returncode == 1 and ran.stderr.startswith("kotha: মেমরির অভাবে") and "২০০০ MB" in ran.stderr


def test_where_nothing_is_bounded_nobody_is_forked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kotha.cli.memory, "bound_bytes", lambda: None)
    monkeypatch.setattr(kotha.cli.memory.os, "fork", lambda: pytest.fail("forked"))
    assert kotha.cli.memory.watched() is None


@pytest.mark.skipif(sys.platform != "linux", reason="bounds are set as Linux does it")
def test_a_signal_reaches_the_command_that_is_watched(tmp_path: Path) -> None:
    program = """
import os, resource, signal, sys, time
resource.setrlimit(resource.RLIMIT_AS, (2_000_000_000,) * 2)
from kotha.cli.memory import watched
ended = watched()
if ended is not None:
    sys.exit(ended)
signal.signal(signal.SIGTERM, lambda *_: sys.exit(9))
print("there", flush=True)
time.sleep(60)
"""
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None and parent.stdout.readline() == "there\n"
        parent.terminate()
        assert parent.wait(30) == 9
