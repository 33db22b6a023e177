"""Atomic files and folders, locks, and status queries."""

import errno
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from kotha.errors import KothaError, UsageError
from kotha.storage import atomic as whole
from kotha.storage import output_paths as places
from kotha.storage.atomic import (
    atomic_directory,
    atomic_file,
    atomic_write,
    clear_leftovers,
    filled_folder,
    give_up,
    remove_directory,
    write_page,
)
from kotha.storage.json_files import read_table
from kotha.storage.locks import InUseError, Lock
from kotha.storage.output_paths import check_file_place, check_folder_place
from kotha.storage.status import exists, is_directory, is_file, is_file_in, is_link, matching, walk


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_a_file_is_written_with_its_folders(tmp_path: Path) -> None:
    atomic_write(tmp_path / "a" / "b.txt", "কথা")
    assert (tmp_path / "a" / "b.txt").read_text(encoding="utf-8") == "কথা"
    assert names(tmp_path / "a") == ["b.txt"]


def test_a_page_replaces_nothing_but_a_page(tmp_path: Path) -> None:
    for name in ("page.html", "old.HTM", "new"):
        write_page(tmp_path / name, "<p>")
    write_page(tmp_path / "page.html", "<h1>")
    atomic_write(tmp_path / "config.json", "{}")
    with pytest.raises(UsageError, match=r"config\.json exists and is not a \.html file"):
        write_page(tmp_path / "config.json", "<p>")
    assert (tmp_path / "config.json").read_text() == "{}"


def test_an_error_keeps_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    atomic_write(path, "old")
    with pytest.raises(ZeroDivisionError), atomic_file(path) as file:
        file.write("new")
        raise ZeroDivisionError
    assert path.read_text() == "old"
    assert names(tmp_path) == ["a.txt"]


def test_a_folder_appears_at_the_end(tmp_path: Path) -> None:
    out = tmp_path / "out"
    with atomic_directory(out, lambda _: False) as partial:
        (partial / "x").write_text("1")
        assert not out.exists()
    assert names(out) == ["x"]
    assert names(tmp_path) == ["out"]


def test_a_folder_that_fails_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError), atomic_directory(tmp_path / "out", lambda _: False) as partial:
        (partial / "x").write_text("1")
        raise ZeroDivisionError
    assert names(tmp_path) == []


def test_an_existing_folder_is_replaced_only_if_allowed(tmp_path: Path) -> None:
    out = tmp_path / "out"
    out.mkdir()
    with atomic_directory(out, lambda _: False) as partial:  # an empty folder can be replaced
        (partial / "x").write_text("1")
    with pytest.raises(KothaError, match="exists; choose another f"), atomic_directory(out, lambda _: False):
        raise AssertionError("never reached")
    with atomic_directory(out, lambda _: True) as partial:
        (partial / "y").write_text("2")
    assert names(out) == ["y"]
    assert names(tmp_path) == ["out"]


def test_a_file_instead_of_a_folder_is_rejected(tmp_path: Path) -> None:
    (tmp_path / "out").write_text("precious")
    with (
        pytest.raises(KothaError, match="out is a file, but the output is a folder"),
        atomic_directory(tmp_path / "out", lambda _: True),
    ):
        raise AssertionError("never reached")


def test_a_folder_that_cannot_be_created_is_reported(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("not a folder")
    with pytest.raises(KothaError, match=r"page\.html cannot be written: .*file is a file, not a folder"):
        atomic_write(tmp_path / "file" / "folder" / "page.html", "<p>")


def test_a_folder_is_not_written_over_a_link(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    with pytest.raises(KothaError, match="link is a link to"), atomic_directory(tmp_path / "link", lambda old: True):
        pass
    assert names(tmp_path) == ["link", "real"]


def test_a_name_that_is_too_long_is_reported(tmp_path: Path) -> None:
    with (
        pytest.raises(KothaError, match="could not be written"),
        atomic_directory(tmp_path / ("ক" * 200), lambda old: True),
    ):
        pass
    assert names(tmp_path) == []


def test_a_folder_that_is_replaced_is_never_absent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    out = tmp_path / "out"
    atomic_write(out / "x", "old")

    def moved(path: Path, _: Path) -> None:
        raise AssertionError(f"{path} is renamed: a kill here would leave none")

    monkeypatch.setattr(Path, "rename", moved)
    with atomic_directory(out, lambda _: True) as partial:
        (partial / "y").write_text("new")
    assert names(out) == ["y"]
    assert names(tmp_path) == ["out"]


def test_without_exchange_a_kill_between_two_renames_is_repaired(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(whole, "_exchange", lambda *_: False)
    out, old = tmp_path / "out", tmp_path / ".out.kotha-old"
    atomic_write(out / "x", "old")
    with atomic_directory(out, lambda _: True) as partial:
        (partial / "y").write_text("new")
    assert names(tmp_path) == ["out"]
    out.rename(old)  # killed here: the old content has been renamed
    with pytest.raises(KothaError, match="out exists"), atomic_directory(out, lambda _: False):
        pass
    assert names(out) == ["y"]
    assert names(tmp_path) == ["out"]


def test_a_path_has_one_writer_at_a_time(tmp_path: Path) -> None:
    wording = rf"is in use: another process \(pid {os.getpid()}\) is writing there; wait until it ends, stop it"
    with atomic_directory(tmp_path / "out", lambda _: True) as partial:
        (partial / "x").write_text("1")
        with pytest.raises(InUseError, match="out " + wording), atomic_directory(tmp_path / "out", lambda _: True):
            pass
    assert names(tmp_path / "out") == ["x"]
    with atomic_file(tmp_path / "page.html") as file:
        file.write("first")
        with pytest.raises(InUseError, match=r"page\.html " + wording):
            atomic_write(tmp_path / "page.html", "second")
    assert (tmp_path / "page.html").read_text() == "first"


WRITES = """
import sys
from pathlib import Path
from kotha.storage.atomic import atomic_file, atomic_directory
here = Path(sys.argv[1])
with atomic_directory(here / "out", lambda _: True) as partial, atomic_file(here / "page") as page:
    (partial / "x").write_text("half")
    page.write("half")
    print("writing", flush=True)
    sys.stdin.read()
"""


def test_leftovers_of_a_killed_writer_are_removed_by_the_next(tmp_path: Path) -> None:
    process = subprocess.Popen([sys.executable, "-c", WRITES, tmp_path], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert process.stdout is not None and process.stdin is not None
    with process:
        process.stdout.readline()
        with pytest.raises(InUseError, match=f"pid {process.pid}"):
            atomic_write(tmp_path / "page", "ours")
        process.send_signal(signal.SIGKILL)
    assert names(tmp_path) == [".out.kotha-partial", ".page.kotha-partial"]
    atomic_write(tmp_path / "page", "ours")
    with atomic_directory(tmp_path / "out", lambda _: True) as partial:
        assert names(partial) == [], "leftovers of the killed process are removed"
    assert names(tmp_path) == ["out", "page"]
    assert (tmp_path / "page").read_text() == "ours"


def test_giving_up_leaves_nothing_and_touches_nothing_else(tmp_path: Path) -> None:
    atomic_write(tmp_path / "page", "old")
    with (
        pytest.raises(KothaError, match="could not be written"),
        atomic_directory(tmp_path / "a" / "out", lambda _: True),
        atomic_file(tmp_path / "page"),
        filled_folder(tmp_path / "b" / "run"),
    ):
        atomic_write(tmp_path / "b" / "run" / "config.json", "{}")
        assert names(tmp_path) == [".page.kotha-partial", "a", "b", "page"]
        give_up()
        assert names(tmp_path) == ["page"]
    assert (tmp_path / "page").read_text() == "old"


def test_a_full_disk_leaves_no_empty_folders(tmp_path: Path) -> None:
    with pytest.raises(KothaError, match="No space left"), atomic_file(tmp_path / "a" / "b" / "page"):
        raise OSError(28, "No space left on device")
    assert names(tmp_path) == []


@pytest.mark.parametrize("link", [os.symlink, os.link])
def test_a_link_at_the_partial_path_is_never_followed(tmp_path: Path, link) -> None:
    atomic_write(tmp_path / "diary", "precious")
    link(tmp_path / "diary", tmp_path / ".page.kotha-partial")
    link(tmp_path / "diary", tmp_path / ".out.kotha-partial")
    atomic_write(tmp_path / "page", "ours")
    with atomic_directory(tmp_path / "out", lambda _: True) as partial:
        (partial / "x").write_text("1")
    assert (tmp_path / "diary").read_text() == "precious"
    assert names(tmp_path) == ["diary", "out", "page"]


@pytest.mark.parametrize("ending", ["partial", "old"])
def test_the_target_of_a_link_at_the_partial_path_is_not_emptied(tmp_path: Path, ending: str) -> None:
    atomic_write(tmp_path / "home" / "diary", "precious")
    (tmp_path / f".out.kotha-{ending}").symlink_to(tmp_path / "home")
    with atomic_directory(tmp_path / "out", lambda _: True) as partial:
        (partial / "x").write_text("1")
    assert (tmp_path / "home" / "diary").read_text() == "precious"
    assert names(tmp_path) == ["home", "out"]


@pytest.mark.parametrize("ending", ["partial", "old"])
def test_files_of_another_user_are_rejected_and_not_emptied(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ending: str
) -> None:
    theirs = tmp_path / f".out.kotha-{ending}"
    theirs.mkdir()
    (theirs / "diary").write_text("dear diary")
    monkeypatch.setattr(os, "geteuid", lambda: theirs.stat().st_uid + 1)
    wording = f"kotha-{ending} belongs to another user; have it removed, or choose another path"
    with pytest.raises(KothaError, match=wording), atomic_directory(tmp_path / "out", lambda _: True):
        raise AssertionError("never reached")
    assert (theirs / "diary").read_text() == "dear diary" and not (tmp_path / "out").exists()
    (tmp_path / ".page.kotha-partial").write_text("theirs")
    with pytest.raises(KothaError, match="belongs to another user"):
        atomic_write(tmp_path / "page", "mine")
    assert (tmp_path / ".page.kotha-partial").read_text() == "theirs"


def test_other_names_with_partial_or_old_are_not_touched(tmp_path: Path) -> None:
    theirs = [".out.old", ".out.partial", ".page.partial"]
    for name in theirs:
        atomic_write(tmp_path / name / "thesis", "precious")
    atomic_write(tmp_path / "page", "ours")
    with atomic_directory(tmp_path / "out", lambda _: True) as partial:
        (partial / "x").write_text("1")
    assert names(tmp_path) == [*theirs, "out", "page"]
    assert [names(tmp_path / name) for name in theirs] == [["thesis"]] * 3


@pytest.mark.parametrize("place", [".", "..", "/", "new/.."])
def test_the_current_directory_is_not_replaced(tmp_path: Path, monkeypatch, place: str) -> None:
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    with (
        pytest.raises(KothaError, match="is the current directory"),
        atomic_directory(Path(place), lambda _: True),
    ):
        pass
    with pytest.raises(KothaError):
        atomic_write(Path(place), "x")
    assert names(tmp_path / "here") == []


def test_moved_content_is_restored_and_half_removed_content_is_not(tmp_path: Path) -> None:
    for name in (".best.kotha-old", ".best.kotha-partial", ".best.kotha-gone", ".other.kotha-old", "other"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "said").write_text(name)
    clear_leftovers(tmp_path, "best")
    clear_leftovers(tmp_path, "other")
    assert {path.name for path in tmp_path.iterdir()} == {"best", "other"}
    assert (tmp_path / "best" / "said").read_text() == ".best.kotha-old", "complete after a kill between two renames"
    assert (tmp_path / "other" / "said").read_text() == "other"


def test_a_half_removed_folder_never_reappears(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "step"
    folder.mkdir()
    (folder / "a").write_text("a")
    with monkeypatch.context() as broken:
        broken.setattr(shutil, "rmtree", lambda *_, **__: None)  # killed before anything was removed
        remove_directory(folder)
    assert not folder.exists() and any(tmp_path.iterdir())
    with atomic_directory(folder, lambda _: False) as partial:
        (partial / "b").write_text("b")
    assert [path.name for path in folder.iterdir()] == ["b"]
    remove_directory(folder)
    assert not any(tmp_path.iterdir())


def test_deeply_nested_json_is_rejected(tmp_path: Path) -> None:
    for inner in ("[" * 200 + "]" * 200, '{"a": ' * 200 + "1" + "}" * 200):
        (tmp_path / "t.json").write_text(f'{{"model": {inner}}}', encoding="utf-8")
        with pytest.raises(KothaError, match="nested deeper than 64"):
            read_table(tmp_path / "t.json")
    (tmp_path / "t.json").write_text('{"model": [[[1]]]}', encoding="utf-8")
    assert read_table(tmp_path / "t.json") == {"model": [[[1]]]}


def test_status_functions_describe_paths(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    (tmp_path / "folder").mkdir()
    for name, target in (("to a file", "file"), ("to a folder", "folder"), ("to nothing", "gone"), ("round", "round")):
        (tmp_path / name).symlink_to(tmp_path / target)
    found = {
        look.__name__: [path.name for path in sorted(tmp_path.iterdir()) if look(path)]
        for look in (exists, is_file, is_directory, is_link)
    }
    assert found == {
        "exists": ["file", "folder", "to a file", "to a folder"],
        "is_file": ["file", "to a file"],
        "is_directory": ["folder", "to a folder"],
        "is_link": ["round", "to a file", "to a folder", "to nothing"],
    }
    assert not any(exists(tmp_path / name) for name in ("gone", "file/in it", "a\0b", "\ud800"))


@pytest.mark.parametrize("look", [exists, is_file, is_directory, is_link])
@pytest.mark.parametrize("error", [errno.EIO, errno.EACCES, errno.ENAMETOOLONG])
def test_an_io_error_is_not_taken_for_a_missing_file(look, error: int, tmp_path: Path, monkeypatch) -> None:
    """From Python 3.14 on, Path.exists() returns False for such errors."""
    (tmp_path / "a").touch()

    def refuse(self: Path, **_: object) -> None:
        raise OSError(error, os.strerror(error), str(self))

    monkeypatch.setattr(Path, "stat", refuse)
    with pytest.raises(OSError, match=os.strerror(error)):
        look(tmp_path / "a")


def test_the_content_of_a_folder_is_sorted(tmp_path: Path) -> None:
    for name in ("b.txt", ".a.txt", "c.md", "in/d.txt"):
        atomic_write(tmp_path / name, "")
    (tmp_path / "linked").symlink_to(tmp_path / "in")
    assert [path.name for path in matching(tmp_path, "*.txt")] == [".a.txt", "b.txt"]
    found = [path.relative_to(tmp_path).as_posix() for path in walk(tmp_path)]
    assert found == [".a.txt", "b.txt", "c.md", "in", "in/d.txt", "linked"]
    assert matching(tmp_path / "gone") == matching(tmp_path / "c.md") == []


def test_a_folder_that_cannot_be_listed_is_not_empty(tmp_path: Path, monkeypatch) -> None:
    """From Python 3.12 on, Path.glob() treats such a folder as empty."""
    monkeypatch.setattr(Path, "iterdir", _broken)
    with pytest.raises(OSError, match=os.strerror(errno.EIO)):
        matching(tmp_path, "*.txt")


def _broken(*_: object, **__: object) -> None:
    raise OSError(errno.EIO, os.strerror(errno.EIO))


def test_an_io_error_before_writing_names_the_path(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(whole, "exists", _broken)
    with pytest.raises(whole.NotWrittenError, match="could not be written: Input/output error"):
        atomic_write(tmp_path / "in" / "a.txt", "")
    assert not whole._unfinished


@pytest.mark.parametrize("name", ["a?b.html", "out*"])
def test_an_invalid_windows_name_is_rejected_before_the_work(name: str, tmp_path: Path, monkeypatch) -> None:
    def refuse(self: Path, **_: object) -> None:
        raise OSError(errno.EINVAL, "The filename, directory name, or volume label syntax is incorrect", str(self))

    monkeypatch.setattr(Path, "lstat", refuse)
    for check in (check_file_place, lambda path: check_folder_place(path, lambda _: True)):
        with pytest.raises(UsageError, match="cannot be written: The filename"):
            check(tmp_path / name)


def test_a_missing_drive_is_rejected(monkeypatch) -> None:
    monkeypatch.setattr(places, "exists", lambda _: False)
    monkeypatch.setattr(places, "is_link", lambda _: False)
    for path in (Path("/a/b.html"), Path("/")):
        with pytest.raises(UsageError, match=r"no files can be created in /$"):
            places._check_above(path)


def test_an_invalid_name_does_not_exist(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("")
    assert is_file_in(tmp_path, "a")
    for name in ("b", "x" * 5000, "a\0", "../a", "", ".", f"{tmp_path.name}/a", "\ud800"):
        assert not is_file_in(tmp_path, name), name


def test_a_finished_writer_does_not_remove_the_next_ones_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The partial name is free once the first writer has renamed it, before that writer has finished."""
    path, real, following = tmp_path / "a.txt", whole._sync_folder, []

    def sync_slowly(folder: Path) -> None:
        if path.exists() and not following:
            following.append(whole.atomic_path(path))
            following.append(following[0].__enter__())
            following[1].write_text("second")
        real(folder)

    monkeypatch.setattr(whole, "_sync_folder", sync_slowly)
    whole.atomic_write(path, "first")
    assert following[1].read_text() == "second", "the first removed what the second was writing"
    assert path.read_text() == "first"
    following[0].__exit__(None, None, None)
    assert path.read_text() == "second" and list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("can_exchange", [True, False])
def test_a_finished_writer_does_not_remove_the_next_ones_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, can_exchange: bool
) -> None:
    out, real, following = tmp_path / "out", whole._sync_folder, []
    out.mkdir()
    (out / "old").touch()

    def sync_slowly(folder: Path) -> None:
        if (out / "first").exists() and not following:
            following.append(whole.atomic_directory(out, lambda _: True))
            following.append(following[0].__enter__())
            (following[1] / "second").touch()
        real(folder)

    monkeypatch.setattr(whole, "_sync_folder", sync_slowly)
    if not can_exchange:
        monkeypatch.setattr(whole, "_exchange", lambda *_: False)
    with whole.atomic_directory(out, lambda _: True) as folder:
        (folder / "first").touch()
    assert [each.name for each in following[1].iterdir()] == ["second"]
    following[0].__exit__(None, None, None)
    assert [each.name for each in out.iterdir()] == ["second"] and list(tmp_path.iterdir()) == [out]


def test_a_removed_partial_file_is_not_reported_as_written(tmp_path: Path) -> None:
    with pytest.raises(KothaError, match="it was removed while"), whole.atomic_path(tmp_path / "a.txt") as partial:
        partial.unlink()
    assert list(tmp_path.iterdir()) == []


def test_a_folder_locked_by_another_process_is_not_removed(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    with pytest.raises(InUseError), whole.filled_folder(folder):
        held = Lock(folder)  # as if another process had locked the new folder first
        Lock(folder)
    assert folder.is_dir()
    held.release()
    with pytest.raises(InUseError), whole.filled_folder(tmp_path / "other"):
        raise InUseError(tmp_path / "elsewhere")
    assert not (tmp_path / "other").exists(), "another path is in use"


def test_a_folder_that_cannot_be_replaced_is_restored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    out, rename = tmp_path / "out", Path.rename
    out.mkdir()
    (out / "old").touch()

    def refuse(self: Path, target: Path) -> Path:
        if self.name.endswith("kotha-partial"):
            raise PermissionError(13, "it is open elsewhere")
        return rename(self, target)

    monkeypatch.setattr(whole, "_exchange", lambda *_: False)
    monkeypatch.setattr(Path, "rename", refuse)
    with pytest.raises(KothaError, match="it is open elsewhere"), whole.atomic_directory(out, lambda _: True) as folder:
        (folder / "new").touch()
    assert [each.name for each in out.iterdir()] == ["old"] and list(tmp_path.iterdir()) == [out]


def test_waiting_for_a_removed_folder_raises_an_error(tmp_path: Path) -> None:
    folder = tmp_path / "a"
    folder.mkdir()
    held = Lock(folder)
    messages: list[str] = []

    def wait() -> None:
        try:
            Lock(folder, wait=True).release()
        except FileNotFoundError:
            messages.append("gone")

    waiting = threading.Thread(target=wait)
    waiting.start()
    time.sleep(0.2)
    folder.rmdir()
    held.release()
    waiting.join(timeout=20)
    assert messages == ["gone"]


def test_releasing_a_lock_twice_closes_nothing_else(tmp_path: Path) -> None:
    held = Lock(tmp_path)
    held.release()
    with (tmp_path / "a").open("wb") as file:  # reuses the closed descriptor
        held.release()
        file.write(b"a")
    assert (tmp_path / "a").read_bytes() == b"a"


@pytest.mark.parametrize("is_directory", [False, True])
def test_a_new_partial_path_is_removed_if_it_cannot_be_checked(tmp_path: Path, monkeypatch, is_directory: bool) -> None:
    """Regression: its lock was never released, so it looked like another process's lock."""
    failing, looked = [True], Lock.is_of

    def is_of(self: Lock, path: Path) -> bool:
        if failing:
            failing.clear()
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        return looked(self, path)

    monkeypatch.setattr(Lock, "is_of", is_of)
    with pytest.raises(KothaError, match="out could not be written: Input/output error"):
        if is_directory:
            with atomic_directory(tmp_path / "out", lambda _: False):
                pass
        else:
            atomic_write(tmp_path / "out", "কথা")
    assert list(tmp_path.iterdir()) == []
    atomic_write(tmp_path / "out", "কথা")


def test_an_old_folder_is_removed_despite_io_errors(tmp_path: Path, monkeypatch) -> None:
    (tmp_path / "old" / "within").mkdir(parents=True)
    monkeypatch.setattr(Path, "stat", _broken)
    remove_directory(tmp_path / "old")
    monkeypatch.undo()
    assert list(tmp_path.iterdir()) == []


def test_an_io_error_on_release_does_not_fail_the_work(tmp_path: Path, monkeypatch) -> None:
    """rmtree checks a folder before removing it, and does not ignore errors in this check."""
    (tmp_path / "old").mkdir()
    monkeypatch.setattr(shutil, "rmtree", _broken)
    remove_directory(tmp_path / "old")
    monkeypatch.undo()
    clear_leftovers(tmp_path, "old")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("looks", [2, 100], ids=["twice", "ever after"])
def test_repeated_io_errors_leave_no_lock(tmp_path: Path, monkeypatch, looks: int) -> None:
    """A later writer in the same process must not get an InUseError."""
    failing, looked, held = [True] * looks, Lock.is_of, Lock.sync

    def is_of(self: Lock, path: Path) -> bool:
        if begun and failing:
            failing.pop()
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        return looked(self, path)

    def sync(self: Lock) -> None:
        begun.append(True)  # from here on
        held(self)

    begun: list[bool] = []
    monkeypatch.setattr(Lock, "is_of", is_of)
    monkeypatch.setattr(Lock, "sync", sync)
    with pytest.raises(KothaError, match="out could not be written: Input/output error"):
        atomic_write(tmp_path / "out", "কথা")
    monkeypatch.undo()
    assert not (tmp_path / "out").exists()
    atomic_write(tmp_path / "out", "কথা")
    assert [each.name for each in tmp_path.iterdir()] == ["out"]
