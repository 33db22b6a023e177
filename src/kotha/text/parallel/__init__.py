"""A worker pool for one task after the other: processes on this machine, or on a Ray cluster where one is named."""

from collections.abc import Iterator
from contextlib import contextmanager

from kotha.errors import UsageError
from kotha.i18n.message import Option
from kotha.text.parallel.local import LocalPool, WorkerPool
from kotha.text.parallel.ray_cluster import check_address, pool_on_ray


def check_workers(on: str | None, workers: int | None) -> None:
    """Refuse a place that cannot be one, and a pool without workers."""
    if workers is not None and workers < 1:
        raise UsageError("{workers}: give at least 1", workers=Option("workers", workers))
    if on is not None:
        check_address(on)


@contextmanager
def worker_pool(on: str | None, workers: int | None, here: int = 1) -> Iterator[WorkerPool]:
    """The pool that ``on`` names: None for this machine's processes, ``ray`` or ``ray://HOST:PORT``.

    By default a cluster gives a worker for each core, and this machine ``here`` of them.
    """
    if on is None:
        yield LocalPool(workers or here)
        return
    with pool_on_ray(on, workers) as pool:
        yield pool
