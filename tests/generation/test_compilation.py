"""The compiled ``native.c`` is cached for later processes, and only files owned by the user are executed."""

import ctypes
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kotha.generation import compilation
from kotha.generation.compilation import native

pytestmark = pytest.mark.skipif(native() is None, reason="no C compiler on this machine")


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    small = tmp_path / "small.c"
    small.write_text("void step(void) {} int most_threads(void) { return 1; }")
    monkeypatch.setattr(compilation, "_SOURCE", small)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    yield tmp_path / "cache" / "kotha"
    native.cache_clear()


@pytest.fixture
def compiled(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The compiler commands that were run."""
    commands: list[str] = []
    run = subprocess.run

    def counted(command: Any, **more: Any) -> Any:
        commands.append(command)
        return run(command, **more)

    monkeypatch.setattr(subprocess, "run", counted)
    return commands


def again() -> ctypes.CDLL | None:
    """The state that another process would start with."""
    native.cache_clear()
    return native()


def test_it_is_compiled_once(home: Path, compiled: list[str]) -> None:
    assert again() is not None and again() is not None
    assert len(compiled) == 1
    (kept,) = home.iterdir()
    assert kept.suffix == ".so" and kept.stat().st_mode & 0o777 == 0o600 and home.stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize("what", ["source", "flags", "CPU"])
def test_it_is_compiled_again_for_another(what: str, home: Path, compiled: list[str], monkeypatch: Any) -> None:
    again()
    other = home.parent / "other.c"
    other.write_text(compilation._SOURCE.read_text() + "\n" if what == "source" else "flags : sse2\n")
    name, value = {
        "source": ("_SOURCE", other),
        "flags": ("_FLAGS", (*compilation._FLAGS, "-g")),
        "CPU": ("_CPUINFO", other),
    }[what]
    monkeypatch.setattr(compilation, name, value)
    assert again() is not None
    assert len(compiled) == 2 and len(list(home.glob("*.so"))) == 2


@pytest.mark.parametrize("damage", ["empty", "not a library"])
def test_a_damaged_file_is_replaced(damage: str, home: Path, compiled: list[str]) -> None:
    again()
    (kept,) = home.iterdir()
    kept.unlink()  # not rewritten in place, because this process has mapped the file
    kept.write_bytes(b"" if damage == "empty" else b"not a library")
    kept.chmod(0o600)
    assert again() is not None and again() is not None
    assert len(compiled) == 2


@pytest.mark.parametrize("fault", ["writable file", "writable folder", "link", "linked folder", "another owner"])
def test_what_others_could_have_written_is_not_executed(
    fault: str, home: Path, compiled: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    again()
    (kept,) = home.iterdir()
    if fault == "writable file":
        kept.chmod(0o620)
    elif fault == "writable folder":
        home.chmod(0o777)
    elif fault == "link":
        kept.rename(home.parent / "elsewhere.so")
        kept.symlink_to(home.parent / "elsewhere.so")
    elif fault == "linked folder":
        home.rename(home.parent / "elsewhere")
        home.symlink_to(home.parent / "elsewhere")
    else:
        other = os.getuid() + 1
        monkeypatch.setattr(os, "geteuid", lambda: other)
    loaded: list[str] = []
    load = ctypes.CDLL

    def noted(path: str, **more: Any) -> ctypes.CDLL:
        loaded.append(path)
        return load(path, **more)

    monkeypatch.setattr(ctypes, "CDLL", noted)
    assert again() is not None
    assert len(compiled) == 2 and str(kept) not in loaded


def test_where_nothing_can_be_kept_it_is_compiled_each_time(home: Path, compiled: list[str]) -> None:
    home.parent.write_text("a file where the folder should be")
    assert again() is not None and again() is not None
    assert len(compiled) == 2


def test_only_the_newest_are_kept(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home.mkdir(parents=True, mode=0o700)
    for number in range(12):
        (home / f"native-{number}.so").touch()
        os.utime(home / f"native-{number}.so", (number, number))
    again()
    names = {path.name for path in home.glob("native-*.so")}
    assert len(names) == compilation._KEPT and "native-11.so" in names and "native-0.so" not in names
