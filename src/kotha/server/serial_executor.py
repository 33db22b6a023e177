"""Run blocking work in a thread, one task at a time; for work that must not overlap, such as passes with hooks.

Queued tasks wait in the event loop and do not occupy a thread. A thread cannot be stopped from outside, so if the
client disconnects or the time is up, the request ends at once, but the work stops only at its next progress report or
when it is done. The server's limits bound all work, so every task gets its turn. Long-running work can yield to waiting
tasks each time it reports progress.
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
    """Return the error for a request that exceeds the time limit."""
    return RefusedError(
        "the request took longer than {seconds:,.0f} s and was cancelled; send a smaller request", 504, seconds=seconds
    )


class _GivenUpError(Exception):
    """Raised in the thread to stop work whose request has ended."""


@dataclass(frozen=True)
class ProgressResponse:
    """The progress of a task."""

    stage: str
    done: int
    total: int


class SerialExecutor:
    """Runs one task at a time; ``how_far`` is the progress of the running task."""

    def __init__(self) -> None:
        self.how_far: ProgressResponse | None = None
        self._turn, self._held, self._waiting = asyncio.Lock(), False, 0
        self._shared: dict[str, asyncio.Task[Any]] = {}
        self._closing = asyncio.Event()

    def close(self) -> None:
        """End all requests, because the server is shutting down."""
        self._closing.set()

    async def run_shared(self, request: Request, seconds: float, work: Callable[[], T]) -> T:
        """Run ``work`` in a thread when its turn comes; concurrent requests for the same URL share the result."""
        key = str(request.url)

        def done(task: "asyncio.Task[Any]") -> None:
            del self._shared[key]
            if not task.cancelled():
                task.exception()  # retrieved, even if all clients have disconnected

        if key not in self._shared:
            self._shared[key] = asyncio.create_task(self._execute(work))
            self._shared[key].add_done_callback(done)

        async def shared() -> T:
            return await asyncio.shield(self._shared[key])

        return await while_wanted(request, seconds, shared(), self._closing)

    async def run(
        self, request: Request, seconds: float, work: Callable[[OnProgress], T], *, shares: bool = False
    ) -> T:
        """Run ``work`` in a thread when its turn comes, and stop it at a progress report if the request has ended.

        If ``shares``, waiting tasks run at each progress report; the work must not have hooks in a model at that point.
        """
        cancelled, loop = threading.Event(), asyncio.get_running_loop()
        progress: ProgressResponse | None = None

        def on_progress(stage: Text, done: int, total: int) -> None:
            nonlocal progress
            if cancelled.is_set():
                raise _GivenUpError
            if stage:
                progress = self.how_far = ProgressResponse(str(stage), done, total)
                if shares and self._waiting:
                    asyncio.run_coroutine_threadsafe(self._yield_turn(), loop).result()
                    self.how_far = progress

        def begin() -> T:
            try:
                on_progress("", 0, 1)  # the request may have ended before a thread was free
                return work(on_progress)
            finally:
                if self.how_far is progress:
                    self.how_far = None

        try:
            return await while_wanted(request, seconds, self._execute(begin), self._closing)
        finally:
            cancelled.set()

    async def _execute(self, work: Callable[[], T]) -> T:
        await self._acquire()
        thread = asyncio.get_running_loop().run_in_executor(None, work)
        thread.add_done_callback(self._over)  # when the thread ends, even if the request has ended before
        return await asyncio.shield(thread)

    async def _acquire(self) -> None:
        self._waiting += 1
        try:
            await self._turn.acquire()
        finally:
            self._waiting -= 1
        self._held = True

    def _release(self) -> None:
        if self._held:  # not if the server stopped during _yield_turn
            self._held = False
            self._turn.release()

    async def _yield_turn(self) -> None:
        self._release()
        await self._acquire()

    def _over(self, thread: "asyncio.Future[Any]") -> None:
        self._release()
        if not thread.cancelled():
            thread.exception()  # retrieved, or asyncio would log that it never was


async def while_wanted(
    request: Request, seconds: float, work: Coroutine[Any, Any, T], closing: asyncio.Event | None = None
) -> T:
    """Await ``work``; cancel it and raise RefusedError if the client disconnects, or on a time limit or ``closing``."""

    async def disconnected() -> None:
        while (await request.receive())["type"] != "http.disconnect":
            pass

    working, leaving = asyncio.ensure_future(work), asyncio.ensure_future(disconnected())
    ending = asyncio.ensure_future((closing or asyncio.Event()).wait())
    try:
        done, _ = await asyncio.wait({working, leaving, ending}, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        if not done:
            raise too_long(seconds)
        if not working.done() and ending.done():
            raise RefusedError("the server is shutting down; try again later", 503)
        if not working.done():
            raise RefusedError("the client disconnected", 499)
        return await working
    finally:
        working.cancel()
        leaving.cancel()
        ending.cancel()
