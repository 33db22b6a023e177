"""A worker pool on a Ray cluster: actors that each hold the task, asked from here.

Ray could start dead actors again by itself. But one whose node is gone and for which no other has room would hold back
its items for ever, while others are idle. So this is done here: what a dead worker had is given to those alive, and a
new one is asked for, which takes part once it answers. State is put into the cluster once; on each node the arrays in
it are shared by all workers.
"""

import os
from collections import deque
from collections.abc import Callable, Generator, Iterable
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import kotha
from kotha.errors import DataError, KothaError
from kotha.text.parallel.task import AHEAD, MOST_DEATHS, Item, Result, WorkerTask

# A worker starts within seconds, unless the cluster is full.
_SECONDS_TO_BEGIN = 120
# What shards and tokenizers depend on, beside Kotha.
_SAME_EVERYWHERE = ("numpy", "regex", "tokenizers")


def versions() -> dict[str, str]:
    """What has to be the same here and in every worker, for the results to be the same."""
    found = {"kotha": kotha.__version__}
    for name in _SAME_EVERYWHERE:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = "unknown"
    return found


class RemoteWorker:
    """What runs in a worker process of the cluster."""

    def __init__(self, task: WorkerTask[Any, Any]) -> None:
        os.environ["TOKENIZERS_PARALLELISM"] = "false"
        self._function: Callable[[Any], Any] = task.begin()

    def begun(self) -> dict[str, str]:
        """Answer once the task is at hand."""
        return versions()

    def work(self, item: Any) -> Any:
        """The task's result for an item."""
        return self._function(item)


@dataclass(eq=False)
class _Call:
    """An item on its way, and who has it."""

    item: Any
    worker: Any = None
    answer: Any = None
    deaths: int = 0


class RayPool:
    """So many workers on a cluster to which this process is connected; they live as long as a task."""

    def __init__(self, ray: Any, workers: int, *, seconds_to_begin: float = _SECONDS_TO_BEGIN) -> None:
        self.workers = workers
        self._ray, self._seconds_to_begin = ray, seconds_to_begin

    def map(self, task: WorkerTask[Item, Result], items: Iterable[Item]) -> Generator[Result]:
        """The results of a task, in the order of the items."""
        workers = _Workers(self._ray, task, self.workers, self._seconds_to_begin)
        try:
            for item in items:
                workers.send(item)
                if len(workers.calls) > AHEAD * self.workers:
                    yield workers.next_answer()
            while workers.calls:
                yield workers.next_answer()
        finally:
            workers.shutdown()


@dataclass
class _Workers:
    """The workers of one task, and what is on its way."""

    ray: Any
    task: WorkerTask[Any, Any]
    wanted: int
    seconds_to_begin: float
    calls: deque[_Call] = field(default_factory=deque)
    ready: list[Any] = field(default_factory=list)
    beginning: dict[Any, Any] = field(default_factory=dict)  # who was asked for, by the answer that is awaited

    def __post_init__(self) -> None:
        cores = self.ray.cluster_resources().get("CPU", 1)
        share = min(1.0, cores / self.wanted)  # with more workers than cores, several to a core
        self._kind = self.ray.remote(num_cpus=share, max_restarts=0, max_task_retries=0)(RemoteWorker)
        self._task = self.ray.put(self.task)
        self._failed_starts = 0
        for _ in range(self.wanted):
            self._ask_for_one()

    def send(self, item: Any) -> None:
        """Give an item to whoever has least to do."""
        call = _Call(item)
        self.calls.append(call)
        self._give(call)

    def next_answer(self) -> Any:
        """The result of the item that was sent first."""
        first = self.calls[0]
        while True:
            try:
                result = self.ray.get(first.answer)
            except self.ray.exceptions.RayTaskError as error:
                if isinstance(error.cause, KothaError):
                    raise error.cause from None
                raise
            except (self.ray.exceptions.RayActorError, self.ray.exceptions.ObjectLostError) as error:
                first.deaths += 1
                if first.deaths > MOST_DEATHS:
                    raise DataError(
                        "{n} workers of the cluster ended early, one after the other, perhaps for lack of "
                        "memory; try fewer workers",
                        n=first.deaths,
                    ) from error
                self._make_up_for(first.worker)
            else:
                self.calls.popleft()
                return result

    def shutdown(self) -> None:
        """End all workers, whatever they are at."""
        if self.ray.is_initialized():  # else they have ended with their cluster
            for worker in [*self.ready, *self.beginning.values()]:
                self.ray.kill(worker)

    def _ask_for_one(self) -> None:
        worker = self._kind.remote(self._task)
        self.beginning[worker.begun.remote()] = worker

    def _make_up_for(self, worker: Any) -> None:
        """Give what a dead worker had to the others, in order, and ask for a new one."""
        if worker in self.ready:
            self.ready.remove(worker)
            self.ray.kill(worker)  # who merely could not be reached for a while would keep a core
            self._ask_for_one()
        for call in self.calls:
            if call.worker is worker:
                self._give(call)

    def _give(self, call: _Call) -> None:
        self._welcome()
        unfinished = [each for each in self.calls if each.answer is not None]
        if unfinished:
            answers = [each.answer for each in unfinished]
            done, _ = self.ray.wait(answers, num_returns=len(answers), timeout=0, fetch_local=False)
            unfinished = [each for each in unfinished if each.answer not in done]
        busy = [sum(each.worker is worker for each in unfinished) for worker in self.ready]
        call.worker = self.ready[busy.index(min(busy))]
        call.answer = call.worker.work.remote(call.item)

    def _welcome(self) -> None:
        """Let those take part who have begun; where nobody has, wait for the first."""
        while self.beginning:
            patience = 0 if self.ready else self.seconds_to_begin
            begun, _ = self.ray.wait(list(self.beginning), timeout=patience)
            if not begun and not self.ready:
                raise KothaError(
                    "no worker of the Ray cluster began within {seconds:g} seconds; has it a free core?",
                    seconds=self.seconds_to_begin,
                )
            if not begun:
                return
            for answer in begun:
                self._admit(answer)

    def _admit(self, answer: Any) -> None:
        worker = self.beginning.pop(answer)
        try:
            theirs = self.ray.get(answer)
        except self.ray.exceptions.RayError as error:
            self._failed_starts += 1
            if self._failed_starts > MOST_DEATHS:
                raise KothaError(
                    "workers of the Ray cluster end as they begin: {why}", why=_last_line(error)
                ) from error
            self._ask_for_one()
            return
        if theirs != versions():
            raise KothaError(
                "a worker of the Ray cluster has {theirs}, and here is {ours}; the results would "
                "differ: install the same on every node",
                theirs=_told(theirs),
                ours=_told(versions()),
            )
        self._failed_starts = 0
        self.ready.append(worker)


def _last_line(error: Exception) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[-1][:200] if lines else type(error).__name__


def _told(found: dict[str, str]) -> list[str]:
    return [f"{name} {number}" for name, number in found.items()]
