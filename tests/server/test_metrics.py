"""Each response is counted once, before the client receives it."""

import asyncio
from typing import Any

import pytest
from prometheus_client import REGISTRY
from starlette.types import Message, Receive, Scope, Send

from kotha.server.metrics import RequestWatch

START = {"type": "http.response.start", "status": 200, "headers": []}
PART = {"type": "http.response.body", "body": b"a", "more_body": True}
LAST = {"type": "http.response.body", "body": b"b"}


def counted(status: str) -> float:
    return REGISTRY.get_sample_value("kotha_requests_total", {"path": "other", "status": status}) or 0.0


@pytest.mark.parametrize(
    ("messages", "fails_at", "status", "seen"),
    [
        ([START, PART, PART, LAST], None, "200", [0, 0, 0, 1]),
        ([START, LAST, LAST], None, "200", [0, 1, 1]),
        ([], None, "499", []),
        ([START, PART], None, "200", [0, 0]),
        ([START, PART], 1, "200", [0]),
    ],
)
def test_an_answer_is_counted_once_and_before_its_last_part_is_sent(
    messages: list[Message], fails_at: int | None, status: str, seen: list[float]
) -> None:
    before, found = counted(status), []

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        for place, message in enumerate(messages):
            if place == fails_at:
                raise RuntimeError("it broke")
            await send(message)

    async def send(message: Message) -> None:
        found.append(counted(status) - before)

    watch: Any = RequestWatch(app)
    try:
        asyncio.run(watch({"type": "http", "method": "GET"}, None, send))
    except RuntimeError:
        assert fails_at is not None
    assert found == seen and counted(status) - before == 1
