"""Clients that do not read, or that send bodies in tiny parts, lose their connections; other clients are served."""

import json
import socket
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from tests.loopback import http

from kotha.report.built import pages
from kotha.server.settings import Limits

_KEY = "a-key-that-nobody-guesses"
_LARGEST = max(pages(), key=lambda path: len(pages()[path][0]))


def connect(url: str, sent: bytes) -> socket.socket:
    host, _, port = url.removeprefix("http://").partition(":")
    connection = socket.socket()
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    connection.settimeout(30)
    connection.connect((host, int(port)))
    with suppress(ConnectionError):  # the server may have closed it already
        connection.sendall(sent)
    return connection


def all_of(connection: socket.socket) -> bytes:
    """Return everything that the server sent before it closed the connection."""
    parts = []
    with connection, suppress(ConnectionError):
        while part := connection.recv(1 << 16):
            parts.append(part)
    return b"".join(parts)


def unread(url: str) -> socket.socket:
    return connect(url, f"GET {_LARGEST} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode() * 20)


@pytest.mark.parametrize(
    "limits",
    [
        Limits(connections_for_one=12, body_seconds=60),
        Limits(connections=12, body_seconds=60),
        Limits(unread_bytes=1 << 18, body_seconds=60),
        Limits(body_seconds=1),
    ],
    ids=["per client", "in all", "unread bytes", "time"],
)
def test_connections_that_are_not_read_are_closed(serve: Any, limits: Limits) -> None:
    at = serve(limits=limits)
    idle = [unread(at.url) for _ in range(40)]
    assert http.get(f"{at.url}/health", timeout=30).status_code == 200
    time.sleep(3)  # longer than the limit on time, and than the pause between two checks of the limit on unread bytes
    whole = 20 * len(pages()[_LARGEST][0])
    cut = [len(all_of(each)) < whole for each in idle[:20]]
    assert all(cut) if limits.body_seconds == 1 else any(cut), cut
    for each in idle:
        each.close()


def test_a_slow_reader_receives_a_complete_response(serve: Any) -> None:
    at = serve(limits=Limits(body_seconds=1))
    with connect(
        at.url, f"GET {_LARGEST} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n".encode()
    ) as reading:
        parts = []
        while part := reading.recv(1 << 14):
            parts.append(part)
            time.sleep(0.05)
    assert b"".join(parts).endswith(pages()[_LARGEST][0])


@pytest.mark.parametrize("key", [None, _KEY])
def test_a_body_in_tiny_chunks_is_rejected(serve: Any, key: str | None) -> None:
    head = b"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n"
    with connect(serve(key=key).url, head) as connection, pytest.raises(ConnectionError):
        for _ in range(2000):  # less than the limit on the body's size
            connection.sendall(b"1\r\nx\r\n" * 500)


def test_a_body_in_chunks_is_accepted(serve: Any) -> None:
    parts = [b'{"model": "plain", "text": "', *[b"a few words and more "] * 500, b'"}']
    headers = {"content-type": "application/json"}
    assert http.post(f"{serve().url}/api/card", content=iter(parts), headers=headers).status_code == 200


def test_a_rejected_request_is_answered_before_its_body_arrives(serve: Any) -> None:
    head = "POST /api/files HTTP/1.1\r\nHost: localhost\r\nContent-Length: 60000000\r\n\r\n"
    response = all_of(connect(serve(key=_KEY).url, head.encode() + b"[" * 10_000))
    assert b" 401 " in response.split(b"\r\n")[0] and b"connection: close" in response


@pytest.mark.parametrize("path", ["/api/files", "/v1/completions"])
def test_nested_lists_are_rejected_without_parsing_them(serve: Any, tmp_path: Path, path: str) -> None:
    at = serve(jobs=tmp_path)
    body = b'{"text": [' + b"[]," * 600_000 + b"0]}"
    answers = [http.post(at.url + path, content=body, headers={"content-type": "application/json"})]
    answers.append(http.post(at.url + path, content=body[:-1], headers={"content-type": "application/json"}))
    assert [answer.status_code for answer in answers] == [400, 400]
    expected = "it must be a string" if path == "/api/files" else "lists and objects"
    assert all(expected in answer.json()["error"]["message"] for answer in answers), answers[1].text


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b'{"text": "a", "file_type": "pdf"}', "file_type: it must be 'txt'"),
        (b'{"text": "a", "nmae": "b"}', "unknown field 'nmae'; did you mean 'name'"),
        (b'{"name": null}', "text: it is missing"),
        (b'{"text": "a"', "not valid JSON"),
        (b'{"text": "' + b"a" * 100_000 + b'"', "not valid JSON"),
        (b'{"text": "\\ud800"}', "half a character"),
        (b'{"text": "\xff"}', "not valid JSON"),
        (b"[]", "must be a JSON object"),
    ],
)
def test_an_invalid_upload_is_reported(serve: Any, tmp_path: Path, body: bytes, message: str) -> None:
    answer = http.post(
        f"{serve(jobs=tmp_path).url}/api/files", content=body, headers={"content-type": "application/json"}
    )
    assert answer.status_code == 400 and message in answer.json()["error"]["message"], answer.text


def test_an_upload_is_stored_as_sent(serve: Any, tmp_path: Path) -> None:
    text = 'ক"\\[]{}\n\u0000' * 20_000
    body = json.dumps({"text": text, "name": "a", "file_type": "txt"}).encode()
    answer = http.post(
        f"{serve(jobs=tmp_path).url}/api/files", content=body, headers={"content-type": "application/json"}
    )
    stored = (tmp_path / "uploads" / f"{answer.json()['id']}.txt").read_bytes()
    assert stored.decode() == text


def test_examples_end_with_their_client(serve: Any, tmp_path: Path) -> None:
    at = serve(jobs=tmp_path)
    path, began = "/api/examples/translate?rows=5000", time.monotonic()
    assert http.get(at.url + path, timeout=300).status_code == 200
    alone = time.monotonic() - began
    for seed in range(1, 21):
        connect(at.url, f"GET {path}&seed={seed} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode()).close()
    began = time.monotonic()
    assert http.get(f"{at.url}/api/examples/ask?rows=20", timeout=300).status_code == 200
    assert time.monotonic() - began < 10 * alone, "the 20 examples were computed although nobody waits for them"


def test_a_prompt_too_long_to_tokenize_is_rejected_by_its_length(serve: Any) -> None:
    asked = {"model": "plain", "prompt": "নদী " * 90_000}
    error = http.post(f"{serve().url}/v1/completions", json=asked, timeout=60).json()["error"]
    assert error["code"] == "context_length_exceeded" and "360,000 characters" in error["message"]
