"""Out-of-memory errors are reported in one line."""

import errno

import pytest

from kotha.cli.main import FAILED, main
from kotha.errors import DataError, KothaError, is_short_of_memory

NO_MEMORY = "kotha: not enough memory; process less data at a time"


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
def test_out_of_memory_errors_are_reported(
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
def test_other_errors_are_not_reported_as_out_of_memory(error: Exception) -> None:
    assert not is_short_of_memory(error)


def test_a_bug_still_gives_a_traceback(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kotha.cli.main._run", lambda words: [][0])
    with pytest.raises(IndexError):
        main(["presets"])
