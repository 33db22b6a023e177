"""Files and folders appear whole or not at all."""

from pathlib import Path

import pytest

from kotha.errors import KothaError
from kotha.files import whole_file, whole_folder, write_whole


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_a_file_is_written_with_its_folders(tmp_path: Path) -> None:
    write_whole(tmp_path / "a" / "b.txt", "কথা")
    assert (tmp_path / "a" / "b.txt").read_text(encoding="utf-8") == "কথা"
    assert names(tmp_path / "a") == ["b.txt"]


def test_an_error_keeps_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    write_whole(path, "old")
    with pytest.raises(ZeroDivisionError), whole_file(path) as file:
        file.write("new")
        raise ZeroDivisionError
    assert path.read_text() == "old"
    assert names(tmp_path) == ["a.txt"]


def test_a_file_where_a_folder_is_wanted_is_a_clear_error(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("")
    with pytest.raises((KothaError, OSError)):
        write_whole(tmp_path / "a" / "b.txt", "x")


def test_a_folder_appears_at_the_end(tmp_path: Path) -> None:
    out = tmp_path / "out"
    with whole_folder(out, lambda _: False) as partial:
        (partial / "x").write_text("1")
        assert not out.exists()
    assert names(out) == ["x"]
    assert names(tmp_path) == ["out"]


def test_a_folder_that_fails_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError), whole_folder(tmp_path / "out", lambda _: False) as partial:
        (partial / "x").write_text("1")
        raise ZeroDivisionError
    assert names(tmp_path) == []


def test_an_old_folder_is_replaced_only_with_leave(tmp_path: Path) -> None:
    out = tmp_path / "out"
    out.mkdir()
    with whole_folder(out, lambda _: False) as partial:  # empty: nothing to lose
        (partial / "x").write_text("1")
    with pytest.raises(KothaError, match="exists; choose another --out"), whole_folder(out, lambda _: False):
        raise AssertionError("never reached")
    with whole_folder(out, lambda _: True) as partial:
        (partial / "y").write_text("2")
    assert names(out) == ["y"]
    assert names(tmp_path) == ["out"]


def test_a_file_in_the_way_is_refused(tmp_path: Path) -> None:
    (tmp_path / "out").write_text("precious")
    with pytest.raises(KothaError, match="exists"), whole_folder(tmp_path / "out", lambda _: True):
        raise AssertionError("never reached")


def test_a_folder_that_cannot_be_made_is_said(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("not a folder")
    with pytest.raises(KothaError, match=r"page\.html could not be written: Not a directory"):
        write_whole(tmp_path / "file" / "folder" / "page.html", "<p>")


def test_a_folder_is_not_written_over_a_link(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    with pytest.raises(KothaError, match="link is a link to"), whole_folder(tmp_path / "link", lambda old: True):
        pass
    assert names(tmp_path) == ["link", "real"]


def test_a_name_that_is_too_long_is_said(tmp_path: Path) -> None:
    with (
        pytest.raises(KothaError, match="could not be written"),
        whole_folder(tmp_path / ("ক" * 200), lambda old: True),
    ):
        pass
    assert names(tmp_path) == []
