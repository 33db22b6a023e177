"""The batcher: fairness between clients, full queues, cancellation, errors, shutdown."""

import asyncio
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from tests.generation.conftest import tiny

from kotha.errors import KothaError, UsageError
from kotha.generation.engine import Engine
from kotha.generation.request import Request
from kotha.generation.settings import SamplingSettings
from kotha.server.app import make_app
from kotha.server.batching import Batcher
from kotha.server.errors import RefusedError

DRAWN = SamplingSettings(seed=1)


def engine(rows: int = 1) -> Engine:
    return Engine(tiny("modern", context_length=32, vocab_size=30), None, max_batch=rows)


def ask(tokens: int = 4, token: int = 3) -> Request:
    return Request(prompt=(token,), tokens=tokens, settings=DRAWN)


def held(batcher: Batcher) -> threading.Event:
    """Make the engine wait for the gate before each step."""
    gate, step = threading.Event(), batcher.engine.step

    def waiting() -> Any:
        gate.wait(20)
        return step()

    batcher.engine.step = waiting  # type: ignore[method-assign]
    return gate


async def eventually(holds: Callable[[], bool]) -> None:
    for _ in range(1000):
        if holds():
            return
        await asyncio.sleep(0.01)
    raise AssertionError("it did not come to that")


def test_clients_take_turns() -> None:
    async def run() -> list[str]:
        batcher, order = Batcher(engine(), 100, 50), []
        gate = held(batcher)

        async def wait(client: str) -> None:
            await batcher.submit(ask(2), client).result()
            order.append(client)

        waiting = [asyncio.create_task(wait(client)) for client in ["many"] * 4 + ["other"]]
        await eventually(lambda: batcher.n_waiting + batcher.n_at_work == 5)
        gate.set()
        await asyncio.gather(*waiting)
        batcher.close(10)
        return order

    order = asyncio.run(run())
    assert order.index("other") <= 2, order  # behind the running request, not behind all earlier ones


def test_a_full_queue_is_rejected_at_once_for_one_client_only() -> None:
    async def run() -> None:
        batcher = Batcher(engine(), 4, 2)
        gate = held(batcher)
        tickets = [batcher.submit(ask(), "one")]
        await eventually(lambda: batcher.n_at_work == 1)
        tickets += [batcher.submit(ask(), "one") for _ in range(2)]
        with pytest.raises(RefusedError, match="2 of your texts are already waiting") as caught:
            batcher.submit(ask(), "one")
        assert caught.value.status == 429
        tickets += [batcher.submit(ask(), "two"), batcher.submit(ask(), "three")]
        with pytest.raises(RefusedError, match="4 texts are already waiting") as caught:
            batcher.submit(ask(), "four")
        assert caught.value.status == 503
        gate.set()
        assert all([(await ticket.result()).tokens == 4 for ticket in tickets])
        batcher.close(10)

    asyncio.run(run())


def test_cancelling_frees_the_row_or_the_queue_at_once() -> None:
    async def run() -> None:
        batcher = Batcher(engine(), 10, 10)
        at_work, waiting, last = (
            batcher.submit(ask(10**6), "a"),
            batcher.submit(ask(10**6), "a"),
            batcher.submit(ask(), "a"),
        )
        await eventually(lambda: batcher.n_at_work == 1)
        waiting.cancel()
        assert batcher.n_waiting == 1
        at_work.cancel()
        assert (await asyncio.wait_for(last.result(), 20)).tokens == 4
        await eventually(lambda: batcher.n_at_work == 0)
        at_work.cancel()  # a second call has no effect
        batcher.close(10)

    asyncio.run(run())


def test_broken_weights_fail_the_request_and_not_the_thread() -> None:
    async def run() -> None:
        batcher = Batcher(engine(2), 10, 10)
        head = batcher.engine.model.head.weight
        whole = head.detach().clone()
        with torch.no_grad():
            head.fill_(float("nan"))
        with pytest.raises(KothaError, match="activations overflow or are NaN"):
            await batcher.submit(ask(), "a").result()
        with pytest.raises(UsageError, match="outside the vocabulary"):
            await batcher.submit(ask(token=99), "a").result()
        with torch.no_grad():
            head.copy_(whole)
        assert (await batcher.submit(ask(), "a").result()).tokens == 4
        assert batcher.n_at_work == 0
        batcher.close(10)

    asyncio.run(run())


def test_closing_finishes_accepted_requests_and_accepts_no_more() -> None:
    async def run() -> None:
        batcher = Batcher(engine(), 10, 10)
        gate = held(batcher)
        tickets = [batcher.submit(ask(), "a") for _ in range(3)]
        closing = asyncio.create_task(asyncio.to_thread(batcher.close, 20))
        await eventually(lambda: batcher._closing)
        with pytest.raises(RefusedError, match="the server is shutting down"):
            batcher.submit(ask(), "b")
        gate.set()
        assert [(await ticket.result()).tokens for ticket in tickets] == [4, 4, 4]
        await closing
        assert not batcher._thread.is_alive()

    asyncio.run(run())


def test_shutdown_waits_for_texts_in_a_thread(models: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The text can finish only if the event loop keeps running, as with streams that release their models."""
    monkeypatch.setattr("kotha.server.app._DRAIN_SECONDS", 15.0)  # less than the engine's wait for the gate
    app = make_app([str(models / "plain")], device="cpu")
    shelf = app.state.kotha.registry

    async def run() -> int:
        async with app.router.lifespan_context(app):
            async with shelf.use("plain") as served:
                batcher = served.batcher
            gate, ticket = held(batcher), batcher.submit(ask(), "somebody")

            async def read() -> int:
                await eventually(lambda: batcher._closing)
                gate.set()
                return int((await ticket.result()).tokens)

            reading = asyncio.create_task(read())
        assert not batcher._thread.is_alive() and not shelf.opened
        return await reading

    assert asyncio.run(run()) == 4


def test_rows_are_shared_and_a_paused_text_is_resumed_unchanged() -> None:
    """One client fills all rows with long texts; another client's short texts finish first, and no text changes."""
    long = [Request(prompt=(3 + place,), tokens=40, settings=SamplingSettings(seed=place)) for place in range(6)]
    short = [Request(prompt=(9,), tokens=2, settings=SamplingSettings(seed=place)) for place in range(3)]
    alone = [engine().generate([request])[0].ids for request in long + short]

    async def run() -> tuple[list[str], list[Any]]:
        batcher, order = Batcher(engine(4), 100, 50), []
        gate = held(batcher)

        async def wait(request: Request, client: str) -> Any:
            result = await batcher.submit(request, client).result()
            order.append(client)
            return result.ids

        first = [asyncio.create_task(wait(request, "many")) for request in long]
        await eventually(lambda: batcher.n_at_work == 4)
        others = [asyncio.create_task(wait(request, "other")) for request in short]
        await eventually(lambda: batcher.n_waiting == 5)
        gate.set()
        found = await asyncio.gather(*first, *others)
        batcher.close()
        return order, found

    order, found = asyncio.run(run())
    assert order[:3] == ["other"] * 3
    assert found == alone


def test_a_paused_request_can_be_cancelled() -> None:
    async def run() -> None:
        batcher = Batcher(engine(2), 100, 50)
        gate = held(batcher)
        gate.set()
        first = [batcher.submit(ask(10_000), "many") for _ in range(2)]
        await eventually(lambda: batcher.n_at_work == 2)
        other = batcher.submit(ask(10_000), "other")
        await eventually(lambda: batcher.n_waiting == 1 and other.number is not None)
        for ticket in (*first, other):
            ticket.cancel()
        await eventually(lambda: not batcher.n_at_work and not batcher.n_waiting and not batcher.engine.busy)
        assert await batcher.submit(ask(1), "many").result()
        batcher.close()

    asyncio.run(run())
