"""``kotha open``: the studio at a local address, with a folder for jobs."""

import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.loopback import http

from kotha.cli.main import main
from kotha.errors import KothaError

pytest.importorskip("fastapi", reason="the server stands on FastAPI")


def test_the_studio_runs_and_accepts_jobs(tmp_path: Path) -> None:
    words = [
        sys.executable,
        "-m",
        "kotha",
        "open",
        "--no-browser",
        "--port",
        "0",
        "--room",
        "look",
        "--text",
        "মা বললেন",
    ]
    with subprocess.Popen(words, stderr=subprocess.PIPE, text=True, cwd=tmp_path) as opened:
        assert opened.stderr is not None
        line = opened.stderr.readline()
        found = re.search(r"(http://127\.0\.0\.1:\d+)/(#/look\?x=\S+);", line)
        assert found is not None, line
        assert http.get(found.group(1)).headers["content-type"].startswith("text/html")
        assert http.get(f"{found.group(1)}/api/jobs", timeout=60).json() == []
        assert [each["id"] for each in http.get(f"{found.group(1)}/v1/models").json()["data"]] == ["box"]
        opened.send_signal(signal.SIGTERM)
        assert opened.wait(60) == 143
    assert (tmp_path / "kotha-work").is_dir()


def test_the_browser_opens_the_requested_page(monkeypatch: Any, capsys: Any, tmp_path: Path) -> None:
    seen: list[str] = []
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("webbrowser.open", lambda address: seen.append(address) is None and False)
    monkeypatch.setattr("kotha.server.lifecycle.run", lambda models, settings, device, ready, **_: ready("http://here"))
    assert main(["open", "box", "--room", "train"]) == 0
    assert seen == ["http://here/#/train"]
    assert main(["open", "box", "--language", "bn"]) == 0
    assert seen[1:] == ["http://here/#/write?lang=bn"]
    found = capsys.readouterr().err
    assert "could not start a browser" in found and "ব্রাউজার" in found


def test_the_port_is_8000_or_the_next_free_one(monkeypatch: Any, capsys: Any, tmp_path: Path) -> None:
    """Browsers keep answers, language and theme per address, so the port must not change from start to start."""
    monkeypatch.chdir(tmp_path)
    ports: list[tuple[int, ...]] = []
    address = "http://127.0.0.1:8000"

    def run(models: Any, settings: Any, device: Any, ready: Any) -> None:
        ports.append((settings.port, *settings.other_ports))
        ready(address)

    monkeypatch.setattr("kotha.server.lifecycle.run", run)
    assert main(["open", "--no-browser"]) == 0
    assert ports == [(8000, 8001, 8002, 8003, 0)] and "in use" not in capsys.readouterr().err
    address = "http://127.0.0.1:8001"
    assert main(["open", "--no-browser"]) == 0
    assert "port 8000 is in use" in capsys.readouterr().err
    assert main(["open", "--no-browser", "--port", "8001"]) == 0
    assert ports[-1] == (8001,) and "in use" not in capsys.readouterr().err


def test_the_next_port_is_used_if_one_is_taken() -> None:
    from kotha.server.lifecycle import listen

    with listen("127.0.0.1", 0) as first:
        taken = first.getsockname()[1]
        with listen("127.0.0.1", taken, taken, 0) as second:
            assert second.getsockname()[1] != taken
        with pytest.raises(KothaError, match="another server may be using it"):
            listen("127.0.0.1", taken)


def test_an_unknown_page_is_rejected(capsys: Any) -> None:
    assert main(["open", "--room", "kitchen"]) == 2
    assert "unknown room 'kitchen'" in capsys.readouterr().err
