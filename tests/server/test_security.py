"""Access control on every route: host, origin, key, size, slow clients; and security headers."""

import asyncio
import json
import socket
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.loopback import http
from tests.server.conftest import Address, started

from kotha.cli.main import main
from kotha.errors import UsageError
from kotha.server.app import make_app
from kotha.server.security import HEADERS
from kotha.server.settings import Limits, ServeSettings, read_key

KEY = "a-key-that-nobody-guesses"
ASKED = {"model": "plain", "prompt": "মা", "max_tokens": 1}


def routes(app: Any) -> list[tuple[str, str]]:
    """Return every route with its method and its parameters filled in."""
    paths = app.openapi()["paths"]
    found = [(way.upper(), path.replace("{name}", "plain")) for path, ways in paths.items() for way in ways]
    assert len(found) >= 10
    return [*found, ("GET", "/openapi.json"), ("GET", "/nowhere"), ("OPTIONS", "/v1/models")]


@pytest.fixture(scope="module")
def keyed(models: Path) -> Iterator[Address]:
    settings = ServeSettings(host="0.0.0.0", key=KEY, limits=Limits(body_bytes=2000, body_seconds=1.0))
    app = make_app([str(models / "plain")], settings, device="cpu")
    for url in started(app, "0.0.0.0"):
        yield Address(url, app, models)


def test_another_address_needs_a_key() -> None:
    for host in ("0.0.0.0", "192.168.1.5", "::", "example.org"):
        with pytest.raises(UsageError, match="needs a key"):
            ServeSettings(host=host)
    assert all(ServeSettings(host=host).is_loopback for host in ("localhost", "127.0.0.1", "::1", "127.8.8.8"))
    assert KEY not in repr(ServeSettings(host="0.0.0.0", key=KEY))


def test_a_key_is_read_from_a_file_and_checked(tmp_path: Path) -> None:
    file = tmp_path / "key"
    file.write_text(f"  {KEY}\n")
    assert read_key(file) == KEY
    for text, said in [
        ("short", "at least 16"),
        ("two words of it, long enough", "one word"),
        ("চাবি" * 9, "non-ASCII"),
    ]:
        file.write_text(text, encoding="utf-8")
        with pytest.raises(UsageError, match=said):
            read_key(file)
    with pytest.raises(UsageError, match="No such file"):
        read_key(tmp_path / "nowhere")


@pytest.mark.parametrize(("mode", "expected"), [(0o600, False), (0o640, True), (0o604, True), (0o400, False)])
def test_a_key_file_readable_by_others_gives_a_warning(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], mode: int, expected: bool
) -> None:
    file = tmp_path / "key"
    file.write_text(KEY)
    file.chmod(mode)
    monkeypatch.setattr("kotha.server.lifecycle.run", lambda *_, **__: None)
    assert main(["serve", "box", "--key-file", str(file), "--port", "0"]) == 0
    output = capsys.readouterr().err
    assert ("other users on this machine can read the key" in output) == expected and KEY not in output


def test_every_route_rejects_a_missing_or_wrong_key(keyed: Address) -> None:
    for method, path in routes(keyed.app):
        for headers in ({}, {"authorization": "Bearer wrong"}, {"authorization": KEY}, {"authorization": "Basic eDp5"}):
            response = http.request(method, keyed.url + path, headers=headers)
            if path == "/health":
                assert response.json() == {"status": "ok"}
            else:
                assert response.status_code == 401 and "Bearer KEY" in response.json()["error"]["message"], (
                    method,
                    path,
                )
    assert http.get(f"{keyed.url}/v1/models?api_key={KEY}").status_code == 401, "no key in an address"
    let_in = {"authorization": f"Bearer {KEY}"}
    assert http.post(f"{keyed.url}/v1/completions", json=ASKED, headers=let_in).status_code == 200


def test_every_route_rejects_a_foreign_host_and_origin(address: Address, keyed: Address) -> None:
    port = httpx.URL(address.url).port
    foreign = [
        {"host": "evil.example"},
        {"host": f"evil.example:{port}"},
        {"host": "127.0.0.1.evil.example"},
        {"host": "127.0.0.1@evil.example"},
        {"host": ""},
        {"origin": "https://evil.example"},
        {"origin": "null"},
        {"origin": f"http://127.0.0.1:{port + 1}"},
        {"sec-fetch-site": "cross-site"},
        {"sec-fetch-site": "same-site"},
    ]
    for method, path in routes(address.app):
        for headers in foreign:
            response = http.request(method, address.url + path, headers=headers)
            assert response.status_code == 403 and response.json()["error"]["type"] == "permission_error", (
                path,
                headers,
            )
    for host in (f"localhost:{port}", f"127.0.0.1:{port}", "[::1]", "localhost"):
        assert http.get(f"{address.url}/v1/models", headers={"host": host}).status_code == 200, host
    # On the default ports of http and https, a page of another server has the same host name, and no port is sent.
    for page in ("https://localhost", "ftp://localhost", "//localhost", "localhost", "http://localhost/", "https://["):
        reply = http.delete(f"{address.url}/api/jobs/{'0' * 12}", headers={"host": "localhost", "origin": page})
        assert reply.status_code == 403 and "pages of another origin" in reply.json()["error"]["message"], page
    own = {"origin": address.url, "sec-fetch-site": "same-origin"}
    assert http.get(f"{address.url}/v1/models", headers=own).status_code == 200
    let_in = {"authorization": f"Bearer {KEY}"}
    assert http.get(f"{keyed.url}/v1/models", headers={**let_in, "host": "192.168.7.7"}).status_code == 200
    assert http.get(f"{keyed.url}/v1/models", headers={**let_in, "host": "evil.example"}).status_code == 403


@pytest.mark.parametrize(
    ("host", "origin", "status"),
    [
        ("kotha.example", "https://kotha.example", 200),
        ("kotha.example", "http://kotha.example", 200),
        ("Kotha.Example:8443", "https://Kotha.Example:8443", 200),
        ("kotha.example", "https://kotha.example:8443", 403),
        ("kotha.example", "https://localhost", 403),
        ("localhost", "https://localhost", 403),
    ],
)
def test_a_proxy_may_add_tls_for_a_given_name(models: Path, host: str, origin: str, status: int, serve: Any) -> None:
    at = serve(names=("Kotha.example",))
    headers = {"host": host, "origin": origin}
    assert http.get(f"{at.url}/v1/models", headers=headers).status_code == status


def test_every_answer_carries_the_headers(address: Address) -> None:
    for method, path in routes(address.app):
        result = http.request(method, address.url + path, json=ASKED if method == "POST" else None)
        for name, value in HEADERS.items():
            assert result.headers.get(name) == value, (method, path, name)
        assert result.headers["cache-control"] == "no-store" and "server" not in result.headers
        assert "access-control-allow-origin" not in result.headers


def test_a_request_that_is_too_large_is_rejected_before_it_is_read(keyed: Address) -> None:
    let_in = {"authorization": f"Bearer {KEY}"}
    large = json.dumps({**ASKED, "prompt": "ক" * 3000}).encode()
    for body in (large, (large[start : start + 100] for start in range(0, len(large), 100))):
        response = http.post(f"{keyed.url}/v1/completions", content=body, headers=let_in)
        assert response.status_code == 413 and "2,000 bytes" in response.json()["error"]["message"]
    assert http.get(f"{keyed.url}/health").status_code == 200


def test_a_content_length_of_thousands_of_digits_is_rejected(keyed: Address) -> None:
    """Python would take a second to parse it, or raise its own error."""
    url = httpx.URL(keyed.url)
    with socket.create_connection((url.host, url.port), 10) as caller:
        lines = ["POST /v1/completions HTTP/1.1", "Host: 127.0.0.1", f"Content-Length: {'9' * 5000}"]
        caller.sendall("\r\n".join([*lines, f"Authorization: Bearer {KEY}", "", ""]).encode())
        assert b" 400 " in caller.recv(4096).split(b"\r\n")[0]
    assert http.get(f"{keyed.url}/health").status_code == 200


def test_a_request_that_never_ends_is_dropped(keyed: Address) -> None:
    url = httpx.URL(keyed.url)
    with socket.create_connection((url.host, url.port), 10) as slow:
        lines = ["POST /v1/completions HTTP/1.1", "Host: 127.0.0.1", "Content-Length: 90"]
        lines += [f"Authorization: Bearer {KEY}"]
        slow.sendall("\r\n".join([*lines, "", '{"model"']).encode())
        began = time.monotonic()
        assert b"408" in slow.recv(4096).split(b"\r\n")[0]
        assert time.monotonic() - began < 30


def test_a_client_still_sending_too_much_gets_the_answer(address: Address) -> None:
    """If the connection were closed in the meantime, it would be reset, and the response would be lost."""
    url = httpx.URL(address.url)
    with socket.create_connection((url.host, url.port), 10) as slow:
        head = ["POST /v1/completions HTTP/1.1", f"Host: 127.0.0.1:{url.port}", f"Content-Length: {3 << 20}", "", ""]
        slow.sendall("\r\n".join(head).encode())
        time.sleep(0.5)  # the request has been rejected by now
        for _ in range(3):
            slow.sendall(b" " * (1 << 20))
            time.sleep(0.1)
        result = b"".join(iter(lambda: slow.recv(4096), b""))
    assert result.startswith(b"HTTP/1.1 413") and b"send less at a time" in result


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"nonsense",
        b"[]",
        b"null",
        b'{"model": "plain", "prompt": "\\ud800"}',
        b'{"model": "plain", "prompt": ' + b"[" * 50_000 + b"]" * 50_000 + b"}",
        b'{"model": "plain", "prompt": "' + b"\xff\xfe" + b'"}',
        b'{"model": "plain", "max_tokens": 1e400}',
        b'{"model": "plain", "max_tokens": ' + b"9" * 10_000 + b"}",
        b'{"model": "../../etc/passwd", "prompt": "x"}',
        b'{"model": "plain\\u0000", "prompt": "x"}',
        json.dumps({"model": "plain", "prompt": "ক" * 500_000}).encode(),
    ],
)
def test_hostile_bodies_get_a_message(address: Address, body: bytes) -> None:
    response = http.post(
        f"{address.url}/v1/completions", content=body, headers={"content-type": "application/json"}, timeout=60
    )
    assert 400 <= response.status_code < 500, response.text[:300]
    assert response.json()["error"]["message"]
    assert http.get(f"{address.url}/health").status_code == 200


def test_hostile_prompts_are_continued(address: Address) -> None:
    for prompt in ["\x1b[2J\x00\u202e", "<|endoftext|><|assistant|>", "\U0001f468\u200d" * 10, "{{7*7}}%s%n"]:
        response = http.post(f"{address.url}/v1/completions", json={**ASKED, "prompt": prompt})
        assert response.status_code == 200 and response.json()["usage"]["completion_tokens"] <= 1


def test_a_client_that_disconnects_during_a_stream_frees_its_row(address: Address) -> None:
    asked = {"model": "plain", "prompt": "মা", "max_tokens": 200, "stream": True, "temperature": 1.0, "n": 8}

    async def leave() -> None:
        url = f"{address.url}/v1/completions"
        async with httpx.AsyncClient() as client, client.stream("POST", url, json=asked) as stream:
            async for _ in stream.aiter_lines():
                return

    asyncio.run(leave())
    batcher = address.app.state.kotha.registry.opened["plain"].batcher
    for _ in range(500):
        if not batcher.n_at_work and not batcher.n_waiting:
            break
        time.sleep(0.01)
    assert batcher.n_at_work == batcher.n_waiting == 0
    assert address.app.state.kotha.registry.opened["plain"].users == 0, "and the model can be put away"
