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
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass

from kotha.generation.engine import Engine
from kotha.generation.request import Request, Result, Written
from kotha.server.errors import RefusedError
from kotha.server.metrics import TOKENS


@dataclass(frozen=True)
class StreamChunk:
    """What was written since the last time; with the last of them comes the result."""

    text: str
    result: Result | None = None
    written: tuple[Written, ...] = ()  # the tokens, where probabilities were asked for


class Ticket:
    """A request that was taken: its letters, as they come; several may share one queue of ``news``."""

    def __init__(self, batcher: "Batcher", request: Request, client: str, news: "News | None" = None) -> None:
        self.request, self.client = request, client
        self.number: int | None = None  # the engine's, once it has it
        self.rests = False  # whether it was begun, and waits again in its queue
        self.left = False  # whether nobody wants it any more
        self._batcher, self._loop = batcher, asyncio.get_running_loop()
        self._news: News = news or asyncio.Queue()

    async def __aiter__(self) -> AsyncIterator[StreamChunk]:
        async for _, chunk in letters([self], self._news):
            yield chunk

    async def result(self) -> Result:
        """The whole answer."""
        return [chunk.result async for chunk in self if chunk.result is not None][-1]

    def cancel(self) -> None:
        """Let go of it; nothing happens where it has ended."""
        self._batcher.cancel(self)

    def publish(self, news: StreamChunk | Exception) -> None:
        """From the engine's thread: hand something over."""
        self._loop.call_soon_threadsafe(self._news.put_nowait, (self, news))


News = asyncio.Queue[tuple[Ticket, StreamChunk | Exception]]


async def letters(tickets: Sequence[Ticket], news: News) -> AsyncIterator[tuple[int, StreamChunk]]:
    """What comes to tickets that share a queue, each with its place among them, until all have their results."""
    unfinished = len(tickets)
    try:
        while unfinished:
            ticket, chunk = await news.get()
            if isinstance(chunk, Exception):
                raise chunk
            unfinished -= chunk.result is not None
            yield tickets.index(ticket), chunk
    finally:
        for ticket in tickets:
            ticket.cancel()


class Batcher:
    """Drives an engine from a thread of its own."""

    def __init__(self, engine: Engine, most_waiting: int, most_waiting_for_one: int, name: str = "") -> None:
        self.engine, self._name = engine, name
        self._most, self._most_for_one = most_waiting, most_waiting_for_one
        self._waiting: OrderedDict[str, deque[Ticket]] = OrderedDict()  # a queue a client, whose turn is next first
        self._begun: dict[int, Ticket] = {}  # what the engine has
        self._leaving: list[Ticket] = []
        self._changed = threading.Condition()
        self._closing = False
        self._thread = threading.Thread(target=self._run, name="kotha-batch", daemon=True)
        self._thread.start()

    # -- from the server's side -------------------------------------------------------------------------------------

    def submit(self, request: Request, client: str, news: News | None = None) -> Ticket:
        """Take a request, or refuse it because too many wait."""
        ticket = Ticket(self, request, client, news)
        with self._changed:
            queue = self._waiting.get(client, ())
            if len(queue) >= self._most_for_one:
                full = "{n:,} of your texts are already waiting; try again when some are done"
                raise RefusedError(full, 429, code="queue_full", n=len(queue))
            if self.n_waiting >= self._most:
                full = "{n:,} texts are already waiting; try again in a moment"
                raise RefusedError(full, 503, code="queue_full", n=self.n_waiting)
            if self._closing:
                raise RefusedError("the server is shutting down; try again when it is back", 503, code="queue_full")
            self._waiting.setdefault(client, deque()).append(ticket)
            self._changed.notify()
        return ticket

    def cancel(self, ticket: Ticket) -> None:
        """Forget a request, wherever it is."""
        with self._changed:
            ticket.left = True
            queue = self._waiting.get(ticket.client, deque())
            if ticket in queue:
                queue.remove(ticket)
                if not queue:
                    del self._waiting[ticket.client]
            if ticket.number in self._begun:
                self._leaving.append(ticket)
                self._changed.notify()

    @property
    def n_waiting(self) -> int:
        """Requests that wait for a row."""
        return sum(map(len, self._waiting.values()))

    @property
    def n_at_work(self) -> int:
        """Requests that are being written."""
        return sum(not ticket.rests for ticket in list(self._begun.values()))

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
            except Exception as error:  # broken weights, no memory: who is being written to is told, and others go on
                self._drop_all(error)
                continue
            for event in events:
                ticket = self._begun.get(event.number)
                if event.result is not None:
                    self._begun.pop(event.number, None)
                    TOKENS.labels(self._name).inc(event.result.tokens)
                if ticket is not None:
                    ticket.publish(StreamChunk(event.text, event.result, event.written))

    def _hand_over(self) -> bool:
        """Let go of who left, and give free rows to who waits, a client after the other; False when all is over."""
        with self._changed:
            self._changed.wait_for(lambda: self._waiting or self._leaving or self.engine.busy or self._closing)
            for ticket in self._leaving:
                assert ticket.number is not None, "the engine has what leaves it"
                self._begun.pop(ticket.number, None)
                self.engine.cancel(ticket.number)
            self._leaving.clear()
            taken = [self._next() for _ in range(min(self.engine.n_free, self.n_waiting))]
            if self._waiting and not taken:
                taken = self._shared_out()
            over = self._closing and not taken and not self.engine.busy
        for ticket in taken:
            try:
                number = ticket.number
                if number is None:
                    number = self.engine.submit(ticket.request)
                else:
                    self.engine.resume(number)
            except Exception as error:  # a prompt that this model cannot read
                ticket.publish(error)
                continue
            with self._changed:
                ticket.number, ticket.rests, self._begun[number] = number, False, ticket
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
        at_work = {number: ticket.client for number, ticket in self._begun.items() if not ticket.rests}
        rows = Counter(at_work.values())
        share = max(1, len(at_work) // len(rows.keys() | self._waiting.keys()))
        client = next((each for each in self._waiting if rows[each] < share), None)
        ((most, count),) = rows.most_common(1) or [("", 0)]
        if client is None or count <= share:
            return []
        newest = max(number for number in at_work if at_work[number] == most)
        if not self.engine.pause(newest):  # its prompt is still being read
            return []
        ticket = self._begun[newest]
        ticket.rests = True
        self._waiting.setdefault(most, deque()).appendleft(ticket)
        return [self._next(client)]

    def _drop_all(self, error: Exception) -> None:
        """Tell all that are being written what went wrong; who rests goes on later."""
        with self._changed:
            dropped = {number: ticket for number, ticket in self._begun.items() if not ticket.rests}
            for number in dropped:
                del self._begun[number]
        for number, ticket in dropped.items():
            self.engine.cancel(number)
            ticket.publish(error)
