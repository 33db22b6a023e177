"""Worker pools: processes on this machine, or workers in a Ray cluster."""

from collections.abc import Iterator
from contextlib import contextmanager

from kotha.errors import UsageError
from kotha.i18n.message import Option
from kotha.text.parallel.local import LocalPool, WorkerPool
from kotha.text.parallel.ray_cluster import check_address, pool_on_ray


def check_workers(on: str | None, workers: int | None) -> None:
    """Raise a UsageError if the location or the number of workers is invalid."""
    if workers is not None and workers < 1:
        raise UsageError("{workers} is too small; use 1 or more", workers=Option("workers", workers))
    if on is not None:
        check_address(on)


@contextmanager
def worker_pool(on: str | None, workers: int | None, local_workers: int = 1) -> Iterator[WorkerPool]:
    """Open a pool of processes on this machine (None), or on a Ray cluster (``ray`` or ``ray://HOST:PORT``).

    ``workers`` defaults to one per core on a cluster, and to ``local_workers`` on this machine.
    """
    if on is None:
        yield LocalPool(workers or local_workers)
        return
    with pool_on_ray(on, workers) as pool:
        yield pool
