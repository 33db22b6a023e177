"""Several processes behind one address: each has the models and a batch of its own, and one that dies is replaced.

A process that does nothing else (a supervisor) holds the socket and the workers, which take connections from it as they
come (pre-forking). It replaces what ends, in one line, while the others write on; told to stop, it lets all of them
finish first. A worker whose supervisor is gone finishes too, so that nobody keeps the port.

uvicorn has a supervisor of its own, which asks each worker in turn whether it lives and waits for the answer: it takes
one that still reads torch from a slow disk for dead, hears no signal meanwhile, and begins one that cannot begin again
and again. Here the kernel tells who ended, and a worker that never comes to serve is given up.

What the workers do not share: the batch, the queue and its limits, the remembered prompts, the weights in memory.
"""

import multiprocessing
import os
import signal
import socket
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from multiprocessing.connection import wait
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

from kotha.errors import KothaError
from kotha.server.settings import ServeSettings
from kotha.storage.status import is_folder, matching

# A worker that ended before it served is begun again after a moment, and no more often than this in a row.
_MOST_VAIN, _PAUSE_SECONDS = 3, 1.0
# What a worker takes before it has opened a model: the interpreter, torch and the server.
_BARE_WORKER_BYTES = 300 << 20
# Weights are in memory twice: the model that is looked into, and the engine's.
_COPIES = 2
_HIGHEST_DESCRIPTOR = 256
Connection = Any  # an end of a pipe, whose class is another on Windows


@dataclass(frozen=True)
class WorkerOrder:
    """What a worker needs to know; it travels through a pipe, so that a key stands in no list of processes."""

    models: tuple[str, ...]
    settings: ServeSettings
    device: str
    listening: socket.socket
    threads: int
    counters: Path  # where all of them count


@dataclass(frozen=True)
class _Worker:
    process: BaseProcess
    ready: Connection

    def has_served(self) -> bool:
        """Whether it came so far as to take requests."""
        try:
            return self.ready.poll() and bool(self.ready.recv())
        except EOFError:
            return False


def work(order: WorkerOrder, ready: Connection) -> None:
    """The whole life of a worker's process."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # until the server listens to it: the supervisor tells us
    _keep_descriptors()
    _follow_parent()
    os.environ["PROMETHEUS_MULTIPROC_DIR"] = str(order.counters)  # before the library is imported, which looks then
    import torch

    from kotha.server.app import make_app
    from kotha.server.logs import log_requests
    from kotha.server.metrics import Metrics
    from kotha.server.running import HttpServer, server_config

    torch.set_num_threads(order.threads)
    log_requests(order.settings.log_as)
    app = make_app(order.models, order.settings, order.device, Metrics(order.counters))
    server = HttpServer(server_config(app), order.settings.limits, True, lambda: ready.send(True))
    server.run(sockets=[order.listening])


def _keep_descriptors() -> None:
    """Hand nothing on to the processes of jobs: one that outlives us would hold the port, and hide that we ended."""
    for number in range(3, _HIGHEST_DESCRIPTOR):
        with suppress(OSError):
            os.set_inheritable(number, False)


def _follow_parent() -> None:
    """When the supervisor is gone, finish as if it had told us to."""
    parent = multiprocessing.parent_process()
    assert parent is not None, "a worker is begun by a supervisor"

    def follow() -> None:
        parent.join()
        os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=follow, name="kotha-parent", daemon=True).start()


class Supervisor:
    """Keeps so many workers alive until it is told to stop."""

    def __init__(self, order: WorkerOrder, say: Callable[[str], None], grace_seconds: float) -> None:
        self._order, self._say, self._grace = order, say, grace_seconds
        self._context = multiprocessing.get_context("spawn")
        self._workers: list[_Worker] = []
        self._told: list[int] = []  # signals, in the order in which they came

    def run(self) -> None:
        """Begin them all, replace who ends, and after a signal let them finish; then the signal goes on to whoever had
        it before.
        """
        with self._signals() as wake:
            try:
                self._workers = [self._begin() for _ in range(self._order.settings.workers)]
                self._watch(wake)
            finally:
                self._finish(wake)
        signal.raise_signal(self._told[0])

    def _begin(self) -> _Worker:
        ready, writer = self._context.Pipe(duplex=False)
        process = self._context.Process(target=work, args=(self._order, writer), name="kotha-worker")
        process.start()
        writer.close()  # the worker's alone now: that it is closed says that the worker ended
        return _Worker(process, ready)

    def _watch(self, wake: Connection) -> None:
        vain = 0
        while not self._told:
            wait([wake, *(worker.process.sentinel for worker in self._workers)])
            for place, worker in enumerate(self._workers):
                if self._told or worker.process.is_alive():
                    continue
                served = worker.has_served()
                vain = 0 if served else vain + 1
                ended = self._bury(worker)
                if vain >= _MOST_VAIN:
                    self._workers.remove(worker)
                    raise KothaError(f"a worker {ended} before it could serve, {vain} times in a row; see what it said")
                self._say(f"a worker {ended}; another takes its place, and the others go on")
                if not served:
                    wait([wake], _PAUSE_SECONDS)
                self._workers[place] = self._begin()

    def _bury(self, worker: _Worker) -> str:
        """How a worker ended, once nothing counts it among the living."""
        from prometheus_client.multiprocess import mark_process_dead

        worker.process.join()
        mark_process_dead(worker.process.pid, str(self._order.counters))  # type: ignore[no-untyped-call]
        code = worker.process.exitcode or 0
        return f"was ended by {signal.Signals(-code).name}" if code < 0 else f"ended with code {code}"

    def _finish(self, wake: Connection) -> None:
        """Let all finish; who does not in time, or when a second Ctrl-C comes, is killed."""
        self._order.listening.close()  # nobody waits in a queue that nobody reads
        until = time.monotonic() + self._grace
        for worker in self._workers:
            worker.process.terminate()
        while alive := [worker.process for worker in self._workers if worker.process.is_alive()]:
            in_time = wait([wake, *(process.sentinel for process in alive)], max(0.0, until - time.monotonic()))
            if not in_time or self._told[1:].count(signal.SIGINT):
                for process in alive:
                    process.kill()
                    process.join()

    @contextmanager
    def _signals(self) -> Iterator[Connection]:
        """Note the signals that end a server; what comes out can be waited for, and is ready when one came."""
        reader, writer = self._context.Pipe(duplex=False)

        def note(number: int, _: object) -> None:
            self._told.append(number)
            writer.send_bytes(b".")

        numbers = (signal.SIGTERM, signal.SIGINT)
        before = [signal.signal(number, note) for number in numbers]
        try:
            yield reader
        finally:
            for number, handler in zip(numbers, before, strict=True):
                signal.signal(number, handler)


def threads_each(workers: int, cores: int) -> int:
    """Threads for each worker's arithmetic: the cores are divided, since threads beyond them wait for one another.

    >>> threads_each(2, 8), threads_each(3, 2)
    (4, 1)
    """
    return max(1, cores // workers)


def doubts(workers: int, places: Sequence[Path], cores: int, free_bytes: int) -> list[str]:
    """What speaks against so many workers, each in a sentence; nothing where they fit.

    >>> doubts(2, [], cores=2, free_bytes=8 << 30)
    []
    """
    found = []
    if workers > cores:
        found.append(f"{workers} workers share {cores} cores, so each text takes longer; {cores} would do as much")
    each = _BARE_WORKER_BYTES + _COPIES * sum(map(_weight_bytes, places))
    if workers * each > free_bytes:
        found.append(
            f"{workers} workers may need {workers * each / 2**30:.1f} GiB with their models, and "
            f"{free_bytes / 2**30:.1f} GiB are free; {max(1, free_bytes // each)} would fit"
        )
    return found


def _weight_bytes(place: Path) -> int:
    """What a model's weights take on disk."""
    from kotha.artifacts.model_folder import RUN_MODEL  # with torch, for which a worker must not wait before it listens

    folder = place / RUN_MODEL if is_folder(place / RUN_MODEL) else place
    return sum(file.stat().st_size for file in matching(folder, "*.safetensors"))
