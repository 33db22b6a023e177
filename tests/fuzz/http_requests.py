"""HTTP requests that are passed to the server's app in this process."""

import asyncio
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from urllib.parse import unquote_to_bytes

from tests.fuzz.layers import opened


class Asker:
    """The app with a small model of each family and an index, and its event loop."""

    def __init__(self) -> None:
        from tests.fuzz.targets import seeds, write

        from kotha.server.app import guarded, make_app
        from kotha.server.settings import Limits, ServeSettings

        limits = Limits(rows=4, choices=4, prompts=4, positions=32, numbers=30_000, seconds=4.0)
        self._place = TemporaryDirectory()
        models = [write(Path(self._place.name) / name, held) for name, held in seeds("model").items()]
        index = write(Path(self._place.name) / "index", seeds("index")["plain"]) / "index.db"
        settings = ServeSettings(limits=limits, indexes=(str(index),))
        self._app = guarded(make_app([str(model) for model in models], settings, device="cpu"))
        self._loop = asyncio.new_event_loop()

    def ask(self, request: bytes) -> tuple[int, bytes]:
        """Return the status and the body of the response; 400 for requests that no HTTP parser accepts."""
        layers = opened("it.http", request)
        assert layers is not None
        line, headers, body = (layers[0][name] for name in ("line", "headers", "body.json"))
        method, _, rest = line.partition(b" ")
        address, _, _ = rest.partition(b" ")
        if not method.isalpha() or not address.startswith(b"/") or not address.isascii():
            return 400, b""
        path, _, query = address.partition(b"?")
        pairs = [each.partition(b":")[::2] for each in headers.split(b"\r\n") if b":" in each]
        scope = {
            "type": "http",
            "asgi": {"version": "3.0"},
            "http_version": "1.1",
            "method": method.decode().upper(),
            "scheme": "http",
            "path": unquote_to_bytes(path).decode("utf-8", "replace"),
            "raw_path": path,
            "query_string": query,
            "root_path": "",
            "headers": [(name.strip().lower(), value.strip()) for name, value in pairs],
            "client": ("127.0.0.1", 4),
            "server": ("127.0.0.1", 8000),
            "state": {},
        }
        return self._loop.run_until_complete(self._answer(scope, body))

    async def _answer(self, scope: dict[str, Any], body: bytes) -> tuple[int, bytes]:
        messages: list[dict[str, Any]] = []
        sent = [{"type": "http.request", "body": body, "more_body": False}]

        async def receive() -> dict[str, Any]:
            if sent:
                return sent.pop()
            await asyncio.sleep(3600)  # the client stays connected
            raise AssertionError

        async def send(message: Any) -> None:
            messages.append(message)

        await self._app(scope, receive, send)
        start = next(message for message in messages if message["type"] == "http.response.start")
        return start["status"], b"".join(message.get("body", b"") for message in messages)
