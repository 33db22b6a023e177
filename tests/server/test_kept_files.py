"""Uploads are removed with their job, to free space, or on request, but not while a job needs them."""

import errno
import json
import os
import time
from pathlib import Path

import pytest
from tests.server.test_jobs import clients, note, noted, over, said, waited

from kotha.errors import KothaError
from kotha.server.app import make_app
from kotha.server.errors import RefusedError
from kotha.server.jobs import uploads as uploads_module
from kotha.server.jobs.store import JobStore
from kotha.server.jobs.table import JobConflictError, NoSuchJobError
from kotha.server.settings import Limits, ServeSettings

AT_ONCE = Limits(file_rest_seconds=0)


def reading(store: JobStore, *files: str) -> list[str]:
    """Return the arguments for a short command that uses these files."""
    return ["presets", *(str(store.uploads.path(file)) for file in files)]


def ended(store: JobStore, *files: str) -> str:
    id = store.begin("tokenizer", "", reading(store, *files))
    waited(store, id, over)
    return id


def ids(store: JobStore) -> set[str]:
    return {each.id for each in store.uploads.all()}


def age(store: JobStore, file: str, seconds: float) -> None:
    then = time.time() - seconds
    os.utime(store.uploads.path(file), (then, then))


def test_a_file_is_removed_with_the_last_job_that_uses_it(tmp_path: Path) -> None:
    store = JobStore(tmp_path)
    shared, own, other = (store.upload(text, "txt", "নদী.txt") for text in "কখগ")
    first, second = ended(store, shared, own), ended(store, shared)
    store.remove(first)
    assert ids(store) == {shared, other}
    store.remove(second)
    assert ids(store) == {other}
    assert sorted(each.name for each in (tmp_path / "uploads").iterdir()) == [f"{other}.name", f"{other}.txt"]


def test_a_resumed_training_job_still_needs_its_table(tmp_path: Path) -> None:
    """The job's command then contains only the run, whose folder records the path of the table."""
    store = JobStore(tmp_path, limits=AT_ONCE)
    table = store.upload("text,label\n", "csv")
    id = ended(store, table)
    assert json.loads(noted(tmp_path, id)["files"]) == [table]
    note(tmp_path, id, commands=json.dumps([["finetune", "classify", "--resume"]]))
    assert store.remove_unused_files() == [] and ids(store) == {table}


def test_the_oldest_unused_files_are_removed_to_make_room(tmp_path: Path) -> None:
    store = JobStore(tmp_path, limits=Limits(files=4, file_rest_seconds=60))
    needed, old, older, fresh = (store.upload(text, "txt") for text in "কখগঘ")
    ended(store, needed)
    for file, seconds in ((needed, 900), (old, 300), (older, 600)):
        age(store, file, seconds)
    fifth = store.upload("ঙ", "txt")
    assert ids(store) == {needed, old, fresh, fifth}
    sixth = store.upload("চ", "txt")
    assert ids(store) == {needed, fresh, fifth, sixth}
    with pytest.raises(JobConflictError, match=r"4 files are stored, .* remove a job that is no longer needed"):
        store.upload("ছ", "txt")
    assert ids(store) == {needed, fresh, fifth, sixth}


def test_no_file_is_removed_if_that_would_not_make_enough_room(tmp_path: Path) -> None:
    store = JobStore(tmp_path, limits=Limits(files_bytes=20, file_rest_seconds=0))
    unused, needed = store.upload("a" * 8, "txt"), store.upload("b" * 8, "txt")
    ended(store, needed)
    with pytest.raises(RefusedError, match="take 16 bytes and this one 13 more"):
        store.upload("c" * 13, "txt")
    assert ids(store) == {unused, needed}
    assert store.upload("c" * 12, "txt") in ids(store) and unused not in ids(store)


def test_unused_files_are_marked_and_removed_together(tmp_path: Path, models: Path) -> None:
    app = make_app([str(models / "plain")], ServeSettings(jobs=tmp_path, limits=AT_ONCE), device="cpu")
    for client in clients(app):
        unused, needed = (said(client.post("/api/files", json={"text": text}))["id"] for text in ("নদী", "গ্রাম"))
        ended(JobStore(tmp_path), needed)
        listed = {each["id"]: each["unused"] for each in said(client.get("/api/files"))}
        assert listed == {unused: True, needed: False}
        assert said(client.delete("/api/files")) == {"count": 1, "n_bytes": len("নদী".encode())}
        assert [each["id"] for each in said(client.get("/api/files"))] == [needed]
        assert said(client.delete("/api/files")) == {"count": 0, "n_bytes": 0}


def test_a_job_is_not_started_if_its_file_was_removed_meanwhile(tmp_path: Path) -> None:
    store = JobStore(tmp_path, limits=AT_ONCE)
    file = store.upload("ক", "txt")
    words = reading(store, file)
    store.remove_unused_files()
    with pytest.raises(NoSuchJobError, match=f"file '{file}' not found; upload it first"):
        store.begin("tokenizer", "", words)
    assert store.all() == []


@pytest.mark.parametrize("moved", [False, True], ids=["while it is written", "as the folder is synced"])
def test_an_upload_to_a_full_disk_leaves_nothing(tmp_path: Path, monkeypatch, moved: bool) -> None:
    """A rejected client uploads again, so records without a file, or files without a record, would accumulate."""
    store, write = JobStore(tmp_path), uploads_module.atomic_write

    def full(path: Path, text: str) -> None:
        if path.suffix == ".name" or moved:
            write(path, text)
        if path.suffix == ".txt":
            raise KothaError(os.strerror(errno.ENOSPC))

    monkeypatch.setattr(uploads_module, "atomic_write", full)
    with pytest.raises(KothaError, match="No space left"):
        store.upload("ক" * 1000, "txt", "নদী.txt")
    assert list((tmp_path / "uploads").iterdir()) == []
