"""Files read where they lie: over http from a server on this machine, by fsspec from memory."""

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
        self.server.asked.append(name)
        if way.startswith(("http", "file")):
            self.send_response(302)
            self.send_header("Location", way)
            self.end_headers()
            return
        if name not in self.server.files:
            self.send_error(404)
            return
        data = self.server.files[name]
        self.send_response(200)
        if way != "endless":
            self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data[:50_000] if way == "breaking" else data)

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


def test_compressed_and_in_columns(web):
    web.files |= {"a.jsonl.gz": gzip.compress(LINES), "a.parquet": b"PAR1"}
    assert texts(f"{web.url}/a.jsonl.gz") == TEXTS
    assert field_names(f"{web.url}/a.jsonl.gz") == ["text"]
    with pytest.raises(CorpusError, match="is read from its end, not through a pipe or from a web server; save it"):
        texts(f"{web.url}/a.parquet")


@pytest.mark.parametrize(
    ("way", "reason"),
    [
        ("breaking", f"the server ends it at byte 50,000 of {len(LINES):,}"),
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


@pytest.mark.parametrize(
    ("address", "message"),
    [
        ("ftp://host/a.txt", "ftp://host/a.txt: files are not read by ftp://; known: gs, hdfs, http, https,"),
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
    with pytest.raises(KothaError, match="only local files can be indexed"):
        list_files([f"{web.url}/a.jsonl"])
