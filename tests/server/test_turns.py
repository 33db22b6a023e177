"""The serial executor: one task at a time, time limits, and slots that are always released."""

import asyncio
import threading
from typing import Any

import pytest
from tests.generation.conftest import tiny
from tests.text.conftest import trained

from kotha.api.model import LanguageModel
from kotha.artifacts.model_folder import Bundle
from kotha.inside.heads.importance import every_head, silence
from kotha.server import model_registry
from kotha.server.errors import RefusedError
from kotha.server.model_registry import ServedModel
from kotha.server.serial_executor import ProgressResponse, SerialExecutor
from kotha.server.settings import Limits


class Asking:
    """A request whose client stays connected until the test disconnects it."""

    def __init__(self) -> None:
        self.leaves = asyncio.Event()

    async def receive(self) -> dict[str, str]:
        await self.leaves.wait()
        return {"type": "http.disconnect"}


def test_tasks_run_one_at_a_time_and_return_their_results() -> None:
    async def run() -> list[Any]:
        turns, at_work, most = SerialExecutor(), [0], [0]

        def work(number: int) -> int:
            at_work[0] += 1
            most[0] = max(most[0], at_work[0])
            threading.Event().wait(0.02)
            at_work[0] -= 1
            return number

        asked = [turns.run(Asking(), 20, lambda _, number=number: work(number)) for number in range(5)]  # type: ignore[arg-type, misc]
        return [await asyncio.gather(*asked), most[0]]

    assert asyncio.run(run()) == [[0, 1, 2, 3, 4], 1]


def test_an_error_is_raised_and_the_turn_released() -> None:
    async def run() -> str:
        turns = SerialExecutor()

        def broken(_: Any) -> str:
            raise ValueError("broken")

        with pytest.raises(ValueError, match="broken"):
            await turns.run(Asking(), 20, broken)  # type: ignore[arg-type]
        return await turns.run(Asking(), 20, lambda _: "next")  # type: ignore[arg-type]

    assert asyncio.run(run()) == "next"


@pytest.mark.parametrize("leaves", [True, False])
def test_disconnect_and_timeout_end_the_request_at_once_and_release_the_turn(leaves: bool) -> None:
    async def run() -> None:
        turns, began, looks = SerialExecutor(), threading.Event(), []

        def endless(look_up: Any) -> None:
            began.set()
            while True:  # until no request is waiting
                look_up("", 0, 1)
                looks.append(1)
                threading.Event().wait(0.01)

        request = Asking()
        working = asyncio.create_task(turns.run(request, 20 if leaves else 0.1, endless))  # type: ignore[arg-type]
        waiting = asyncio.create_task(turns.run(Asking(), 20, lambda _: "next"))  # type: ignore[arg-type]
        await asyncio.to_thread(began.wait, 20)
        if leaves:
            request.leaves.set()
        with pytest.raises(RefusedError, match="disconnected" if leaves else "took longer"):
            await working
        assert await asyncio.wait_for(waiting, 20) == "next"

    asyncio.run(run())


def test_a_client_that_disconnects_while_waiting_takes_no_turn() -> None:
    async def run() -> None:
        turns, gate, done = SerialExecutor(), threading.Event(), []
        first = asyncio.create_task(turns.run(Asking(), 20, lambda _: gate.wait(20)))  # type: ignore[arg-type]
        await asyncio.sleep(0.05)
        request = Asking()
        second = asyncio.create_task(turns.run(request, 20, lambda _: done.append(1)))  # type: ignore[arg-type]
        await asyncio.sleep(0.05)
        request.leaves.set()
        with pytest.raises(RefusedError, match="disconnected"):
            await second
        gate.set()
        await first
        assert await turns.run(Asking(), 20, lambda _: "next") == "next" and not done  # type: ignore[arg-type]

    asyncio.run(run())


@pytest.mark.parametrize("shares", [True, False])
def test_shared_work_lets_waiting_tasks_go_first(shares: bool) -> None:
    async def run() -> list[str]:
        turns, began, result = SerialExecutor(), threading.Event(), []

        def long(tell: Any) -> str:
            for done in range(20):
                result.append(f"long {done}")
                began.set()
                threading.Event().wait(0.02)
                tell("looking", done + 1, 20)
            return "done"

        working = asyncio.create_task(turns.run(Asking(), 20, long, shares=shares))  # type: ignore[arg-type]
        await asyncio.to_thread(began.wait, 20)
        await turns.run(Asking(), 20, lambda _: result.append("short"))  # type: ignore[arg-type]
        assert await working == "done"
        assert await turns.run(Asking(), 20, lambda _: "next") == "next"  # type: ignore[arg-type]
        return result

    assert (asyncio.run(run())[-1] == "short") is not shares


def test_progress_is_reported_while_work_runs() -> None:
    async def run() -> None:
        turns, result, go_on = SerialExecutor(), threading.Event(), threading.Event()

        def work(tell: Any) -> None:
            tell("looking", 3, 8)
            result.set()
            go_on.wait(20)

        working = asyncio.create_task(turns.run(Asking(), 20, work))  # type: ignore[arg-type]
        await asyncio.to_thread(result.wait, 20)
        assert turns.how_far == ProgressResponse("looking", 3, 8)
        go_on.set()
        await working
        assert turns.how_far is None

    asyncio.run(run())


def test_a_client_that_leaves_shared_work_releases_the_turn() -> None:
    async def run() -> None:
        turns, request, began = SerialExecutor(), Asking(), threading.Event()

        def endless(tell: Any) -> None:
            began.set()
            while True:
                tell("looking", 1, 2)
                threading.Event().wait(0.005)

        working = asyncio.create_task(turns.run(request, 20, endless, shares=True))  # type: ignore[arg-type]
        await asyncio.to_thread(began.wait, 20)
        others = [asyncio.create_task(turns.run(Asking(), 20, lambda _: "other")) for _ in range(5)]  # type: ignore[arg-type]
        request.leaves.set()
        with pytest.raises(RefusedError, match="disconnected"):
            await working
        assert await asyncio.wait_for(asyncio.gather(*others), 20) == ["other"] * 5
        assert await turns.run(Asking(), 20, lambda _: "next") == "next"  # type: ignore[arg-type]

    asyncio.run(run())


@pytest.mark.parametrize("shared", [True, False])
def test_hooks_never_affect_the_batch(shared: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """If the batch generates with the model's own weights, as on a GPU, inspection uses a copy."""
    if shared:
        monkeypatch.setattr(model_registry, "stored_weights", lambda _: None)
    model = tiny("modern", context_length=32)
    served = ServedModel("x", LanguageModel(Bundle(model, trained("unigram"))), Limits(rows=1))
    assert served.batcher is not None
    written_with = served.batcher.engine.model
    assert (written_with is model) is shared
    before = served.n_bytes
    assert served.apart.model is not written_with
    assert (served.n_bytes > before) is shared
    with silence(served.apart.model, every_head(model)[:1]):
        assert not any(module._forward_hooks for module in written_with.modules())
    served.close(5)
