"""Work that takes a thread and must not meet itself, such as hooks in a model: one at a time, the others wait.

Who waits does so in the event loop and holds no thread, so that a hundred who wait for one model leave others their
threads. A thread cannot be stopped from outside; where whoever asked has left, or it took too long, the answer is given
at once, and the turn ends when the work next looks up, or is done. All work behind it is bounded by the limits, so
that the turn always comes. What takes a minute may share its turn: each time it tells how far it is, whoever waits
goes first.
"""

import asyncio
import threading
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Any, TypeVar

from fastapi import Request

from kotha.i18n.message import OnProgress, Text
from kotha.server.errors import RefusedError

T = TypeVar("T")


def too_long(seconds: float) -> RefusedError:
    """What was asked for took longer than any request may."""
    return RefusedError(
        "the request took longer than {seconds:,.0f} s and was cancelled; request less", 504, seconds=seconds
    )


class _GivenUpError(Exception):
    """Raised in the thread; nobody listens any more."""


@dataclass(frozen=True)
class HowFar:
    """How far a piece of work is, in its own words."""

    stage: str
    done: int
    total: int


class SerialExecutor:
    """Takes one piece of work at a time; ``how_far`` is what the last told of itself, while it is at work."""

    def __init__(self) -> None:
        self.how_far: HowFar | None = None
        self._turn, self._held, self._waiting = asyncio.Lock(), False, 0

    async def run(
        self, request: Request, seconds: float, work: Callable[[OnProgress], T], *, shares: bool = False
    ) -> T:
        """Do some work in a thread when its turn has come; it may tell how far it is, and is then stopped in time.

        ``shares``: others may have the turn whenever it tells so; nothing of it may be left in a model at that moment.
        """
        given_up, loop = threading.Event(), asyncio.get_running_loop()
        mine: HowFar | None = None

        def look_up(stage: Text, done: int, total: int) -> None:
            nonlocal mine
            if given_up.is_set():
                raise _GivenUpError
            if stage:
                mine = self.how_far = HowFar(str(stage), done, total)
                if shares and self._waiting:
                    asyncio.run_coroutine_threadsafe(self._let_others(), loop).result()
                    self.how_far = mine

        def begin() -> T:
            try:
                look_up("", 0, 1)  # threads may be few, and who asked have left before one was free
                return work(look_up)
            finally:
                if self.how_far is mine:
                    self.how_far = None

        try:
            return await while_wanted(request, seconds, self._execute(begin))
        finally:
            given_up.set()

    async def _execute(self, work: Callable[[], T]) -> T:
        await self._acquire()
        thread = asyncio.get_running_loop().run_in_executor(None, work)
        thread.add_done_callback(self._over)  # when the thread ends, and not when nobody waits for it any more
        return await asyncio.shield(thread)

    async def _acquire(self) -> None:
        self._waiting += 1
        try:
            await self._turn.acquire()
        finally:
            self._waiting -= 1
        self._held = True

    def _release(self) -> None:
        if self._held:  # not where the server stopped while others had the turn
            self._held = False
            self._turn.release()

    async def _let_others(self) -> None:
        self._release()
        await self._acquire()

    def _over(self, thread: "asyncio.Future[Any]") -> None:
        self._release()
        if not thread.cancelled():
            thread.exception()  # looked at, or the loop would complain that nobody has


async def while_wanted(request: Request, seconds: float, work: Coroutine[Any, Any, T]) -> T:
    """What comes of some work, unless the client leaves before, or it takes too long: then it is cancelled."""

    async def gone() -> None:
        while (await request.receive())["type"] != "http.disconnect":
            pass

    working, leaving = asyncio.ensure_future(work), asyncio.ensure_future(gone())
    try:
        done, _ = await asyncio.wait({working, leaving}, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        if not done:
            raise too_long(seconds)
        if not working.done():
            raise RefusedError("the client disconnected", 499)
        return await working
    finally:
        working.cancel()
        leaving.cancel()
