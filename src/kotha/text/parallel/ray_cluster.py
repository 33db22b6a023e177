"""Reaching a Ray cluster: one of our own on this machine for as long as it is needed, or one that is there.

Nothing is reported to anyone and no dashboard is opened. A cluster of our own listens to this machine alone, asks for a
token that nobody else knows, and leaves no file behind. One that the caller's program is connected to already is used,
and left as it is.
"""

import os
import secrets
import signal
import socket
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, suppress
from typing import Any

from kotha.errors import KothaError, UsageError, library
from kotha.i18n.message import Option
from kotha.storage.atomic import scratch_folder
from kotha.text.parallel.ray_pool import RayPool

SCHEME = "ray"
_SECONDS_TO_ANSWER = 10
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
        raise UsageError(
            "{on} is no place to work; give 'ray', or 'ray://HOST:PORT' such as 'ray://head:10001'", on=Option("on", on)
        )
    return address or None


@contextmanager
def pool_on_ray(on: str, workers: int | None) -> Iterator[RayPool]:
    """A worker pool on the cluster that ``on`` names; by default a worker for each of its cores."""
    address = check_address(on)
    if address is not None:
        _knock(address)
    if SCHEME not in sys.modules:  # it reads them once, as it is loaded
        _settle(ours=address is None)
    ray = library("ray", "working on Ray needs ray: pip install 'kotha[ray]'")
    if ray.is_initialized():
        if address is not None:
            raise KothaError(
                "this program works with a Ray cluster already; {on} uses that, {other} is another",
                on=Option("on", SCHEME),
                other=on,
            )
        yield _pool_of(ray, workers)
        return
    if address is None and not _bound_to_this_machine():
        raise KothaError(
            "Ray was loaded before it could be told to listen to this machine alone; begin a cluster as you want it "
            "with ray.init(), which is then used, or load Ray later"
        )
    with _connected(ray, address, workers):
        yield _pool_of(ray, workers)


def _settle(ours: bool) -> None:
    """Ray takes its settings from the environment, for itself and for the processes that it starts."""
    for name, value in _QUIET.items():
        os.environ.setdefault(name, value)
    os.environ.update(_LOOPBACK)
    if ours and "RAY_AUTH_MODE" not in os.environ:
        os.environ.update(RAY_AUTH_MODE="token", RAY_AUTH_TOKEN=secrets.token_hex(32))


def _bound_to_this_machine() -> bool:
    """Whether Ray has read that it shall be; where it no longer says so, no."""
    constants = library("ray._private.ray_constants", "this Ray does not say where it listens; try another version")
    return getattr(constants, "ENABLE_RAY_CLUSTER", True) is False


def _pool_of(ray: Any, workers: int | None) -> RayPool:
    return RayPool(ray, workers or max(1, int(ray.cluster_resources().get("CPU", 1))))


@contextmanager
def _connected(ray: Any, address: str | None, workers: int | None) -> Iterator[None]:
    # A short path: sockets are made in it.
    with nullcontext() if address else scratch_folder("kotha-ray-") as folder:
        try:
            _reach(ray, address, workers, str(folder))
            yield
        finally:
            ray.shutdown()


def _reach(ray: Any, address: str | None, workers: int | None, folder: str) -> None:
    """Join the cluster at an address, or begin one here."""
    try:
        with _signals_kept(), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # what is wrong comes as an error too
            if address:
                ray.init(f"{SCHEME}://{address}", logging_level="ERROR", log_to_driver=False)
            else:
                _begin_here(ray, workers or os.cpu_count() or 1, folder)
    except Exception as error:  # Ray raises it bare where its own processes do not begin in time
        if not address:
            raise KothaError(
                "Ray on this machine could not be reached ({why}); try again, or leave it out: the processes of this "
                "machine do the same",
                why=_short(error),
            ) from error
        raise KothaError(
            "Ray at {address} could not be reached ({why}); does it ask for a token? Ray takes "
            "RAY_AUTH_MODE=token and RAY_AUTH_TOKEN",
            address=address,
            why=_short(error),
        ) from error


def end_at_once() -> None:
    """End the processes of a Ray that was begun here, for a signal that ends us: they would write on in its folder."""
    node: Any = getattr(sys.modules.get("ray._private.worker"), "_global_node", None)
    with suppress(Exception):  # whatever this Ray calls it; they end by themselves a little later
        node.kill_all_processes(check_alive=False, allow_graceful=False)


def _begin_here(ray: Any, cores: int, folder: str) -> None:
    ray.init(
        "local",
        num_cpus=cores,
        num_gpus=0,
        object_store_memory=_SHARED_MEMORY,
        include_dashboard=False,
        log_to_driver=False,
        logging_level="ERROR",
        _temp_dir=folder,
    )


def _knock(address: str) -> None:
    """Say at once that nobody is there: Ray would try for minutes."""
    host, _, port = address.rpartition(":")
    try:
        socket.create_connection((host.strip("[]"), int(port)), timeout=_SECONDS_TO_ANSWER).close()
    except OSError as error:
        raise KothaError(
            "nobody answers at ray://{address} ({why}); `ray start` with a head begins a cluster, "
            "and its clients' port is 10001 unless it was told another",
            address=address,
            why=error.strerror or str(error),
        ) from error


@contextmanager
def _signals_kept() -> Iterator[None]:
    """Ray takes SIGTERM for itself when it begins; who had it keeps it."""
    before = signal.getsignal(signal.SIGTERM)
    try:
        yield
    finally:
        with suppress(ValueError):  # not in the main thread: it has taken nothing
            signal.signal(signal.SIGTERM, before)


def _short(error: Exception) -> str:
    return " ".join(str(error).split())[:200] or type(error).__name__
