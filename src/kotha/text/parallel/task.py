"""What a worker pool is given to do, and what it promises.

A task is made anew in each worker from a state that can be pickled (a tokenizer, an index), and is then called with one
item after the other. A worker pool maps a task over items: results come in the order of the items, only a few items
are on their way at any time, and whoever dies on the way is made up for. So the result is the same for any number of
workers, wherever they are.
"""

from collections.abc import Callable, Generator, Iterable
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")

# An item whose workers have died this often, one after the other, is held to be the cause.
MOST_DEATHS = 3
# Items on their way for each worker: one at work, one waiting for it.
AHEAD = 2


@dataclass(frozen=True)
class WorkerTask(Generic[Item, Result]):
    """``make(*state)`` is called once in each worker; what it returns is called with each item."""

    make: Callable[..., Callable[[Item], Result]]
    state: tuple[Any, ...] = ()

    def begin(self) -> Callable[[Item], Result]:
        """The function that does the task, in the process that asks."""
        return self.make(*self.state)


class WorkerPool(Protocol):
    """Who does a task."""

    def map(self, task: WorkerTask[Item, Result], items: Iterable[Item]) -> Generator[Result]:
        """The results of a task, in the order of the items."""
        ...
