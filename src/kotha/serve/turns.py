"""Work that takes a thread and must not meet itself, such as hooks in a model: one at a time, the others wait.

Who waits does so in the event loop and holds no thread, so that a hundred who wait for one model leave others their
threads. A thread cannot be stopped from outside; where whoever asked has left, or it took too long, the answer is given
at once, and the turn ends when the work next looks up, or is done. All work behind it is bounded by the limits, so
that the turn always comes.
"""

import asyncio
import threading
from collections.abc import Callable
from typing import Any, TypeVar

from fastapi import Request

from kotha.errors import KothaError
from kotha.wording import OnProgress

T = TypeVar("T")


class TooLongError(KothaError):
    """What was asked for took longer than any request may."""


class ClientLeftError(KothaError):
    """Nobody waits for the answer any more."""


class _GivenUpError(Exception):
    """Raised in the thread; nobody listens any more."""


class OneAtATime:
    """Takes one piece of work at a time."""

    def __init__(self) -> None:
        self._turn = asyncio.Lock()

    async def take(self, request: Request, seconds: float, work: Callable[[OnProgress], T]) -> T:
        """Do some work in a thread when its turn has come; it may tell how far it is, and is then stopped in time."""
        given_up = threading.Event()

        def look_up(_stage: str, _done: int, _total: int) -> None:
            if given_up.is_set():
                raise _GivenUpError

        def begin() -> T:
            look_up("", 0, 1)  # threads may be few, and who asked have left before one was free
            return work(look_up)

        working, leaving = asyncio.ensure_future(self._run(begin)), asyncio.ensure_future(gone(request))
        try:
            done, _ = await asyncio.wait({working, leaving}, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
            if not done:
                raise TooLongError(f"this took longer than {seconds:,.0f} s, and was given up; ask for less")
            if not working.done():
                raise ClientLeftError("the client has left")
            return await working
        finally:
            given_up.set()
            working.cancel()
            leaving.cancel()

    async def _run(self, work: Callable[[], T]) -> T:
        await self._turn.acquire()
        thread = asyncio.get_running_loop().run_in_executor(None, work)
        thread.add_done_callback(self._over)  # when the thread ends, and not when nobody waits for it any more
        return await asyncio.shield(thread)

    def _over(self, thread: "asyncio.Future[Any]") -> None:
        self._turn.release()
        if not thread.cancelled():
            thread.exception()  # looked at, or the loop would complain that nobody has


async def gone(request: Request) -> None:
    """Wait until whoever asked has left."""
    while (await request.receive())["type"] != "http.disconnect":
        pass
