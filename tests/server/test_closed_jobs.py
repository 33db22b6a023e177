"""Jobs whose files cannot be read do not hide other jobs, and their files are kept."""

import errno
import io
import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.server.test_jobs import note, written

from kotha.server.jobs.store import JobStore
from kotha.server.jobs.table import JobConflictError
from kotha.server.settings import Limits


@pytest.fixture
def shut(monkeypatch: pytest.MonkeyPatch) -> Callable[[Path, int], None]:
    """Make a path's content unreadable, and for an I/O error its status too."""
    stat, opened, listed = Path.stat, io.open, Path.iterdir

    def shut(place: Path, number: int = errno.EACCES) -> None:
        def check(path: Any) -> None:
            if place in Path(path).parents or (number == errno.EIO and place == Path(path)):
                raise OSError(number, os.strerror(number), str(path))

        def stat_it(self: Path, **how: Any) -> os.stat_result:
            check(self)
            return stat(self, **how)

        def open_it(file: Any, *how: Any, **more: Any) -> Any:
            check(Path() if isinstance(file, int) else file)
            return opened(file, *how, **more)

        def list_it(self: Path) -> Iterator[Path]:
            check(self / "in it")
            return listed(self)

        monkeypatch.setattr(Path, "stat", stat_it)
        monkeypatch.setattr(io, "open", open_it)
        monkeypatch.setattr(Path, "iterdir", list_it)

    return shut


@pytest.mark.parametrize("number", [errno.EACCES, errno.EIO])
def test_an_unreadable_job_does_not_hide_others(
    number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, shut: Callable[[Path, int], None]
) -> None:
    store = JobStore(tmp_path)
    closed, other = written(store, "train", 0), written(store, "train", 0)
    shut(tmp_path / closed, number)
    states = {each.id: (each.state, each.output) for each in JobStore(tmp_path).all()}
    assert states == {closed: ("done", ""), other: ("done", "")}
    monkeypatch.undo()
    assert JobStore(tmp_path).status(closed).state == "done", "nothing was removed"


def test_a_job_is_running_even_if_its_checkpoints_cannot_be_listed(
    tmp_path: Path, shut: Callable[[Path, int], None]
) -> None:
    store = JobStore(tmp_path, most_running=1)
    id = written(store, "train", None)
    (tmp_path / id / "out" / "checkpoints").mkdir(parents=True)
    shut(tmp_path / id / "out" / "checkpoints", errno.EIO)
    assert [(each.kind, each.state) for each in store.all()] == [("train", "running")]
    with pytest.raises(JobConflictError, match="1 jobs are already running"):
        store.begin("train", "", ["presets"])


def test_files_that_an_unreadable_job_may_need_are_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, shut: Callable[[Path, int], None]
) -> None:
    store = JobStore(tmp_path, limits=Limits(file_rest_seconds=0))
    file = store.upload("কথা", "txt")
    id, other = written(store, "prepare", 0), written(store, "prepare", 0)
    for each in (id, other):
        note(tmp_path, each, files=json.dumps([file]))
    shut(tmp_path / id, errno.EACCES)
    store.remove(other)
    assert store.remove_unused_files() == []
    monkeypatch.undo()
    assert store.uploads.has(file)
    store.remove(id)
    assert not store.uploads.has(file)
