"""One engine for many clients: a thread that lets requests join and leave the running batch between two steps.

Requests wait in a queue of their own for each client, and the clients take turns: who sends a hundred at once waits
behind himself, not before others. Rows are shared likewise: where one client has more than his share and another waits,
the newest of his texts is put back into his queue and goes on later, as if nothing had been. The queue is bounded; what
finds it full is told so at once. Letters go to whoever
asked for them as they are written; a client that leaves frees its place before the next step.
"""

import asyncio
import threading
from collections import Counter, OrderedDict, deque
from collections.abc import AsyncIterator
from dataclasses import dataclass

from kotha.errors import KothaError
from kotha.generation.answers import Request, Result, Written
from kotha.generation.engine import Engine


class QueueFullError(KothaError):
    """There is no place to wait."""

    status, code = 503, "queue_full"


class OwnQueueFullError(QueueFullError):
    """… for one client; others would still find one."""

    status = 429


@dataclass(frozen=True)
class StreamChunk:
    """What was written since the last time; with the last of them comes the result."""

    text: str
    result: Result | None = None
    written: tuple[Written, ...] = ()  # the tokens, where probabilities were asked for


class Ticket:
    """A request that was taken: its letters, as they come."""

    def __init__(self, batcher: "Batcher", request: Request, client: str) -> None:
        self.request, self.client = request, client
        self.number: int | None = None  # the engine's, once it has it
        self.left = False  # whether nobody wants it any more
        self._batcher = batcher
        self._loop = asyncio.get_running_loop()
        self._news: asyncio.Queue[StreamChunk | Exception] = asyncio.Queue()

    async def __aiter__(self) -> AsyncIterator[StreamChunk]:
        try:
            while True:
                news = await self._news.get()
                if isinstance(news, Exception):
                    raise news
                yield news
                if news.result is not None:
                    return
        finally:
            self.cancel()

    async def result(self) -> Result:
        """The whole answer."""
        async for letters in self:
            if letters.result is not None:
                return letters.result
        raise AssertionError("a ticket ends with a result")

    def cancel(self) -> None:
        """Let go of it; nothing happens where it has ended."""
        self._batcher.cancel(self)

    def publish(self, news: StreamChunk | Exception) -> None:
        """From the engine's thread: hand something over."""
        self._loop.call_soon_threadsafe(self._news.put_nowait, news)


class Batcher:
    """Drives an engine from a thread of its own."""

    def __init__(self, engine: Engine, most_waiting: int, most_waiting_for_one: int) -> None:
        self.engine = engine
        self._most, self._most_for_one = most_waiting, most_waiting_for_one
        self._waiting: OrderedDict[str, deque[Ticket]] = OrderedDict()  # a queue a client, whose turn is next first
        self._at_work: dict[int, Ticket] = {}
        self._put_aside: dict[int, Ticket] = {}  # begun, and waiting again in their queues
        self._leaving: list[Ticket] = []
        self._changed = threading.Condition()
        self._closing = False
        self.tokens_written = 0
        self._thread = threading.Thread(target=self._run, name="kotha-batch", daemon=True)
        self._thread.start()

    # -- from the server's side -------------------------------------------------------------------------------------

    def submit(self, request: Request, client: str) -> Ticket:
        """Take a request, or refuse it because too many wait."""
        ticket = Ticket(self, request, client)
        with self._changed:
            queue = self._waiting.get(client, ())
            if len(queue) >= self._most_for_one:
                raise OwnQueueFullError("{n:,} of your texts wait already; ask again when some are done", n=len(queue))
            if self.n_waiting >= self._most:
                raise QueueFullError("{n:,} texts wait already; ask again in a moment", n=self.n_waiting)
            if self._closing:
                raise QueueFullError("the server is stopping; ask again when it is back")
            self._waiting.setdefault(client, deque()).append(ticket)
            self._changed.notify()
        return ticket

    def cancel(self, ticket: Ticket) -> None:
        """Forget a request, wherever it is."""
        with self._changed:
            ticket.left = True
            queue = self._waiting.get(ticket.client)
            if queue is not None and ticket in queue:
                queue.remove(ticket)
                if not queue:
                    del self._waiting[ticket.client]
            elif ticket.number not in self._at_work:
                return
            if ticket.number is not None:  # the engine has it, at work or put back
                self._leaving.append(ticket)
                self._changed.notify()

    @property
    def n_waiting(self) -> int:
        """Requests that wait for a row."""
        return sum(map(len, self._waiting.values()))

    @property
    def n_at_work(self) -> int:
        """Requests that are being written."""
        return len(self._at_work)

    def close(self, seconds: float | None = None) -> None:
        """Finish what was taken, take nothing more, and end the thread; what is not done in time is dropped."""
        with self._changed:
            self._closing = True
            self._changed.notify()
        self._thread.join(seconds)

    # -- the thread's side ------------------------------------------------------------------------------------------

    def _run(self) -> None:
        while self._hand_over():
            try:
                events = self.engine.step()
            except (
                Exception
            ) as error:  # broken weights, no memory: whoever is being written to is told, and others go on
                self._drop_all(error)
                continue
            for event in events:
                ticket = self._at_work.get(event.number) or self._put_aside.get(event.number)
                if event.result is not None:
                    self._at_work.pop(event.number, None)
                    self.tokens_written += event.result.tokens
                if ticket is not None:
                    ticket.publish(StreamChunk(event.text, event.result, event.written))

    def _hand_over(self) -> bool:
        """Let go of who left, and give free rows to who waits, a client after the other; False when all is over."""
        with self._changed:
            self._changed.wait_for(lambda: self._waiting or self._leaving or self.engine.busy or self._closing)
            for ticket in self._leaving:
                if ticket.number is not None:
                    for held in (self._at_work, self._put_aside):
                        held.pop(ticket.number, None)
                    self.engine.cancel(ticket.number)
            self._leaving.clear()
            taken = [self._next() for _ in range(min(self.engine.n_free, self.n_waiting))]
            if self._waiting and not taken:
                taken = self._shared_out()
            over = self._closing and not taken and not self.engine.busy
        for ticket in taken:
            if ticket.number is not None:
                self.engine.resume(ticket.number)
                with self._changed:
                    self._at_work[ticket.number] = self._put_aside.pop(ticket.number)
                    if ticket.left:
                        self._leaving.append(ticket)
                continue
            try:
                number = self.engine.submit(ticket.request, streams=True)
            except Exception as error:  # a prompt that this model cannot read
                ticket.publish(error)
                continue
            with self._changed:
                ticket.number, self._at_work[number] = number, ticket
                if ticket.left:  # between its turn and now
                    self._leaving.append(ticket)
        return not over

    def _next(self, client: str | None = None) -> Ticket:
        """The first that waits, of the client whose turn it is."""
        client = next(iter(self._waiting)) if client is None else client
        queue = self._waiting[client]
        ticket = queue.popleft()
        self._waiting.move_to_end(client)
        if not queue:
            del self._waiting[client]
        return ticket

    def _shared_out(self) -> list[Ticket]:
        """Who gets the row of a client with more than a share: the first that waits and has less; maybe nobody."""
        rows = Counter(ticket.client for ticket in self._at_work.values())
        share = max(1, len(self._at_work) // len(rows.keys() | self._waiting.keys()))
        most, count = max(rows.items(), key=lambda item: item[1], default=("", 0))
        client = next((each for each in self._waiting if rows[each] < share), None)
        if client is None or count <= share:
            return []
        newest = max(number for number, ticket in self._at_work.items() if ticket.client == most)
        if not self.engine.pause(newest):  # its prompt is still being read
            return []
        ticket = self._at_work.pop(newest)
        self._put_aside[newest] = ticket
        self._waiting.setdefault(most, deque()).appendleft(ticket)
        return [self._next(client)]

    def _drop_all(self, error: Exception) -> None:
        with self._changed:
            dropped, self._at_work = self._at_work, {}
        for number, ticket in dropped.items():
            self.engine.cancel(number)
            ticket.publish(error)
