"""Local worker pools: order of results, death of a worker, and where pools run."""

import os
import signal
import subprocess
import sys
from functools import partial
from importlib.util import find_spec

import pytest

from kotha.errors import DataError, KothaError, UsageError
from kotha.text.parallel import check_workers, worker_pool
from kotha.text.parallel.local import LocalPool
from kotha.text.parallel.ray_cluster import check_address


class Doubler:
    """Doubles numbers; a worker that gets ``deadly`` dies."""

    def __init__(self, deadly: int | None = None) -> None:
        self.deadly = deadly

    def __call__(self, number: int) -> int:
        if number == self.deadly:
            os.kill(os.getpid(), signal.SIGKILL)
        return 2 * number


DOUBLED = [2 * number for number in range(20)]


@pytest.mark.parametrize("workers", [1, 2])
def test_results_come_in_order(workers):
    assert list(LocalPool(workers).map(Doubler, range(20))) == DOUBLED


def test_a_worker_that_dies_ends_the_work():
    with pytest.raises(DataError, match="a worker process died, possibly out of memory; try fewer workers"):
        list(LocalPool(2).map(partial(Doubler, 3), range(20)))


def test_few_items_are_in_flight():
    taken = []
    results = LocalPool(2).map(Doubler, (taken.append(number) or number for number in range(100)))
    assert next(results) == 0
    assert len(taken) <= 5
    results.close()


@pytest.mark.parametrize("on", ["rai", "ray:", "ray://", "ray://head", "ray://head:x", "ray://:1", "ray://h:70000"])
def test_invalid_locations_are_rejected(on):
    with pytest.raises(UsageError, match="must be 'ray' or 'ray://HOST:PORT'"):
        check_workers(on, None)


def test_valid_locations():
    assert check_address("ray") is None
    assert check_address("ray://[::1]:10001") == "[::1]:10001"
    with pytest.raises(UsageError, match="workers=0 is too small; use 1 or more"):
        check_workers(None, 0)


def test_an_address_without_a_listener_fails_at_once(free_port):
    with (
        pytest.raises(KothaError, match=f"no answer from ray://127.0.0.1:{free_port} "),
        worker_pool(f"ray://127.0.0.1:{free_port}", 1),
    ):
        pass


def test_without_ray_the_error_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(KothaError, match=r"pip install 'grpcio>=1.60' 'ray"), worker_pool("ray", 1):
        pass


@pytest.mark.skipif(find_spec("ray") is None, reason="Ray is not installed: pip install 'kotha[ray]'")
def test_a_ray_that_would_listen_to_the_network_is_not_started():
    """If the caller imported Ray first, Ray has its default settings."""
    program = """
import ray
from kotha.text.parallel import worker_pool

with worker_pool("ray", 1):
    print("begun")
"""
    plain = {name: value for name, value in os.environ.items() if not name.startswith("RAY_")}
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, env=plain, capture_output=True, text=True, timeout=120, check=False)
    assert "Ray was imported before it could be restricted to this machine" in done.stderr
    assert done.stdout == ""
