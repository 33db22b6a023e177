"""Limits on idle connections, and on requests that are cheap to send but expensive to process."""

import json
import socket
import time
from typing import Any

import httpx
import pytest
from tests.loopback import http
from tests.server.conftest import Address

from kotha.server.security import HEADERS
from kotha.server.settings import Limits

PILE = "a" + "\u0316\u0301" * 20_000


def refused(address: Address, path: str, asked: Any, status: int = 400) -> dict[str, Any]:
    answer = http.post(address.url + path, json=asked, timeout=60)
    assert answer.status_code == status, answer.text[:500]
    found: dict[str, Any] = answer.json()["error"]
    return found


@pytest.mark.parametrize(
    ("path", "asked"),
    [
        ("/v1/completions", {"prompt": PILE}),
        ("/v1/completions", {"prompt": "x", "stop": ["ক", PILE[:900]]}),
        ("/v1/chat/completions", {"messages": [{"role": "user", "content": [{"type": "text", "text": PILE}]}]}),
        ("/v1/embeddings", {"input": ["x", PILE]}),
        ("/api/card", {"text": PILE}),
        ("/api/inside/lens", {"text": PILE}),
    ],
)
def test_too_many_combining_marks_are_rejected(address: Address, path: str, asked: dict[str, Any]) -> None:
    assert "marks" in refused(address, path, {"model": "plain", **asked})["message"]


def test_ordinary_combining_marks_are_accepted(address: Address) -> None:
    text = "ক্ষ্ম্যাঁ e\u0301\u0323 Z̷̖̈a̶̙͠l̵̙̍g̴̫̈o̸̱͆ עִבְרִית"
    response = http.post(f"{address.url}/api/card", json={"model": "plain", "text": text}, timeout=60)
    assert response.status_code == 200 and response.json()["letters"]


@pytest.mark.parametrize(
    "sent",
    [
        b"rubbish\r\n\r\n",
        b"GET /health HTTP/1.1\r\n\r\n",  # no Host
        b"GET /health HTTP/1.1\r\nHost: localhost\r\nno colon\r\n\r\n",
    ],
)
def test_invalid_http_gets_the_usual_error_body(address: Address, sent: bytes) -> None:
    host, _, port = address.url.removeprefix("http://").partition(":")
    with socket.create_connection((host, int(port)), timeout=60) as connection:
        connection.sendall(sent)
        result = b"".join(iter(lambda: connection.recv(1 << 16), b""))  # until the server closes it
    head, _, body = result.decode().partition("\r\n\r\n")
    status, *lines = head.split("\r\n")
    headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in lines)}
    assert status.startswith("HTTP/1.1 400") and headers["connection"] == "close"
    assert headers.items() >= {**HEADERS, "content-type": "application/json", "cache-control": "no-store"}.items()
    error = json.loads(body)["error"]
    assert error["type"] == "invalid_request_error" and "invalid HTTP request" in error["message"]


@pytest.mark.parametrize(
    ("path", "asked", "param"),
    [
        ("/v1/completions", {"prompt": [1.5] * 100_000}, "prompt"),
        ("/v1/embeddings", {"input": [{}] * 100_000}, "input"),
        ("/v1/chat/completions", {"messages": [{}] * 4_000}, "messages"),
        ("/v1/chat/completions", {"messages": [{}] * 100_000}, "messages"),
        ("/api/read", {"prompt": [{}] * 100_000}, "prompt"),
        ("/v1/completions", {"prompt": "x", "stop": "y" * 2_000}, "stop"),
        ("/v1/completions", {f"key{place}": 1 for place in range(50_000)}, "key0"),
        ("/v1/completions", {"prompt": "x", "seed": 10**400}, "seed"),
    ],
)
def test_only_the_first_error_is_collected(address: Address, path: str, asked: dict[str, Any], param: str) -> None:
    """Collecting all errors would take gigabytes."""
    error = refused(address, path, {"model": "plain", **asked})
    assert error["param"].startswith(param) and len(error["message"]) < 2_000


@pytest.mark.parametrize(
    ("body", "kind", "message"),
    [
        (b'{"model": "plain",}', "application/json", "not valid JSON"),
        (b'{"model": "plain"}', "text/plain", "content-type"),
        (b'{"model": "plain", "max_token": 3}', "application/json", "max_tokens"),
        (
            b'{"model": "plain", "messages": [{"role": "user"}], "tools": [{}]}',
            "application/json",
            "tools is not supported",
        ),
    ],
)
def test_a_mistake_is_reported_with_a_message(address: Address, body: bytes, kind: str, message: str) -> None:
    path = "/v1/chat/completions" if b"messages" in body else "/v1/completions"
    answer = http.post(address.url + path, content=body, headers={"content-type": kind})
    error = answer.json()["error"]
    assert answer.status_code == 400 and message in error["message"] and "Value error" not in error["message"], error


def test_a_long_text_is_tokenized_in_parts(address: Address) -> None:
    assert "20,000" in refused(address, "/api/card", {"model": "plain", "text": "ক" * 20_001})["message"]
    assert "tokens" in refused(address, "/api/read", {"model": "plain", "prompt": "ক্" * 20_000})["message"]


@pytest.mark.parametrize("header", ["Host: [", "Host: [::1", "Host: 127.0.0.1\r\nOrigin: http://["])
def test_an_invalid_host_is_rejected_by_the_guard(address: Address, header: str) -> None:
    host, port = address.url.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port)), 10) as connection:
        connection.sendall(f"GET /health HTTP/1.1\r\n{header}\r\nConnection: close\r\n\r\n".encode())
        result = b"".join(iter(lambda: connection.recv(65536), b""))
    assert b" 403 " in result.split(b"\r\n")[0] and b"content-security-policy" in result


def test_a_connection_without_headers_is_closed_and_others_are_served(serve: Any) -> None:
    at = serve(limits=Limits(body_seconds=0.5, connections=8))
    host, port = at.url.removeprefix("http://").split(":")
    slow = [socket.create_connection((host, int(port)), 10) for _ in range(12)]
    for each in slow:
        each.sendall(b"GET /health HTTP/1.1\r\n")
    assert http.get(f"{at.url}/health", timeout=30).status_code == 200, "idle connections were closed"
    for each in slow:
        each.settimeout(30)
        assert each.recv(1) == b""
        each.close()


def test_a_connection_is_reused(serve: Any) -> None:
    at = serve(limits=Limits(body_seconds=2))
    with httpx.Client(base_url=at.url) as client:
        for _ in range(4):  # in total longer than the time limit for a body
            assert client.get("/health").status_code == 200
            time.sleep(0.8)


@pytest.mark.parametrize(
    ("method", "path", "message"), [("GET", "/nowhere", "/openapi.json"), ("GET", "/v1/completions", "POST")]
)
def test_an_unknown_route_names_the_existing_ones(address: Address, method: str, path: str, message: str) -> None:
    answer = http.request(method, address.url + path)
    assert answer.status_code in (404, 405) and message in answer.json()["error"]["message"]


@pytest.mark.parametrize("path", ["/api/inside/pass", "/api/card", "/v1/completions", "/api/write"])
@pytest.mark.parametrize("half", [b"\\ud83d", b"\xed\xa0\xbd"], ids=["escaped", "as bytes"])
def test_a_lone_surrogate_is_rejected(address: Address, path: str, half: bytes) -> None:
    key = "prompt" if path in ("/v1/completions", "/api/write") else "text"
    bodies = [b'{"model": "plain", "%s": "a%s"}' % (key.encode(), half), b'{"model": "plain", "%stext": "a"}' % half]
    bodies.append('{"model": "plain", "text": "a\ud83d"}'.encode("utf-16-le", "surrogatepass"))
    answers = [
        http.post(address.url + path, content=body, headers={"content-type": "application/json"}) for body in bodies
    ]
    for answer in answers:
        assert answer.status_code == 400 and "half a character" in answer.json()["error"]["message"], answer.text[:300]


def test_a_surrogate_pair_is_accepted(address: Address) -> None:
    body = b'{"model": "plain", "text": "\\ud83d\\ude00"}'
    answer = http.post(f"{address.url}/api/card", content=body, headers={"content-type": "application/json"})
    assert answer.status_code == 200


HOSTILE_BODIES = [
    b'{"model": "gpt", "text": "\\ud800", "texts": ["\\ud800"], "question": "\\ud800", "run": "\\ud800"}',
    b'{"model": "\\ud800", "runs": ["\\ud800"], "index": "\\ud800", "preset": "\\ud800"}',
    b'{"model": "gpt", "text": NaN, "texts": NaN, "minutes": NaN, "words": NaN, "limit": Infinity, "tokens": [NaN]}',
    b'{"model": "gpt", "text": "x", "tokens": NaN, "layer": Infinity, "heads": [1e999], "beams": 1e400}',
    b'{"model": "gpt", "text": "x", "seed": ' + b"9" * 4000 + b', "steps": ' + b"9" * 4000 + b', "tokens": -1}',
    b'{"model": "gpt", "text": "x", "path": "/etc/passwd"}',
    b'{"model": "../gpt", "text": "x", "heads": ["a"], "tokens": 9}',
    b"null",
    b"[]",
]
INSIDE = [f"inside/{view}" for view in ("attention", "lens", "flow", "heads", "worksheet", "silence", "alignment")]


@pytest.mark.parametrize("path", ["classify", "fill", "translate", "ask", "plan", "doctor", "compare", "card", *INSIDE])
@pytest.mark.parametrize("body", HOSTILE_BODIES)
def test_hostile_requests_get_a_message(house: Address, path: str, body: bytes) -> None:
    headers = {"content-type": "application/json"}
    response = http.post(f"{house.url}/api/{path}", content=body, headers=headers, timeout=60)
    assert response.status_code in (400, 404), response.text[:300]
    assert response.json()["error"]["message"]
