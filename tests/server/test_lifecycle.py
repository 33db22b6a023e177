"""`kotha serve` as a command: it prints its address, generates, and finishes open requests at shutdown."""

import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.loopback import http

from kotha.cli.main import main


@contextmanager
def started(*words: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """Start a separate server and return its address once it is printed."""
    command = [sys.executable, "-m", "kotha", "serve", *words, "--port", "0", "--device", "cpu"]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    # Background shells ignore SIGINT; the server would then exit with 0.
    heard = lambda: signal.signal(signal.SIGINT, signal.SIG_DFL)
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=environment, preexec_fn=heard) as server:
        assert server.stderr is not None
        result = next((found[1] for line in server.stderr if (found := re.search(r"at (http://\S+)/v1;", line))), None)
        try:
            assert result is not None, "no address was told"
            yield server, result
        finally:
            server.kill()


@pytest.mark.parametrize("signal_number", [signal.SIGTERM, signal.SIGINT])
def test_open_requests_are_finished_at_shutdown(models: Path, signal_number: signal.Signals) -> None:
    lines: list[str] = []
    asked = {"model": "plain", "prompt": "মা", "max_tokens": 300, "stream": True, "seed": 1}
    with started(str(models / "plain")) as (server, address):
        with http.stream("POST", f"{address}/v1/completions", json=asked, timeout=60) as stream:
            for line in stream.iter_lines():
                lines.append(line)
                if len(lines) == 3:
                    server.send_signal(signal_number)
        assert server.wait(60) == {signal.SIGTERM: 143, signal.SIGINT: 130}[signal_number]
    assert lines[-2:] == ["data: [DONE]", ""] or lines[-1] == "data: [DONE]", lines[-3:]
    parts = [json.loads(line.removeprefix("data: ")) for line in lines if line.startswith("data: {")]
    assert parts[-1]["choices"][0]["finish_reason"] in ("length", "stop")


def test_requests_are_logged_without_their_texts(models: Path) -> None:
    asked = {"model": "plain", "prompt": "গোপন", "max_tokens": 1}
    with started(str(models / "plain"), "--log") as (server, address):
        assert http.post(f"{address}/v1/completions", json=asked, timeout=60).is_success
        host, _, port = address.removeprefix("http://").partition(":")
        with socket.create_connection((host, int(port)), timeout=60) as rubbish:
            rubbish.sendall(b"rubbish\r\n\r\n")
            assert rubbish.recv(1 << 16).startswith(b"HTTP/1.1 400")
        server.terminate()
        _, errors = server.communicate(timeout=60)
    *log, last = errors.splitlines()
    assert last.startswith("kotha: stopped"), "the command's own last word"
    request, warning = log
    assert "POST /v1/completions 200 in " in request and "Invalid HTTP request" in warning
    assert "গোপন" not in errors and "\\u09" not in errors


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (
            ["--host", "0.0.0.0"],
            "--host 0.0.0.0 can be reached from other machines, so the server needs a key; give a file",
        ),
        (["--host", "0.0.0.0"], "contains one with --key-file …"),
        (["--port", "70000"], "--port 70000 is out of range"),
        (["--host", "192.0.2.1", "--key-file", "key"], "try another host or port"),
        (["nowhere"], "nowhere not found"),
        (["--key-file", "nowhere"], "cannot read the key"),
    ],
)
def test_start_errors_are_one_line(
    capsys: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: list[str], message: str
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("key").touch(mode=0o600)
    Path("key").write_text("sixteen-letters-and-more")
    assert main(["serve", *words]) != 0
    output = capsys.readouterr().err
    assert message in output and output.count("\n") == 1


def test_a_port_in_use_is_reported(capsys: Any, models: Path) -> None:
    with started(str(models / "plain")) as (_, address):
        assert main(["serve", str(models / "plain"), "--port", address.rpartition(":")[2]]) == 1
    assert "another server may be using it; try --port " in capsys.readouterr().err


def test_errors_name_the_option_that_enables_a_feature(models: Path) -> None:
    with started(str(models / "plain")) as (_, address):
        refused = [
            http.get(f"{address}/api/jobs"),
            http.post(f"{address}/api/plan", json={"minutes": 1, "data": "0" * 12}),
            http.post(f"{address}/api/compare", json={"runs": ["plain"], "text": "0" * 12}),
            http.post(f"{address}/api/ask", json={"index": "news", "question": "কে?"}),
            http.get(f"{address}/health", headers={"host": "models.example.org"}),
        ]
    flags = ["--jobs …", "--jobs …", "--jobs …", "--index …", "--name …"]
    for answer, flag in zip(refused, flags, strict=True):
        assert f"start `kotha serve` with {flag}" in answer.json()["error"]["message"], answer.text


def test_the_first_model_is_loaded_at_the_start(serve: Any) -> None:
    at = serve("plain", "taught", preload=True)
    until = time.monotonic() + 60
    while not at.app.state.kotha.registry.opened and time.monotonic() < until:
        time.sleep(0.02)
    assert list(at.app.state.kotha.registry.opened) == ["plain"], "the first, and no other"
    assert http.get(f"{at.url}/health").is_success


@pytest.mark.parametrize(("words", "message"), [(["--host", "0.0.0.0"], "needs a key"), (["nosuch"], "not found")])
def test_invalid_options_are_rejected_before_torch_is_imported(words: list[str], message: str) -> None:
    code = (
        "import sys; from kotha.cli.main import main; "
        f"print(main(['serve', *{words!r}]), {{'torch', 'fastapi', 'uvicorn'}} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split("\n")[-2].endswith(" set()") and message in done.stderr, (done.stdout, done.stderr)
