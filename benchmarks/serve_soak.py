"""Run a server for a long time: thousands of requests of all kinds, many of them interrupted, some of them invalid.

    python benchmarks/serve_soak.py [--requests 10000] [--minutes 20] [--model box]

A quarter of the streaming clients disconnect after the first characters, and one request in six is invalid in one of
many ways. The resources of the server process (memory, descriptors, threads) are recorded while it is idle, after a
warm-up and at the end. A fixed request is sent repeatedly, and its first and last response times are reported.
"""

import argparse
import asyncio
import json
import random
import statistics
import sys
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
sys.path[:0] = [str(ROOT / "src"), str(ROOT / "benchmarks")]

import record  # noqa: E402
from serve_load import kotha_server  # noqa: E402

CUT_SHARE, BAD_SHARE = 0.25, 1 / 6
WARM_SHARE = 0.1  # share of the requests during which memory may still grow
WORDS = [
    "নদী",
    "গ্রাম",
    "আকাশ",
    "মা",
    "বাবা",
    "ছেলেটি",
    "মেয়েটি",
    "পাখি",
    "একদিন",
    "সকালে",
    "রাতে",
    "বৃষ্টি",
    "স্কুলে",
    "বাজারে",
    "গল্প",
]
BAD: list[tuple[str, bytes, int]] = [
    ("/v1/completions", b"{", 400),
    ("/v1/completions", b'{"model": "nobody", "prompt": "x"}', 404),
    ("/v1/completions", b'{"model": "MODEL", "prompt": "\\ud800"}', 400),
    ("/v1/completions", b'{"model": "MODEL", "prompt": "x", "max_tokens": 99999999}', 400),
    ("/v1/completions", b'{"model": "MODEL", "prompt": "x", "temperature": NaN}', 400),
    ("/v1/completions", b"[" * 20_000, 400),
    ("/v1/completions", b'{"model": "MODEL", "prompt": "' + "ক".encode() * 30_000 + b'"}', 400),
    ("/v1/chat/completions", b'{"model": "MODEL", "messages": []}', 400),
    ("/api/read", b'{"model": "MODEL", "prompt": [-1]}', 400),
    ("/nowhere", b"{}", 404),
]


@dataclass(frozen=True)
class Holding:
    """The resources of an idle process."""

    memory_bytes: int
    descriptors: int
    threads: int


def holding(process: int) -> Holding:
    """Return the resources that a process currently uses."""
    place = Path(f"/proc/{process}")
    fields = dict(line.split(":\t", 1) for line in (place / "status").read_text().splitlines() if ":\t" in line)
    memory = int(fields["VmRSS"].split()[0]) * 1024
    return Holding(memory, len(list((place / "fd").iterdir())), int(fields["Threads"]))


class Soak:
    """Clients that send requests of all kinds, and the results."""

    def __init__(self, host: str, port: int, process: int, model: str, seed: int = 1) -> None:
        self._host, self._port, self._process, self._model = host, port, process, model
        self._chance = random.Random(seed)
        self.done, self.cut, self.refused = 0, 0, 0
        self.wrong: list[str] = []  # unexpected responses
        self.probes: list[float] = []  # seconds that the fixed request took each time

    async def run(self, requests: int, seconds: float, clients: int = 16) -> dict[str, Any]:
        """Send this number of requests over this time; return the server's resources before and after."""
        warm = round(WARM_SHARE * requests)
        await self._some(warm, WARM_SHARE * seconds, clients)
        before = await self._at_rest()
        await self._some(requests - warm, (1 - WARM_SHARE) * seconds, clients)
        after = await self._at_rest()
        few = max(1, len(self.probes) // 10)
        return {
            "requests": self.done,
            "cut_off": self.cut,
            "refused_as_they_should": self.refused,
            "wrong": self.wrong[:5],
            "before": asdict(before),
            "after": asdict(after),
            "first_probes_ms": round(1000 * statistics.median(self.probes[:few]), 1),
            "last_probes_ms": round(1000 * statistics.median(self.probes[-few:]), 1),
        }

    async def _some(self, requests: int, seconds: float, clients: int) -> None:
        began, numbers = time.monotonic(), iter(range(requests))

        async def client() -> None:
            for number in numbers:
                await asyncio.sleep(max(0.0, began + seconds * number / requests - time.monotonic()))
                await self._one(number)

        await asyncio.gather(*(client() for _ in range(clients)))

    async def _one(self, number: int) -> None:
        try:
            if self._chance.random() < BAD_SHARE:
                await self._bad()
            elif number % 20 == 0:
                await self._probe()
            else:
                await self._good()
        except Exception as error:
            self.wrong.append(repr(error))
        self.done += 1

    async def _good(self) -> None:
        prompt = " ".join(self._chance.choices(WORDS, k=self._chance.randint(1, 10)))
        asked: dict[str, Any] = {"model": self._model}
        kind = self._chance.choice(["completions", "completions", "completions", "chat", "embeddings", "logits"])
        tokens = self._chance.choice([1, 8, 24, 60])
        if kind == "completions":
            path, asked = "/v1/completions", {**asked, "prompt": prompt, "max_tokens": tokens, "stream": True}
        elif kind == "chat":
            said = [{"role": "user", "content": prompt}]
            path, asked = "/v1/chat/completions", {**asked, "messages": said, "max_tokens": tokens}
        elif kind == "embeddings":
            path, asked = "/v1/embeddings", {**asked, "input": [prompt, "নদী"]}
        else:
            path, asked = "/api/logits", {**asked, "prompt": prompt}
        leaves = kind == "completions" and self._chance.random() < 2 * CUT_SHARE  # half of all requests are streams
        status, body = await self._ask(path, json.dumps(asked).encode(), leaves)
        self.cut += leaves
        if status != 200 or (not leaves and kind == "completions" and b"data: [DONE]" not in body):
            raise ValueError(f"{path}: {status} {body[-300:]!r}")

    async def _bad(self) -> None:
        path, body, expected = self._chance.choice(BAD)
        status, said = await self._ask(path, body.replace(b"MODEL", self._model.encode()), False)
        if status != expected or b'"message"' not in said:
            raise ValueError(f"{path} {body[:60]!r}: {status} {said[:300]!r}")
        self.refused += 1

    async def _probe(self) -> None:
        asked = {"model": self._model, "prompt": "নদী", "max_tokens": 8, "seed": 1}
        began = time.perf_counter()
        status, said = await self._ask("/v1/completions", json.dumps(asked).encode(), False)
        self.probes.append(time.perf_counter() - began)
        if status != 200:
            raise ValueError(f"the probe: {status} {said[:300]!r}")

    async def _ask(self, path: str, body: bytes, leaves: bool) -> tuple[int, bytes]:
        reader, writer = await asyncio.open_connection(self._host, self._port)
        try:
            head = f"POST {path} HTTP/1.1\r\nHost: {self._host}:{self._port}\r\nContent-Type: application/json\r\n"
            writer.write(f"{head}Content-Length: {len(body)}\r\nConnection: close\r\n\r\n".encode() + body)
            async with asyncio.timeout(120):
                status = int((await reader.readline()).split()[1])
                return status, await (reader.readuntil(b"data: ") if leaves else reader.read())
        finally:
            writer.close()

    async def _at_rest(self) -> Holding:
        """Return the server's resources once no text is being generated and every connection is closed."""
        seen = [holding(self._process)]
        for _ in range(60):
            await asyncio.sleep(0.25)
            seen.append(holding(self._process))
            if len({each.descriptors for each in seen[-4:]}) == 1 and len(seen) > 8:
                break
        return seen[-1]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default="box")
    parser.add_argument("--requests", type=int, default=10_000)
    parser.add_argument("--minutes", type=float, default=20.0)
    parser.add_argument("--name", default="serve_soak")
    parser.add_argument("--out", type=Path, default=record.RESULTS)
    options = parser.parse_args()
    with kotha_server(options.model, 32, None) as (host, port, process):
        soak = Soak(host, port, process, options.model)
        figures = asyncio.run(soak.run(options.requests, 60 * options.minutes))
    print(json.dumps(figures, indent=1))
    record.save(options.name, figures, ["torch", "fastapi", "uvicorn"], options.out)


if __name__ == "__main__":
    main()
