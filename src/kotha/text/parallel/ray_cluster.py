"""A worker pool on a Ray cluster: a temporary one on this machine, or an existing one.

Usage statistics and the dashboard are disabled. A temporary cluster listens only on the loopback interface, requires a
random token, and leaves no files behind. If the program is already connected to a cluster, that cluster is used, and it
is not shut down.

Each item is a Ray task, which Ray reschedules if its worker or node dies. The state of the pool's task is stored in the
cluster once. Each worker process fetches it once, and the processes on a node share its arrays.
"""

import os
import secrets
import signal
import socket
import sys
import warnings
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from importlib.metadata import version
from typing import Any

import kotha
from kotha.errors import DataError, InstallCommand, KothaError, UsageError, library
from kotha.i18n.message import Message, Option
from kotha.storage.atomic import scratch_folder
from kotha.text.parallel.local import AHEAD, Item, Result, WorkerTask

SCHEME = "ray"
# How often Ray retries an item after the death of its worker.
_MOST_DEATHS = 3
_NEEDED = Message("workers on Ray need ray; install it with: {command}", command=InstallCommand("ray"))
_SECONDS_TO_ANSWER = 10
# A worker starts within seconds, unless the cluster is full.
_SECONDS_TO_BEGIN = 120
# Enough for batches in flight and one index of validation documents; Ray spills the rest to disk.
_SHARED_MEMORY = 512 << 20
_QUIET = {
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_DEDUP_LOGS": "1",
    "RAY_DEDUP_LOGS_SKIP_REGEX": ".",  # keeps Ray's log out of the output
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",
}
# 0 restricts Ray to the loopback interface, on Linux too.
_LOOPBACK = {"RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0"}


def check_address(on: str) -> str | None:
    """Return the address in ``ray://HOST:PORT``, or None for ``ray``; raise a UsageError for anything else.

    >>> check_address("ray"), check_address("ray://10.0.0.7:10001")
    (None, '10.0.0.7:10001')
    """
    name, _, address = on.partition("://")
    host, _, port = address.rpartition(":")
    if name != SCHEME or (on != SCHEME and not (host and port.isdecimal() and 0 < int(port) < 1 << 16)):
        raise UsageError("{on} must be 'ray' or 'ray://HOST:PORT', such as 'ray://head:10001'", on=Option("on", on))
    return address or None


# -- the workers ------------------------------------------------------------------------------------------------------


def versions() -> list[str]:
    """Return the package versions that must be equal on all workers for reproducible results."""
    return [f"kotha {kotha.__version__}", *(f"{name} {version(name)}" for name in ("numpy", "regex", "tokenizers"))]


_tasks: dict[str, Callable[[Any], Any]] = {}


def _work(reference: list[Any], ours: list[str], *items: Any) -> list[Any]:
    """Run a task on an item in a worker process; the list keeps Ray from fetching the task for each call."""
    [task] = reference
    if task.hex() not in _tasks:
        if versions() != ours:
            raise KothaError(
                "a worker in the Ray cluster has {theirs}, but this machine has {ours}; install the same "
                "versions on every node, or results may differ",
                theirs=versions(),
                ours=ours,
            )
        os.environ["TOKENIZERS_PARALLELISM"] = "false"
        _tasks.clear()
        _tasks[task.hex()] = library("ray", _NEEDED).get(task)()
    return list(map(_tasks[task.hex()], items))


class RayPool:
    """A pool of workers (default: one per core) on the connected cluster."""

    def __init__(self, ray: Any, workers: int | None) -> None:
        cores = max(1, int(ray.cluster_resources().get("CPU", 1)))
        self._ray, self.workers = ray, workers or cores
        self._share = min(1.0, cores / self.workers)  # if there are more workers than cores, several share a core

    def map(self, task: WorkerTask[Item, Result], items: Iterable[Item]) -> Generator[Result]:
        """Yield the results of a task, in the order of the items."""
        work = self._ray.remote(num_cpus=self._share, max_retries=_MOST_DEATHS)(_work)
        state = [self._ray.put(task)], versions()
        calls = deque([work.remote(*state)])
        try:
            if not self._ray.wait(list(calls), timeout=_SECONDS_TO_BEGIN)[0]:
                raise KothaError(
                    "no worker of the Ray cluster started within {seconds:g} seconds; check that the cluster "
                    "has a free core",
                    seconds=_SECONDS_TO_BEGIN,
                )
            self._results(calls.popleft())
            for item in items:
                calls.append(work.remote(*state, item))
                _, unfinished = self._ray.wait(list(calls), num_returns=len(calls), timeout=0, fetch_local=False)
                if len(unfinished) >= self.workers:
                    self._ray.wait(unfinished, fetch_local=False)
                if len(calls) > AHEAD * self.workers:
                    yield from self._results(calls.popleft())
            while calls:
                yield from self._results(calls.popleft())
        finally:
            if self._ray.is_initialized():  # otherwise the calls ended when the cluster shut down
                for call in calls:
                    self._ray.cancel(call, force=True)

    def _results(self, call: Any) -> list[Any]:
        try:
            return list(self._ray.get(call))
        except self._ray.exceptions.RayTaskError as error:
            if isinstance(error.cause, KothaError):
                raise error.cause from None
            raise
        except self._ray.exceptions.RayError as error:
            raise DataError(
                "{n} workers of the Ray cluster died in a row, possibly out of memory; try fewer workers",
                n=_MOST_DEATHS + 1,
            ) from error


# -- the cluster ------------------------------------------------------------------------------------------------------


@contextmanager
def pool_on_ray(on: str, workers: int | None) -> Iterator[RayPool]:
    """Open a worker pool on the cluster named by ``on`` (default: one worker per core)."""
    address = check_address(on)
    if address is not None:
        _check_reachable(address)
    if SCHEME not in sys.modules:  # Ray reads these variables once, on import
        for name, value in _QUIET.items():
            os.environ.setdefault(name, value)
        os.environ.update(_LOOPBACK)
        if address is None and "RAY_AUTH_MODE" not in os.environ:
            os.environ.update(RAY_AUTH_MODE="token", RAY_AUTH_TOKEN=secrets.token_hex(32))
    ray = library("ray", _NEEDED)
    if ray.is_initialized():
        if address is not None:
            raise KothaError(
                "this program is already connected to a Ray cluster; use {on} to run on that cluster instead of "
                "{other}",
                on=Option("on", SCHEME),
                other=on,
            )
        yield RayPool(ray, workers)
        return
    # Whether Ray read _LOOPBACK on import. If this constant is missing, assume that it did not.
    constants = sys.modules.get("ray._private.ray_constants")
    if address is None and getattr(constants, "ENABLE_RAY_CLUSTER", True):
        raise KothaError(
            "Ray was imported before it could be restricted to this machine; start a cluster yourself with "
            "ray.init(), or import Ray later"
        )
    with _connected(ray, address, workers):
        yield RayPool(ray, workers)


def _check_reachable(address: str) -> None:
    """Fail early if no server listens at an address; Ray would retry for minutes."""
    host, _, port = address.rpartition(":")
    try:
        socket.create_connection((host.strip("[]"), int(port)), timeout=_SECONDS_TO_ANSWER).close()
    except OSError as error:
        raise KothaError(
            "no answer from ray://{address} ({why}); start a Ray head node first (its default client port is 10001)",
            address=address,
            why=error.strerror or str(error),
        ) from error


@contextmanager
def _connected(ray: Any, address: str | None, workers: int | None) -> Iterator[None]:
    """Connect to the cluster at an address, or start a temporary one."""
    options: dict[str, Any] = {"log_to_driver": False, "logging_level": "ERROR"}
    # The path must be short, because Ray creates sockets in it.
    with nullcontext() if address else scratch_folder("kotha-ray-") as folder:
        if folder is not None:
            options |= {
                "num_cpus": workers or os.cpu_count() or 1,
                "num_gpus": 0,
                "object_store_memory": _SHARED_MEMORY,
            }
            options |= {"include_dashboard": False, "_temp_dir": str(folder)}
        try:
            with _sigterm_preserved(), warnings.catch_warnings():
                warnings.simplefilter("ignore")  # real errors also raise exceptions
                ray.init(f"{SCHEME}://{address}" if address else "local", **options)
        except Exception as error:  # raised by Ray if its processes do not start in time
            ray.shutdown()
            raise KothaError(
                "Ray at {address} cannot be reached ({why}). If the cluster requires a token, set "
                "RAY_AUTH_MODE=token and RAY_AUTH_TOKEN. Without Ray, use local worker processes",
                address=address or "local",
                why=" ".join(str(error).split())[:200] or type(error).__name__,
            ) from error
        try:
            yield
        finally:
            ray.shutdown()


@contextmanager
def _sigterm_preserved() -> Iterator[None]:
    """Restore the SIGTERM handler that Ray replaces on start."""
    before = signal.getsignal(signal.SIGTERM)
    try:
        yield
    finally:
        with suppress(ValueError):  # not in the main thread, so Ray replaced nothing
            signal.signal(signal.SIGTERM, before)


def end_at_once() -> None:
    """Kill the processes of a temporary cluster when a signal ends this process, so they stop writing to its folder."""
    node: Any = getattr(sys.modules.get("ray._private.worker"), "_global_node", None)
    with suppress(Exception):  # a private API; if it is missing, the processes exit a little later
        node.kill_all_processes(check_alive=False, allow_graceful=False)
