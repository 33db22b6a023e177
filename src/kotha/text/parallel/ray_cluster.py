"""A worker pool on a Ray cluster: one of our own on this machine for as long as it is needed, or one that is there.

Nothing is reported to anyone and no dashboard is opened. A cluster of our own listens to this machine alone, asks for a
token that nobody else knows, and leaves no file behind. One that the caller's program is connected to already is used,
and left as it is.

Items are Ray tasks: Ray gives those of a worker or a node that died to others. State is put into the cluster once; each
worker process fetches it once, and on each node the arrays in it are shared.
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
from kotha.errors import DataError, KothaError, UsageError, library
from kotha.i18n.message import Option
from kotha.storage.atomic import scratch_folder
from kotha.text.parallel.local import AHEAD, Item, Result, WorkerTask

SCHEME = "ray"
# An item whose workers have died this often, one after the other, is held to be the cause.
_MOST_DEATHS = 3
_NEEDED = "workers on Ray need ray: pip install 'kotha[ray]'"
_SECONDS_TO_ANSWER = 10
# A worker starts within seconds, unless the cluster is full.
_SECONDS_TO_BEGIN = 120
# Batches on their way and one index of validation documents; what is more, Ray writes to disk.
_SHARED_MEMORY = 512 << 20
_QUIET = {
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_DEDUP_LOGS": "1",
    "RAY_DEDUP_LOGS_SKIP_REGEX": ".",  # of its log nothing goes to our output, where results are
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",
}
# By this name, for it began on systems whose firewall asks about each open port.
_LOOPBACK = {"RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0"}


def check_address(on: str) -> str | None:
    """The address in ``ray://HOST:PORT``, or None for plain ``ray``; anything else is a UsageError.

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
    """What has to be the same here and in every worker, for the results to be the same."""
    return [f"kotha {kotha.__version__}", *(f"{name} {version(name)}" for name in ("numpy", "regex", "tokenizers"))]


_at_work: dict[str, Callable[[Any], Any]] = {}


def _work(held: list[Any], ours: list[str], *items: Any) -> list[Any]:
    """The results of a task, in a worker process. In a list, the task is not fetched anew for each call."""
    [task] = held
    if task.hex() not in _at_work:
        if versions() != ours:
            raise KothaError(
                "a worker of the Ray cluster has {theirs}, but this machine has {ours}; install the same "
                "versions on every node, or the results would differ",
                theirs=versions(),
                ours=ours,
            )
        os.environ["TOKENIZERS_PARALLELISM"] = "false"
        _at_work.clear()
        _at_work[task.hex()] = library("ray", _NEEDED).get(task)()
    return list(map(_at_work[task.hex()], items))


class RayPool:
    """So many workers on a cluster to which this process is connected."""

    def __init__(self, ray: Any, workers: int | None) -> None:
        cores = max(1, int(ray.cluster_resources().get("CPU", 1)))
        self._ray, self.workers = ray, workers or cores
        self._share = min(1.0, cores / self.workers)  # with more workers than cores, several to a core

    def map(self, task: WorkerTask[Item, Result], items: Iterable[Item]) -> Generator[Result]:
        """The results of a task, in the order of the items."""
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
            if self._ray.is_initialized():  # else they have ended with their cluster
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
                "{n} workers of the cluster died in a row, possibly out of memory; try fewer workers",
                n=_MOST_DEATHS + 1,
            ) from error


# -- the cluster ------------------------------------------------------------------------------------------------------


@contextmanager
def pool_on_ray(on: str, workers: int | None) -> Iterator[RayPool]:
    """A worker pool on the cluster that ``on`` names; by default a worker for each of its cores."""
    address = check_address(on)
    if address is not None:
        _knock(address)
    if SCHEME not in sys.modules:  # it reads them once, as it is loaded, for itself and the processes that it starts
        for name, value in _QUIET.items():
            os.environ.setdefault(name, value)
        os.environ.update(_LOOPBACK)
        if address is None and "RAY_AUTH_MODE" not in os.environ:
            os.environ.update(RAY_AUTH_MODE="token", RAY_AUTH_TOKEN=secrets.token_hex(32))
    ray = library("ray", _NEEDED)
    if ray.is_initialized():
        if address is not None:
            raise KothaError(
                "this program is already connected to a Ray cluster; give {on} to use that one instead of {other}",
                on=Option("on", SCHEME),
                other=on,
            )
        yield RayPool(ray, workers)
        return
    # Whether it has read that it shall listen to this machine; where it no longer says so, no.
    constants = sys.modules.get("ray._private.ray_constants")
    if address is None and getattr(constants, "ENABLE_RAY_CLUSTER", True):
        raise KothaError(
            "Ray was imported before it could be restricted to this machine; start a cluster yourself with "
            "ray.init(), which is then used, or import Ray later"
        )
    with _connected(ray, address, workers):
        yield RayPool(ray, workers)


def _knock(address: str) -> None:
    """Say at once that nobody is there: Ray would try for minutes."""
    host, _, port = address.rpartition(":")
    try:
        socket.create_connection((host.strip("[]"), int(port)), timeout=_SECONDS_TO_ANSWER).close()
    except OSError as error:
        raise KothaError(
            "no answer from ray://{address} ({why}); start a cluster with `ray start --head` (default client "
            "port: 10001)",
            address=address,
            why=error.strerror or str(error),
        ) from error


@contextmanager
def _connected(ray: Any, address: str | None, workers: int | None) -> Iterator[None]:
    """Join the cluster at an address, or begin one here."""
    how: dict[str, Any] = {"log_to_driver": False, "logging_level": "ERROR"}
    # A short path: sockets are made in it.
    with nullcontext() if address else scratch_folder("kotha-ray-") as folder:
        if folder is not None:
            how |= {"num_cpus": workers or os.cpu_count() or 1, "num_gpus": 0, "object_store_memory": _SHARED_MEMORY}
            how |= {"include_dashboard": False, "_temp_dir": str(folder)}
        try:
            with _signals_kept(), warnings.catch_warnings():
                warnings.simplefilter("ignore")  # what is wrong comes as an error too
                ray.init(f"{SCHEME}://{address}" if address else "local", **how)
        except Exception as error:  # Ray raises it bare where its own processes do not begin in time
            ray.shutdown()
            raise KothaError(
                "Ray at {address} cannot be reached ({why}). If the cluster requires a token, set "
                "RAY_AUTH_MODE=token and RAY_AUTH_TOKEN. Local worker processes do the same work without Ray",
                address=address or "local",
                why=" ".join(str(error).split())[:200] or type(error).__name__,
            ) from error
        try:
            yield
        finally:
            ray.shutdown()


@contextmanager
def _signals_kept() -> Iterator[None]:
    """Ray takes SIGTERM for itself when it begins; who had it keeps it."""
    before = signal.getsignal(signal.SIGTERM)
    try:
        yield
    finally:
        with suppress(ValueError):  # not in the main thread: it has taken nothing
            signal.signal(signal.SIGTERM, before)


def end_at_once() -> None:
    """End the processes of a Ray that was begun here, for a signal that ends us: they would write on in its folder."""
    node: Any = getattr(sys.modules.get("ray._private.worker"), "_global_node", None)
    with suppress(Exception):  # whatever this Ray calls it; they end by themselves a little later
        node.kill_all_processes(check_alive=False, allow_graceful=False)
