"""A server under load for a long time: no leaks and no wrong responses, even if clients disconnect."""

import asyncio
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent.parent.parent / "benchmarks"))

import serve_soak
from serve_load import kotha_server

# Allowed growth of a process after thousands of requests: pages kept by the allocator, a thread in a pool.
MOST_BYTES, MOST_DESCRIPTORS, MOST_THREADS = 48 << 20, 4, 4


def soaked(model: Path, requests: int, seconds: float) -> dict[str, Any]:
    with kotha_server(str(model), 16, None) as (host, port, process):
        soak = serve_soak.Soak(host, port, process, model.name)
        return asyncio.run(soak.run(requests, seconds))


def check(found: dict[str, Any], requests: int) -> None:
    before, after = found["before"], found["after"]
    assert found["requests"] == requests and not found["wrong"], found
    assert found["cut_off"] > 0.15 * requests and found["refused_as_they_should"] > 0.08 * requests, found
    assert after["memory_bytes"] - before["memory_bytes"] < MOST_BYTES, found
    assert after["descriptors"] - before["descriptors"] <= MOST_DESCRIPTORS, found
    assert after["threads"] - before["threads"] <= MOST_THREADS, found


def test_hundreds_of_requests_leave_nothing_behind(models: Path, tmp_path: Path) -> None:
    shutil.copytree(models / "plain", tmp_path / "model")
    check(soaked(tmp_path / "model", 300, 6), 300)


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_ten_thousand_requests_in_twenty_minutes_leave_nothing_behind(models: Path, tmp_path: Path) -> None:
    shutil.copytree(models / "plain", tmp_path / "model")
    check(soaked(tmp_path / "model", 10_000, 20 * 60), 10_000)
