"""Files read where they lie: over http from a server on this machine, by fsspec from memory, by file://."""

import gzip
import json
import re
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.request import Request

import fsspec
import pytest
from tests.text.conftest import SENTENCES, trained

import kotha
from kotha.errors import CorpusError, KothaError, UsageError
from kotha.retrieval.documents import list_files
from kotha.text.corpus.documents import field_names, read_documents
from kotha.text.corpus.remote import HttpFile, OnlyOnTheWeb
from kotha.text.corpus.sources import list_sources

TEXTS = SENTENCES * 40
LINES = "".join(json.dumps({"text": text}, ensure_ascii=False) + "\n" for text in TEXTS).encode()


class Served(BaseHTTPRequestHandler):
    """Files by name; ``server.ways`` says how a file misbehaves."""

    def do_GET(self):
        name = self.path.partition("?")[0].lstrip("/")
        way = self.server.ways.get(name, "")
        self.server.asked.append((name, self.headers.get("Range")))
        if way.startswith(("http", "file")):
            self.send_response(302)
            self.send_header("Location", way)
            self.end_headers()
            return
        if name not in self.server.files:
            self.send_error(404)
            return
        data = self.server.files[name]
        start = int((self.headers.get("Range") or "bytes=0-")[6:-1])
        if way == "whole":
            start = 0
        self.send_response(206 if start else 200)
        if way != "endless":
            self.send_header("Content-Length", str(len(data) - start))
        self.send_header("ETag", f'"{len(self.server.asked)}"' if way == "changing" else '"1"')
        if start:
            self.send_header("Content-Range", f"bytes {start}-{len(data) - 1}/{len(data)}")
        self.end_headers()
        breaks = way in ("breaking", "whole", "changing") or (way == "once" and not start)
        self.wfile.write(data[start : start + 50_000] if breaks else data[start:])

    def log_message(self, *_):
        pass


@pytest.fixture
def web():
    server = ThreadingHTTPServer(("127.0.0.1", 0), Served)
    server.files, server.ways, server.asked = {"a.jsonl": LINES}, {}, []
    server.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture
def memory():
    files = fsspec.filesystem("memory")
    files.store.clear()
    files.pseudo_dirs[:] = [""]
    yield files
    files.store.clear()
    files.pseudo_dirs[:] = [""]


def texts(*paths, **how) -> list[str]:
    return [document.text for document in read_documents(paths, **how)]


def test_a_file_on_a_web_server(web):
    assert texts(f"{web.url}/a.jsonl") == TEXTS
    [source] = list_sources([f"{web.url}/a.jsonl?key=secret"])
    assert (source.format, source.size, source.name) == ("jsonl", len(LINES), f"{web.url}/a.jsonl")


def test_compressed_and_in_columns(web, tmp_path):
    pa, pq = (pytest.importorskip(name, reason="parquet needs pyarrow") for name in ("pyarrow", "pyarrow.parquet"))
    pq.write_table(pa.table({"text": TEXTS}), tmp_path / "a.parquet")
    web.files |= {"a.jsonl.gz": gzip.compress(LINES), "a.parquet": (tmp_path / "a.parquet").read_bytes()}
    assert texts(f"{web.url}/a.jsonl.gz") == texts(f"{web.url}/a.parquet") == TEXTS
    assert field_names(f"{web.url}/a.jsonl.gz") == ["text"]


def test_a_connection_that_breaks_is_taken_up_where_it_broke(web):
    web.ways["a.jsonl"] = "breaking"
    assert texts(f"{web.url}/a.jsonl") == TEXTS
    assert [place for _, place in web.asked[2:4]] == ["bytes=50000-", "bytes=100000-"]


@pytest.mark.parametrize(
    ("way", "reason"),
    [
        ("whole", "the server gives no part of a file; download it first"),
        ("changing", "it changed on the server while it was read"),
        ("endless", "the server does not say how long it is; download it first"),
        ("file:///etc/hostname", "the server answers 302"),
    ],
)
def test_what_a_server_may_not_do(web, way, reason):
    web.ways["a.jsonl"] = way
    with pytest.raises(CorpusError, match=re.escape(f"{web.url}/a.jsonl")) as caught:
        texts(f"{web.url}/a.jsonl")
    assert reason in str(caught.value)


def test_nobody_is_sent_from_https_back_to_http():
    asked = Request("https://host/a.jsonl")
    with pytest.raises(OSError, match="the server sends on to a place that is not followed"):
        OnlyOnTheWeb().redirect_request(asked, None, 302, "", {}, "http://host/a.jsonl")
    assert OnlyOnTheWeb().redirect_request(asked, None, 302, "", {}, "https://other/a.jsonl").host == "other"


def test_who_is_sent_on_for_ever_stops(web):
    web.ways["a.jsonl"] = f"{web.url}/a.jsonl?more"
    with pytest.raises(CorpusError, match="the server answers 302"):
        texts(f"{web.url}/a.jsonl")
    assert len(web.asked) < 10


def test_a_server_that_is_silent_is_not_waited_for(listener):
    with pytest.raises(OSError, match="timed out"):
        HttpFile(f"http://127.0.0.1:{listener}/a.jsonl", seconds=0.2)


def test_what_is_not_there(web, free_port, memory):
    with pytest.raises(CorpusError, match=f"^{web.url}/b.jsonl does not exist$"):
        texts(f"{web.url}/b.jsonl?key=secret")
    with pytest.raises(CorpusError, match=r"a.jsonl: cannot be opened \(Connection refused\)"):
        texts(f"http://127.0.0.1:{free_port}/a.jsonl")
    with pytest.raises(CorpusError, match=r"^memory://nowhere/a.jsonl does not exist$"):
        texts("memory://nowhere/a.jsonl")


def test_a_folder_and_a_glob_by_fsspec(memory):
    memory.pipe({"/corpus/b/2.jsonl": LINES, "/corpus/1.txt": "এক".encode(), "/corpus/x.bin": b"?", "/corpus/.h": b""})
    heard = []
    assert texts("memory://corpus", on_problem=heard.append) == ["এক", *TEXTS]
    assert [problem.source for problem in heard] == ["memory:///corpus/.h", "memory:///corpus/x.bin"]
    assert texts("memory://corpus/*/*.jsonl") == TEXTS
    with pytest.raises(CorpusError, match=r"memory://corpus/x.bin: unknown ending '.bin'"):
        texts("memory://corpus/x.bin")


def test_an_address_of_this_machine_is_its_path(tmp_path):
    (tmp_path / "ক খ.jsonl").write_bytes(LINES)
    address = (tmp_path / "ক খ.jsonl").as_uri()
    assert texts(address, str(tmp_path / "ক খ.jsonl")) == TEXTS, "one file under two names is read once"
    with pytest.raises(UsageError, match="is file:///PATH, with three strokes"):
        texts("file://etc/hostname.txt")


@pytest.mark.parametrize(
    ("address", "message"),
    [
        ("ftp://host/a.txt", "ftp://host/a.txt: files are not read by ftp://; known: file, gs, hdfs, http, https,"),
        ("htps://host/a.txt", "did you mean 'https'?"),
        ("https://me:secret@host/a.txt", "https://host/a.txt: an address holds no name or password here"),
        ("zip://a.txt::https://host/a.zip", "files are not read by zip://"),
        ("s3://a.txt::https://host/a.zip", "an address within an address (::) is not read"),
    ],
)
def test_addresses_that_are_refused(address, message):
    with pytest.raises(UsageError) as caught:
        texts(address)
    assert message in str(caught.value)
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize(("scheme", "package"), [("s3", "s3fs"), ("gs", "gcsfs")])
def test_a_scheme_without_its_package_says_what_to_install(scheme, package, monkeypatch):
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(KothaError, match=f"{scheme}:// needs {package}: pip install {package}"):
        texts(f"{scheme}://bucket/a.jsonl")


def test_errors_of_a_package_are_told_by_their_kind_alone(memory, monkeypatch):
    class KeyRefusedError(Exception):
        pass

    def refuse(*_, **__):
        raise KeyRefusedError("the key secret is wrong")

    memory.pipe("/a.jsonl", LINES)
    monkeypatch.setattr(type(memory), "_open", refuse)
    with pytest.raises(CorpusError, match=r"memory:///?a.jsonl: cannot be opened \(memory: KeyRefusedError\)"):
        texts("memory://a.jsonl")


def test_shards_are_those_of_the_same_file_here(web, tmp_path: Path):
    (tmp_path / "a.jsonl").write_bytes(LINES)
    for name, place in {"here": str(tmp_path / "a.jsonl"), "there": f"{web.url}/a.jsonl?key=secret"}.items():
        kotha.prepare(place, trained("unigram"), tmp_path / name, duplicates="keep", leak_threshold=None)
    here, there = ({path.name: path.read_bytes() for path in (tmp_path / name).iterdir()} for name in ("here", "there"))
    assert here == there
    assert json.loads(there["dataset.json"])["made_by"]["sources"] == ["a.jsonl"]


def test_an_index_is_of_files_of_this_machine(web):
    with pytest.raises(KothaError, match="an index keeps files of this machine"):
        list_files([f"{web.url}/a.jsonl"])
