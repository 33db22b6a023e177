"""An index: updates, search, kills, concurrent reads, and damaged files."""

import builtins
import errno
import io
import os
import random
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.retrieval.conftest import DOCUMENTS, BagOfStems

import kotha
from kotha.errors import CorpusError, KothaError, UsageError
from kotha.retrieval.documents import IndexOptions, list_files
from kotha.retrieval.index import search, update
from kotha.retrieval.sqlite_store import SqliteStore

HOW = IndexOptions(passage_length=200)


def texts(store: SqliteStore, question: str, limit: int = 5) -> list[str]:
    return [hit.passage.text for hit in search(store, question, limit, "words").hits]


# -- search ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("question", "found"),
    [("বাঘ কোথায় থাকে?", 2), ("নদীগুলোর তীর", 0), ("র‌্যাব কোথায়?", 3), ("কৃষির কথা", 1)],
)
def test_the_right_passage_comes_first_whatever_its_endings(store: SqliteStore, question: str, found: int) -> None:
    assert texts(store, question)[0].startswith(DOCUMENTS[found][:10])


def test_consonants_alone_do_not_match(store: SqliteStore) -> None:
    assert texts(store, "কষ") == []  # FTS5's own tokenizer would match কৃষি
    plain = sqlite3.connect(":memory:")
    plain.execute("CREATE VIRTUAL TABLE t USING fts5(text)")
    plain.execute("INSERT INTO t VALUES (?)", [DOCUMENTS[1]])
    assert plain.execute("SELECT count(*) FROM t WHERE t MATCH 'ক ষ'").fetchone() == (1,)
    plain.close()


def test_search_by_meaning_is_exact_cosine(store: SqliteStore) -> None:
    embed = BagOfStems()
    found = search(store, "বাঘের ডোরা", 10, "meaning", embed).hits
    vectors = embed([hit.passage.text for hit in found]).astype(np.float16).astype(np.float32)
    by_hand = vectors @ embed(["বাঘের ডোরা"])[0]
    assert np.allclose([hit.score for hit in found], by_hand, atol=1e-3)
    assert list(by_hand) == sorted(by_hand, reverse=True)
    assert search(store, "বাঘের ডোরা", 2, "both", embed).hits[0].passage.text.startswith("সুন্দরবনে")


def test_frequencies_equal_counts_by_hand(store: SqliteStore) -> None:
    beside = sqlite3.connect(store.name)
    rows = beside.execute("SELECT text FROM passages").fetchall()
    beside.close()
    counted = sum("বাঘ" in text for (text,) in rows)
    assert store.frequencies(["বাঘ", "নেই"]) == {"বাঘ": counted, "নেই": 0}


# -- updates --------------------------------------------------------------------------------------------------------


def test_only_what_changed_is_written(store: SqliteStore, file: Path) -> None:
    again = update(store, [file], HOW, BagOfStems())
    assert (again.added, again.removed, again.unchanged) == (0, 0, 4)
    changed = file.read_text(encoding="utf-8").replace("সুন্দরবনে বাঘ", "সুন্দরবনে হরিণ")
    file.write_text("নতুন কথা এসেছে উপরে, অনেক বড় একটি কথা।" * 5 + "\n\n" + changed, encoding="utf-8")
    third = update(store, [file], HOW, BagOfStems())
    assert (third.added, third.removed, third.unchanged) == (2, 1, 3)
    moved = search(store, "পদ্মা নদী", 1).hits[0].passage
    assert moved.place == "line 3", "a document that moved is found at its new place"
    assert "হরিণ" in texts(store, "সুন্দরবনে হরিণ")[0]


def indexed(folder: Path, *names: str, how: IndexOptions = HOW) -> SqliteStore:
    """An index of a folder that contains these files with one document each."""
    for name, text in zip(names, DOCUMENTS, strict=False):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")
    store = SqliteStore(folder.parent / "index", write=True)
    assert update(store, [folder], how).documents == len(names)
    return store


def test_documents_of_a_deleted_file_are_removed(tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    store = indexed(folder, "a.txt", "b.txt")
    (folder / "b.txt").unlink()
    report = update(store, [folder], HOW)
    assert (report.removed, report.documents, texts(store, "কৃষি")) == (1, 1, [])
    store.close()
    assert [path.name for path in tmp_path.iterdir() if path.is_file()] == ["index"], "one file, with no log left"


def test_documents_of_an_unreadable_folder_are_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    closed = tmp_path / "folder" / "closed"
    store = indexed(closed.parent, "closed/a.txt", "a.txt")
    real, problems = os.scandir, []

    def refuse(path: str) -> Iterator[os.DirEntry[str]]:
        if Path(path) == closed:
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))
        return real(path)

    with monkeypatch.context() as shut:
        shut.setattr(os, "scandir", refuse)
        report = update(store, [closed.parent], HOW, on_problem=problems.append)
    assert (report.removed, report.documents) == (0, 2)
    assert [str(each.reason) for each in problems] == ["cannot be opened (Permission denied)"]
    shutil.rmtree(closed)
    assert update(store, [closed.parent], HOW).documents == 1
    store.close()


@pytest.mark.parametrize("name", ["a.txt", "a.md"])
def test_documents_of_an_unreadable_file_are_kept(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder, skipping = tmp_path / "folder", IndexOptions(passage_length=HOW.passage_length, errors="skip")
    store = indexed(folder, name, "b.txt", how=skipping)
    real = io.open

    def refuse(file: Any, *how: Any, **more: Any) -> Any:
        if not isinstance(file, int) and Path(file) == folder / name:
            raise OSError(errno.EIO, os.strerror(errno.EIO), str(file))
        return real(file, *how, **more)

    with monkeypatch.context() as broken:
        broken.setattr(io, "open", refuse)
        broken.setattr(builtins, "open", refuse)
        report = update(store, [folder], skipping)
    assert (report.problems, report.removed, report.documents) == (1, 0, 2)
    (folder / name).write_text("অন্য কথা।", encoding="utf-8")
    assert update(store, [folder], skipping).removed == 1
    store.close()


def test_an_unreadable_folder_is_not_reported_as_empty(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(path: str) -> None:
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))

    monkeypatch.setattr(os, "scandir", refuse)
    (tmp_path / "folder").mkdir()
    with pytest.raises(CorpusError, match=r"folder: cannot be opened \(Permission denied\)$"):
        list_files([tmp_path / "folder"])


def test_vectors_of_two_models_are_not_mixed(store: SqliteStore, file: Path) -> None:
    other = BagOfStems()
    other.note = type(other.note)("other", "another", 64)
    with pytest.raises(UsageError, match="contains vectors computed by bag of stems; use that model, or a new index"):
        update(store, [file], HOW, other)
    with pytest.raises(UsageError, match="contains vectors computed by bag of stems; use that model"):
        update(store, [file], HOW)
    with pytest.raises(UsageError, match="contains vectors computed by bag of stems; search with that model"):
        search(store, "নদী", 1, "both", other)


def test_a_problem_in_the_middle_of_a_file_loses_nothing(store: SqliteStore, file: Path, tmp_path: Path) -> None:
    broken = tmp_path / "broken.md"
    broken.write_bytes(b"\xff")
    with pytest.raises(CorpusError, match="not valid UTF-8"):
        update(store, [file, broken], HOW, BagOfStems())
    assert store.measures().documents == 4
    report = update(store, [file, broken], IndexOptions(passage_length=200, errors="skip"), BagOfStems())
    assert (report.documents, report.unchanged) == (4, 4) and report.problems


# -- hostile and empty ----------------------------------------------------------------------------------------------


def test_an_unused_new_index_is_deleted_and_reading_leaves_one_file(tmp_path: Path) -> None:
    empty, full = tmp_path / "empty.txt", tmp_path / "full.txt"
    empty.touch()
    full.write_text(DOCUMENTS[0], encoding="utf-8")
    index = kotha.Index(tmp_path / "index")
    with pytest.raises(CorpusError, match="is empty"):
        index.update(empty)
    assert sorted(tmp_path.iterdir()) == [empty, full]
    index.update(full)
    with pytest.raises(CorpusError, match="is empty"):
        index.update(empty)  # existed before, and is kept
    with kotha.Index(index.path) as reader:
        assert reader.search("নদী").hits
    assert sorted(tmp_path.iterdir()) == [empty, full, tmp_path / "index"]


def test_an_empty_index_and_an_empty_question_are_errors(tmp_path: Path, store: SqliteStore) -> None:
    empty = SqliteStore(tmp_path / "empty", write=True)
    with pytest.raises(KothaError, match="is empty; index some documents with `kotha index`"):
        search(empty, "নদী")
    empty.close()
    with pytest.raises(UsageError, match="the question is empty"):
        search(store, "  ")
    assert search(store, "?!", 3, "words").hits == []


def test_a_file_that_is_no_index_is_rejected(tmp_path: Path, store: SqliteStore) -> None:
    with pytest.raises(KothaError, match="no index at"):
        SqliteStore(tmp_path / "nowhere")
    (tmp_path / "text").write_text("a text file that is long enough")
    with pytest.raises(KothaError, match="is not an index, or is damaged"):
        SqliteStore(tmp_path / "text", write=True)
    assert (tmp_path / "text").read_text() == "a text file that is long enough"
    (tmp_path / "nothing").touch()
    with pytest.raises(KothaError, match="is empty"):
        SqliteStore(tmp_path / "nothing")
    other = sqlite3.connect(tmp_path / "other")
    other.execute("CREATE TABLE mine (x)")
    other.close()
    for write in (False, True):
        with pytest.raises(KothaError, match="is not an index; choose another name"):
            SqliteStore(tmp_path / "other", write=write)


def test_an_index_with_triggers_or_views_is_rejected(store: SqliteStore) -> None:
    changed = sqlite3.connect(store.name)
    changed.execute("CREATE TRIGGER evil AFTER INSERT ON documents BEGIN DELETE FROM passages; END")
    changed.commit()
    changed.close()
    with pytest.raises(KothaError, match="does not have the tables of an index"):
        SqliteStore(store.name)


WRONG: list[Any] = [b"\xff\x00", "ক", "", 2**63 - 1, -1, 0, 1e300, None]
COLUMNS = {
    "embedder": ["fingerprint", "name", "width"],
    "documents": ["source", "place", "digest", "id"],
    "passages": ["document", "text", "words", "vector", "id"],
}


def use(path: Path, file: Path) -> None:
    """Use an index in every way; a KothaError names the file."""
    for attempt in (
        lambda index: index.search("নদী ও বাঘ", by="words"),
        lambda index: index.search("নদী ও বাঘ", by="both"),
        lambda index: index.search("নদী ও বাঘ", by="meaning"),
        lambda index: index.ask("বাঘ কোথায় থাকে?", by="words"),
        lambda index: index.update(file),
    ):
        index = kotha.Index(path)
        index._embed = BagOfStems()
        index._loaded_model = lambda: None  # type: ignore[method-assign]
        index._embedder = lambda: BagOfStems()  # type: ignore[method-assign]
        try:
            attempt(index)
        except KothaError as error:
            assert str(path) in str(error)
        finally:
            index.close()


@pytest.mark.parametrize(("table", "column"), [(table, column) for table in COLUMNS for column in COLUMNS[table]])
def test_values_of_the_wrong_type_are_an_error_that_names_the_index(
    table: str, column: str, store: SqliteStore, file: Path, tmp_path: Path
) -> None:
    store.close()
    for number, value in enumerate(WRONG):
        path = tmp_path / f"changed-{number}"
        shutil.copy(store.name, path)
        changed = sqlite3.connect(path)
        for _ in changed.execute(f"SELECT 1 FROM {table}").fetchall()[:1]:
            with suppress(sqlite3.IntegrityError):  # not allowed by the schema
                changed.execute(f"UPDATE OR IGNORE {table} SET {column} = ?", [value])
        changed.commit()
        changed.close()
        use(path, file)


def test_a_text_that_is_a_blob_says_to_rebuild_the_index(store: SqliteStore) -> None:
    changed = sqlite3.connect(store.name)
    changed.execute("UPDATE passages SET text = CAST(text AS BLOB)")
    changed.commit()
    changed.close()
    with pytest.raises(KothaError, match="is damaged: it has values of the wrong type; rebuild the index"):
        search(store, "নদী", by="words")


@pytest.mark.parametrize("table", ["passages", "stems", "stem_counts", "embedder", "stems_data", "stems_idx"])
def test_a_missing_table_says_to_rebuild_the_index(table: str, store: SqliteStore) -> None:
    store.close()
    changed = sqlite3.connect(store.name)
    changed.execute("PRAGMA writable_schema = ON")
    changed.execute("DELETE FROM sqlite_master WHERE name = ?", [table])
    changed.commit()
    changed.close()
    with pytest.raises(KothaError, match="rebuild the index"):
        SqliteStore(store.name)


def test_damaged_bytes_are_an_error_that_names_the_index(store: SqliteStore, file: Path, tmp_path: Path) -> None:
    store.close()
    drawn, whole, path = random.Random(0), Path(store.name).read_bytes(), tmp_path / "damaged"
    for _ in range(60):
        changed = bytearray(whole)
        for _ in range(drawn.choice([1, 8, 200])):
            changed[drawn.randrange(100 if drawn.random() < 0.2 else 0, len(changed))] = drawn.randrange(256)
        path.write_bytes(changed[: drawn.choice([len(changed), drawn.randrange(len(changed))])])
        use(path, file)


# -- interrupts --------------------------------------------------------------------------------------------------------

SLOW = """
import sys, time
import kotha.retrieval.index as index
from kotha.cli.interrupts import install_signal_handlers
from kotha.cli.main import main
from kotha.retrieval.sqlite_store import SqliteStore
install_signal_handlers()
index._BATCH_PASSAGES = 1
write, left = SqliteStore.write, [int(sys.argv[1])]
def slowly(*args):
    if not left[0]:
        print("begun", flush=True)
        time.sleep(60)
    left[0] -= 1
    write(*args)
SqliteStore.write = slowly
main(["index", sys.argv[2], "--out", sys.argv[3], "--passage-length", "100"])
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("written", [0, 2])
def test_an_interrupted_index_says_what_remains(written: int, number: int, file: Path, tmp_path: Path) -> None:
    folder = tmp_path / "indexes"
    folder.mkdir()
    command = [sys.executable, "-c", SLOW, str(written), str(file), str(folder / "index")]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout is not None and process.stdout.readline() == "begun\n"
    process.send_signal(number)
    _, said = process.communicate()
    if not written:
        assert "stopped; no partial output was left behind" in said and list(folder.iterdir()) == []
        return
    assert f"stopped; {folder / 'index'} has the documents indexed so far; run the same command again" in said
    assert [each.name for each in folder.iterdir()] == ["index"], "no log is left"
    with kotha.Index(folder / "index") as index:
        assert index.measures.documents == written
        assert index.update(file, passage_length=100).documents == len(DOCUMENTS)


# -- concurrent access ------------------------------------------------------------------------------------------------

WRITER = """
import sys
from kotha.retrieval.documents import IndexOptions
from kotha.retrieval.index import update
from kotha.retrieval.sqlite_store import SqliteStore
import kotha.retrieval.index as index
index._BATCH_PASSAGES = 4
store = SqliteStore(sys.argv[1], write=True)
print("begun", flush=True)
update(store, sys.argv[2:], IndexOptions(passage_length=100))
"""


def write_many(folder: Path, seed: int) -> Path:
    drawn = random.Random(seed)
    words = [f"শব্দ{number}" for number in range(500)]
    lines = (" ".join(drawn.choices(words, k=12)) + "। চিহ্ন।" for _ in range(1500))
    (folder / "many.txt").write_text("\n\n".join(line * 2 for line in lines), encoding="utf-8")
    return folder / "many.txt"


def begin(index: Path, file: Path) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", WRITER, str(index), str(file)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None and process.stdout.readline() == "begun\n"
    process.stdout.close()
    return process


@pytest.mark.slow  # tests/fault_injection kills a writer at every system call
def test_a_writer_killed_at_random_moments_leaves_a_readable_index(tmp_path: Path) -> None:
    index, drawn, kills = tmp_path / "index", random.Random(100), 100
    killed = 0
    for seed in range(kills):
        process = begin(index, write_many(tmp_path, seed // 3))
        time.sleep(drawn.random() * 0.2)
        killed += process.poll() is None
        process.kill()
        process.wait()
        store = SqliteStore(index)
        check = sqlite3.connect(index)
        assert check.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        [passages] = check.execute("SELECT count(*) FROM passages").fetchone()
        assert check.execute("SELECT count(*) FROM stems").fetchone() == (passages,), "both or neither is written"
        check.execute("INSERT INTO stems (stems) VALUES ('integrity-check')")
        check.close()
        if passages:
            assert search(store, "চিহ্ন").hits
        store.close()
    assert killed >= kills // 2, "too few were killed in the middle"
    file = write_many(tmp_path, 0)
    last = SqliteStore(index, write=True)
    update(last, [file], IndexOptions(passage_length=100))
    fresh = SqliteStore(tmp_path / "fresh", write=True)
    assert update(fresh, [file], IndexOptions(passage_length=100)).passages == last.measures().passages
    last.close()
    fresh.close()


def test_readers_see_a_consistent_state_during_writes(tmp_path: Path) -> None:
    index, file = tmp_path / "index", write_many(tmp_path, 1)
    begun = begin(index, file)
    counts = []
    while begun.poll() is None:
        store = SqliteStore(index)
        counts.append(store.measures().passages)
        if counts[-1]:
            assert search(store, "চিহ্ন").hits
        store.close()
    store = SqliteStore(index)
    counts.append(store.measures().passages)
    store.close()
    assert counts == sorted(counts), "nothing that was written is lost again"
    assert begun.wait() == 0
