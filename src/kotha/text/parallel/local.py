"""The worker pool interface, and the pool of local processes; a pool with one worker runs in this process.

A task is a picklable factory (such as a ``partial`` of a class with a tokenizer or an index). Each worker calls the
factory once, and then calls the returned function for each item. A pool maps a task over items. Results are in the
order of the items, so they do not depend on the number or location of workers, and only a few items are in flight at
any time. If a local worker dies, an error is raised.
"""

import os
import signal
import sys
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from itertools import islice
from multiprocessing import get_context, parent_process
from threading import Thread
from typing import Any, Protocol, TypeVar

from kotha.errors import DataError

Item = TypeVar("Item")
Result = TypeVar("Result")

# Items in flight per worker: one in progress, one queued.
AHEAD = 2


# Called once in each worker; the returned function is called for each item.
WorkerTask = Callable[[], Callable[[Item], Result]]


class WorkerPool(Protocol):
    """Maps a task over items with a fixed number of workers."""

    def map(self, task: WorkerTask[Item, Result], items: Iterable[Item]) -> Generator[Result]:
        """Yield the results of a task, in the order of the items."""
        ...


class LocalPool:
    """A fixed number of local processes, started for each task."""

    def __init__(self, workers: int) -> None:
        self.workers = workers

    def map(self, task: WorkerTask[Item, Result], items: Iterable[Item]) -> Generator[Result]:
        """Yield the results of a task, in the order of the items."""
        if self.workers == 1:
            yield from map(task(), items)
            return
        unread, waiting = iter(items), deque[Future[Result]]()
        try:
            with _pool(self.workers, task) as pool:
                while True:
                    waiting += (_submit(pool, item) for item in islice(unread, AHEAD * self.workers + 1 - len(waiting)))
                    if not waiting:
                        return
                    yield waiting.popleft().result()
        except BrokenProcessPool as error:
            raise DataError("a worker process died, possibly out of memory; try fewer workers") from error


def _submit(pool: ProcessPoolExecutor, item: Any) -> Future[Any]:
    with _interrupts_blocked(), _main_script_hidden():  # submit may start a worker process
        return pool.submit(_work, item)


_task: Callable[[Any], Any] | None = None


def _start_worker(task: WorkerTask[Any, Any]) -> None:
    global _task
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # unless it is already blocked
    Thread(target=_exit_with_parent, daemon=True).start()
    os.environ["TOKENIZERS_PARALLELISM"] = "false"
    _task = task()


def _work(item: Any) -> Any:
    assert _task is not None, "a worker received an item before it was initialized"
    return _task(item)


def _exit_with_parent() -> None:
    """End the worker process if its parent is killed."""
    parent = parent_process()
    assert parent is not None, "a worker has no parent process"
    parent.join()
    os._exit(1)


@contextmanager
def _interrupts_blocked() -> Iterator[None]:
    """Delay SIGINT until the end of the block; the parent process handles it and then ends its workers.

    Processes started in the block inherit the signal mask, so they never receive SIGINT.
    """
    if sys.platform == "win32":
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


@contextmanager
def _main_script_hidden() -> Iterator[None]:
    """Keep processes started in the block from importing the caller's main script, which they do not need.

    Otherwise a script without ``if __name__ == "__main__":`` would start again in each worker, and a script read from a
    pipe would not be found. The workers would exit before reading their items, and the parent would hang.
    """
    script = vars(sys.modules["__main__"])
    hidden: dict[str, Any] = {name: script[name] for name in ("__file__", "__spec__") if name in script}
    script.update(dict.fromkeys(hidden))
    try:
        yield
    finally:
        script.update(hidden)


@contextmanager
def _pool(workers: int, task: WorkerTask[Any, Any]) -> Iterator[ProcessPoolExecutor]:
    """Worker processes that exit at the end of the block, or immediately if the block raises an exception."""
    with _interrupts_blocked():
        pool = ProcessPoolExecutor(workers, get_context("spawn"), _start_worker, (task,))
    try:
        yield pool
    except BaseException:
        for process in list((pool._processes or {}).values()):
            process.kill()
        raise
    finally:
        with _interrupts_blocked():
            pool.shutdown(wait=True, cancel_futures=True)
