"""Many clients that watch the same run share one reading of it, and are let go when the server stops."""

import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.loopback import http
from tests.server.conftest import started

from kotha.server.api import runs
from kotha.server.app import make_app
from kotha.server.settings import ServeSettings


def watch(url: str) -> Any:
    return http.get(f"{url}/api/runs/plain", timeout=60)


@pytest.fixture
def reading(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """The readings of a run, each of which takes half a second."""
    read, found = runs._folder_of, list[str]()

    def slow(state: Any, name: str) -> Path:
        found.append(name)
        time.sleep(1)
        return read(state, name)

    monkeypatch.setattr(runs, "_folder_of", slow)
    yield found


def test_concurrent_watchers_share_a_reading(serve: Any, reading: list[str]) -> None:
    at = serve()
    with ThreadPoolExecutor(30) as pool:
        answers = list(pool.map(watch, [at.url] * 30))
    assert {answer.status_code for answer in answers} == {404}  # the model has no record of its training
    assert len(reading) < 15


def test_watchers_are_let_go_at_shutdown(models: Path, reading: list[str]) -> None:
    app = make_app([str(models / "plain")], ServeSettings(), device="cpu")
    answers: list[int] = []
    with contextmanager(started)(app) as url:
        http.get(f"{url}/health")

        def look(number: int) -> None:
            answers.append(http.get(f"{url}/api/runs/plain?after={number}", timeout=60).status_code)

        threads = [threading.Thread(target=look, args=(number,)) for number in range(40)]  # 40 s of reading
        for each in threads:
            each.start()
        while len(reading) < 2:
            time.sleep(0.05)
        began = time.monotonic()
    for each in threads:
        each.join(30)
    assert time.monotonic() - began < 20 and 503 in answers
