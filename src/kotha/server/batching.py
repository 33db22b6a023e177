"""Continuous batching: one engine serves many clients, and requests join and leave the batch between steps.

Each client has its own queue, and the queues are served in turn, so a client with many requests delays only itself. The
rows in the batch are shared in the same way: if one client has more than its share while another waits, its newest text
is paused and resumed later, with the same result. Queues are bounded; if a queue is full, the request is rejected at
once. Text is sent as it is generated. When a client disconnects, its row is freed before the next step.
"""

import asyncio
import threading
from collections import Counter, OrderedDict, deque
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass

from kotha.generation.engine import Engine
from kotha.generation.request import GeneratedToken, Request, Result
from kotha.server.errors import RefusedError
from kotha.server.metrics import TOKENS


@dataclass(frozen=True)
class StreamChunk:
    """Text generated since the previous chunk; the last chunk also holds the result."""

    text: str
    result: Result | None = None
    written: tuple[GeneratedToken, ...] = ()  # the tokens, if probabilities were requested


class Ticket:
    """A request in the batch: an async iterator over its chunks; several tickets may share one ``news`` queue."""

    def __init__(self, batcher: "Batcher", request: Request, client: str, news: "News | None" = None) -> None:
        self.request, self.client = request, client
        self.number: int | None = None  # the request's number in the engine, once submitted
        self.paused = False  # was started, and waits in its queue again
        self.cancelled = False
        self._batcher, self._loop = batcher, asyncio.get_running_loop()
        self._news: News = news or asyncio.Queue()

    async def __aiter__(self) -> AsyncIterator[StreamChunk]:
        async for _, chunk in letters([self], self._news):
            yield chunk

    async def result(self) -> Result:
        """Wait for the complete result."""
        return [chunk.result async for chunk in self if chunk.result is not None][-1]

    def cancel(self) -> None:
        """Cancel the request if it is still running."""
        self._batcher.cancel(self)

    def publish(self, news: StreamChunk | Exception) -> None:
        """Put a chunk or an error into the queue; called from the engine's thread."""
        self._loop.call_soon_threadsafe(self._news.put_nowait, (self, news))


News = asyncio.Queue[tuple[Ticket, StreamChunk | Exception]]


async def letters(tickets: Sequence[Ticket], news: News) -> AsyncIterator[tuple[int, StreamChunk]]:
    """Yield chunks for tickets that share a queue, each with the ticket's index, until every ticket has a result."""
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
    """Runs an engine in its own thread."""

    def __init__(self, engine: Engine, most_waiting: int, most_waiting_for_one: int, name: str = "") -> None:
        self.engine, self._name = engine, name
        self._most, self._most_for_one = most_waiting, most_waiting_for_one
        self._waiting: OrderedDict[str, deque[Ticket]] = (
            OrderedDict()
        )  # a queue per client; the next client's turn is first
        self._begun: dict[int, Ticket] = {}  # submitted to the engine
        self._to_cancel: list[Ticket] = []
        self._changed = threading.Condition()
        self._closing = False
        self._thread = threading.Thread(target=self._run, name="kotha-batch", daemon=True)
        self._thread.start()

    # -- called by the server -----------------------------------------------------------------------------------------

    def submit(self, request: Request, client: str, news: News | None = None) -> Ticket:
        """Queue a request; raises RefusedError if too many are waiting."""
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
                raise RefusedError("the server is shutting down; try again later", 503, code="queue_full")
            self._waiting.setdefault(client, deque()).append(ticket)
            self._changed.notify()
        return ticket

    def cancel(self, ticket: Ticket) -> None:
        """Remove a request from its queue, or from the engine before its next step."""
        with self._changed:
            ticket.cancelled = True
            queue = self._waiting.get(ticket.client, deque())
            if ticket in queue:
                queue.remove(ticket)
                if not queue:
                    del self._waiting[ticket.client]
            if ticket.number in self._begun:
                self._to_cancel.append(ticket)
                self._changed.notify()

    @property
    def n_waiting(self) -> int:
        """The number of requests that wait for a row."""
        return sum(map(len, self._waiting.values()))

    @property
    def n_at_work(self) -> int:
        """The number of requests that are generating."""
        return sum(not ticket.paused for ticket in list(self._begun.values()))

    def close(self, seconds: float | None = None) -> None:
        """Stop accepting requests, finish those already accepted (for at most ``seconds``), and end the thread."""
        with self._changed:
            self._closing = True
            self._changed.notify()
        self._thread.join(seconds)

    # -- called by the thread ----------------------------------------------------------------------------------------

    def _run(self) -> None:
        while self._update_batch():
            try:
                events = self.engine.step()
            except Exception as error:  # damaged weights or no memory: fail these requests, but keep serving
                self._drop_all(error)
                continue
            for event in events:
                ticket = self._begun.get(event.number)
                if event.result is not None:
                    self._begun.pop(event.number, None)
                    TOKENS.labels(self._name).inc(event.result.tokens)
                if ticket is not None:
                    ticket.publish(StreamChunk(event.text, event.result, event.written))

    def _update_batch(self) -> bool:
        """Remove cancelled requests and fill free rows from the queues, client by client; return False at the end."""
        with self._changed:
            self._changed.wait_for(lambda: self._waiting or self._to_cancel or self.engine.busy or self._closing)
            for ticket in self._to_cancel:
                assert ticket.number is not None, "only submitted requests are cancelled here"
                self._begun.pop(ticket.number, None)
                self.engine.cancel(ticket.number)
            self._to_cancel.clear()
            taken = [self._next() for _ in range(min(self.engine.n_free, self.n_waiting))]
            if self._waiting and not taken:
                taken = self._preempt()
            over = self._closing and not taken and not self.engine.busy
        for ticket in taken:
            try:
                number = ticket.number
                if number is None:
                    number = self.engine.submit(ticket.request)
                else:
                    self.engine.resume(number)
            except Exception as error:  # a prompt that this model cannot tokenize
                ticket.publish(error)
                continue
            with self._changed:
                ticket.number, ticket.paused, self._begun[number] = number, False, ticket
                if ticket.cancelled:  # while it was being submitted
                    self._to_cancel.append(ticket)
        return not over

    def _next(self, client: str | None = None) -> Ticket:
        """Take the first waiting request of a client (default: the client whose turn it is)."""
        client = next(iter(self._waiting)) if client is None else client
        queue = self._waiting[client]
        ticket = queue.popleft()
        self._waiting.move_to_end(client)
        if not queue:
            del self._waiting[client]
        return ticket

    def _preempt(self) -> list[Ticket]:
        """Pause a text from the client with the most rows, and return the request that takes its row, if any."""
        running = {number: ticket.client for number, ticket in self._begun.items() if not ticket.paused}
        rows = Counter(running.values())
        share = max(1, len(running) // len(rows.keys() | self._waiting.keys()))
        client = next((each for each in self._waiting if rows[each] < share), None)
        ((most, count),) = rows.most_common(1) or [("", 0)]
        if client is None or count <= share:
            return []
        newest = max(number for number in running if running[number] == most)
        if not self.engine.pause(newest):  # its prompt is still being read
            return []
        ticket = self._begun[newest]
        ticket.paused = True
        self._waiting.setdefault(most, deque()).appendleft(ticket)
        return [self._next(client)]

    def _drop_all(self, error: Exception) -> None:
        """Report an error to all requests in the batch; paused ones are resumed later."""
        with self._changed:
            dropped = {number: ticket for number, ticket in self._begun.items() if not ticket.paused}
            for number in dropped:
                del self._begun[number]
        for number, ticket in dropped.items():
            self.engine.cancel(number)
            ticket.publish(error)
