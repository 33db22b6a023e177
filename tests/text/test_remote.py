"""Remote files: over HTTP from a local server, and from memory with fsspec."""

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
from kotha.text.corpus.remote import HttpFile, WebRedirectHandler
from kotha.text.corpus.sources import list_sources

TEXTS = SENTENCES * 40
LINES = "".join(json.dumps({"text": text}, ensure_ascii=False) + "\n" for text in TEXTS).encode()


class Served(BaseHTTPRequestHandler):
    """Serves files by name; ``server.ways`` defines faults for single files."""

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


def test_compressed_files_and_parquet_over_http(web):
    web.files |= {"a.jsonl.gz": gzip.compress(LINES), "a.parquet": b"PAR1"}
    assert texts(f"{web.url}/a.jsonl.gz") == TEXTS
    assert field_names(f"{web.url}/a.jsonl.gz") == ["text"]
    with pytest.raises(CorpusError, match="cannot be read from a pipe or a web server; save it"):
        texts(f"{web.url}/a.parquet")


@pytest.mark.parametrize(
    ("way", "reason"),
    [
        ("breaking", f"the server closed the connection at byte 50,000 of {len(LINES):,}"),
        ("endless", "the server does not send the file's length; download the file first"),
        ("file:///etc/hostname", "the server returned HTTP 302"),
    ],
)
def test_invalid_server_responses_are_errors(web, way, reason):
    web.ways["a.jsonl"] = way
    with pytest.raises(CorpusError, match=re.escape(f"{web.url}/a.jsonl")) as caught:
        texts(f"{web.url}/a.jsonl")
    assert reason in str(caught.value)


def test_redirects_from_https_to_http_are_rejected():
    asked = Request("https://host/a.jsonl")
    with pytest.raises(OSError, match="the server redirects to a URL that is not allowed"):
        WebRedirectHandler().redirect_request(asked, None, 302, "", {}, "http://host/a.jsonl")
    assert WebRedirectHandler().redirect_request(asked, None, 302, "", {}, "https://other/a.jsonl").host == "other"


def test_redirect_loops_are_errors(web):
    web.ways["a.jsonl"] = f"{web.url}/a.jsonl?more"
    with pytest.raises(CorpusError, match="the server returned HTTP 302"):
        texts(f"{web.url}/a.jsonl")
    assert len(web.asked) < 10


def test_a_silent_server_times_out(listener):
    with pytest.raises(OSError, match="timed out"):
        HttpFile(f"http://127.0.0.1:{listener}/a.jsonl", seconds=0.2)


def test_missing_files_and_closed_ports_are_errors(web, free_port, memory):
    with pytest.raises(CorpusError, match=f"^{web.url}/b.jsonl does not exist; name an existing file or folder$"):
        texts(f"{web.url}/b.jsonl?key=secret")
    with pytest.raises(CorpusError, match=r"a.jsonl: cannot be opened \(Connection refused\)"):
        texts(f"http://127.0.0.1:{free_port}/a.jsonl")
    with pytest.raises(
        CorpusError, match=r"^memory://nowhere/a.jsonl does not exist; name an existing file or folder$"
    ):
        texts("memory://nowhere/a.jsonl")


def test_a_folder_and_a_glob_by_fsspec(memory):
    memory.pipe({"/corpus/b/2.jsonl": LINES, "/corpus/1.txt": "এক".encode(), "/corpus/x.bin": b"?", "/corpus/.h": b""})
    heard = []
    assert texts("memory://corpus", on_problem=heard.append) == ["এক", *TEXTS]
    assert [problem.source for problem in heard] == ["memory:///corpus/.h", "memory:///corpus/x.bin"]
    assert texts("memory://corpus/*/*.jsonl") == TEXTS
    with pytest.raises(CorpusError, match=r"memory://corpus/x.bin: unknown file extension '.bin'"):
        texts("memory://corpus/x.bin")


@pytest.mark.parametrize(
    ("address", "message"),
    [
        ("ftp://host/a.txt", "ftp://host/a.txt: files cannot be read over ftp://; known: gs, hdfs, http, https,"),
        ("htps://host/a.txt", "did you mean 'https'?"),
        ("https://me:secret@host/a.txt", "https://host/a.txt: a URL must not contain a user name or password"),
        ("zip://a.txt::https://host/a.zip", "files cannot be read over zip://"),
        ("s3://a.txt::https://host/a.zip", "chained URLs (::) are not supported"),
    ],
)
def test_invalid_addresses_are_rejected(address, message):
    with pytest.raises(UsageError) as caught:
        texts(address)
    assert message in str(caught.value)
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize(("scheme", "package"), [("s3", "s3fs"), ("gs", "gcsfs")])
def test_a_scheme_without_its_package_says_what_to_install(scheme, package, monkeypatch):
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(KothaError, match=f"{scheme}:// needs {package}; install it with: .*pip install {package}"):
        texts(f"{scheme}://bucket/a.jsonl")


def test_errors_of_a_package_are_reported_by_type_only(memory, monkeypatch):
    class KeyRefusedError(Exception):
        pass

    def refuse(*_, **__):
        raise KeyRefusedError("the key secret is wrong")

    memory.pipe("/a.jsonl", LINES)
    monkeypatch.setattr(type(memory), "_open", refuse)
    with pytest.raises(CorpusError, match=r"memory:///?a.jsonl: cannot be opened \(memory: KeyRefusedError\)"):
        texts("memory://a.jsonl")


def test_shards_equal_those_of_the_local_file(web, tmp_path: Path):
    (tmp_path / "a.jsonl").write_bytes(LINES)
    for name, place in {"here": str(tmp_path / "a.jsonl"), "there": f"{web.url}/a.jsonl?key=secret"}.items():
        kotha.prepare(place, trained("unigram"), tmp_path / name, duplicates="keep", leak_threshold=None)
    here, there = ({path.name: path.read_bytes() for path in (tmp_path / name).iterdir()} for name in ("here", "there"))
    assert here == there
    assert json.loads(there["dataset.json"])["made_by"]["sources"] == ["a.jsonl"]


def test_an_index_needs_local_files(web):
    with pytest.raises(KothaError, match="only local files can be indexed"):
        list_files([f"{web.url}/a.jsonl"])
