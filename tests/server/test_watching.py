"""Who has an answer finds it counted, whichever worker is asked for the figures; each is counted once."""

import asyncio
import re
from types import SimpleNamespace
from typing import Any

import pytest
from starlette.types import Message, Receive, Scope, Send

from kotha.server.watching import Metrics, RequestWatch

START = {"type": "http.response.start", "status": 200, "headers": []}
PART = {"type": "http.response.body", "body": b"a", "more_body": True}
LAST = {"type": "http.response.body", "body": b"b"}


def counted_when_sent(messages: list[Message], fails_at: int | None = None) -> tuple[list[float], dict[str, float]]:
    """How many were counted as each message left, and in the end by status."""
    metrics, seen = Metrics(SimpleNamespace(figures=dict)), []  # type: ignore[arg-type]

    def by_status() -> dict[str, float]:
        text = metrics.text().decode()
        found = re.findall(r'kotha_requests_total\{path="other",status="(\d+)"\} (\S+)', text)
        return {status: float(value) for status, value in found}

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        for place, message in enumerate(messages):
            if place == fails_at:
                raise RuntimeError("it broke")
            await send(message)

    async def send(message: Message) -> None:
        seen.append(sum(by_status().values()))

    watch: Any = RequestWatch(app, metrics, "none")
    asyncio.run(watch({"type": "http", "method": "GET"}, None, send))
    return seen, by_status()


def test_an_answer_is_counted_before_its_last_part_leaves() -> None:
    assert counted_when_sent([START, PART, PART, LAST]) == ([0, 0, 0, 1], {"200": 1})
    assert counted_when_sent([START, LAST, LAST]) == ([0, 1, 1], {"200": 1})


def test_without_an_answer_it_is_counted_too() -> None:
    assert counted_when_sent([]) == ([], {"499": 1})
    assert counted_when_sent([START, PART]) == ([0, 0], {"200": 1})
    with pytest.raises(RuntimeError, match="it broke"):
        counted_when_sent([START, PART], fails_at=1)
