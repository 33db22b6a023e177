"""Worker pools, and the one of this machine's processes; with one worker it is no process at all.

A task is made anew in each worker by something that can be pickled (a ``partial`` of a class with a tokenizer, an
index), and is then called with one item after the other. A worker pool maps a task over items: results come in the
order of the items, and only a few items are on their way at any time. So the result is the same for any number of
workers, wherever they are. Here a worker that dies ends the work.
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

# Items on their way for each worker: one at work, one waiting for it.
AHEAD = 2


# Called once in each worker; what it returns is called with each item.
WorkerTask = Callable[[], Callable[[Item], Result]]


class WorkerPool(Protocol):
    """Who does a task."""

    def map(self, task: WorkerTask[Item, Result], items: Iterable[Item]) -> Generator[Result]:
        """The results of a task, in the order of the items."""
        ...


class LocalPool:
    """So many processes here; they live as long as a task."""

    def __init__(self, workers: int) -> None:
        self.workers = workers

    def map(self, task: WorkerTask[Item, Result], items: Iterable[Item]) -> Generator[Result]:
        """The results of a task, in the order of the items."""
        if self.workers == 1:
            yield from map(task(), items)
            return
        unread, waiting = iter(items), deque[Future[Result]]()
        try:
            with _pool(self.workers, task) as pool:
                while True:
                    waiting += (_asked(pool, item) for item in islice(unread, AHEAD * self.workers + 1 - len(waiting)))
                    if not waiting:
                        return
                    yield waiting.popleft().result()
        except BrokenProcessPool as error:
            raise DataError("a worker process died, possibly out of memory; try fewer workers") from error


def _asked(pool: ProcessPoolExecutor, item: Any) -> Future[Any]:
    with _interrupt_held_back(), _script_left_alone():  # starts a worker where there are too few
        return pool.submit(_work, item)


_at_work: Callable[[Any], Any] | None = None


def _start_worker(task: WorkerTask[Any, Any]) -> None:
    global _at_work
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # where it is not held back already
    Thread(target=_end_with_parent, daemon=True).start()
    os.environ["TOKENIZERS_PARALLELISM"] = "false"
    _at_work = task()


def _work(item: Any) -> Any:
    assert _at_work is not None, "a worker was asked before it was started"
    return _at_work(item)


def _end_with_parent() -> None:
    """A worker whose parent was killed has nobody to work for."""
    parent = parent_process()
    assert parent is not None, "a worker was started by nobody"
    parent.join()
    os._exit(1)


@contextmanager
def _interrupt_held_back() -> Iterator[None]:
    """Ctrl-C is for the parent, which then ends its workers, and reaches it after this block, not within.

    A process started here never hears of it, from its first instruction on: it inherits what is held back.
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
def _script_left_alone() -> Iterator[None]:
    """A process started here does not run the caller's script again, as it otherwise would: it needs nothing of it.

    A script without ``if __name__ == "__main__":`` would start everything anew in each worker, one that came through a
    pipe cannot be found by it; both would end before reading what they are sent, and their parent wait forever.
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
    """Worker processes that end with the block: after their work, or at once where it is left early."""
    with _interrupt_held_back():
        pool = ProcessPoolExecutor(workers, get_context("spawn"), _start_worker, (task,))
    try:
        yield pool
    except BaseException:
        for process in list((pool._processes or {}).values()):
            process.kill()
        raise
    finally:
        with _interrupt_held_back():
            pool.shutdown(wait=True, cancel_futures=True)
