"""A server under load: many concurrent clients for a minute, compared with sequential requests and with llama.cpp.

    python benchmarks/serve_load.py [--clients 64] [--seconds 60] [--rows 32] [--beside f32,q8_0] [--model box]

The requests are a fixed list: short and long prompts, short and long texts, half of them streamed, each with its own
seed. First one client sends all of them sequentially. Then ``--clients`` clients send requests concurrently until the
time is over; each takes the next request in the list. Every text must be the same as in the sequential run. This is
repeated with int8 weights, and with ``llama-server`` (from the ``xllamacpp`` wheel) on the same model's GGUF, which
gets the same requests.

Tokens are counted as each server reports them; the first character is the first part of a stream that is not empty.
Clients and servers share the machine's cores.
"""

import argparse
import asyncio
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
sys.path[:0] = [str(ROOT / "src"), str(ROOT / "benchmarks")]

import bundled_samples  # noqa: E402
import record  # noqa: E402

LENGTHS = (16, 40, 80, 150)  # number of tokens requested
LONG_SHARE = 0.125  # share of long prompts
LLAMA = """
import sys, time, xllamacpp
file, rows, context = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
params = xllamacpp.CommonParams()
params.model.path, params.port = file, 0
params.n_parallel, params.n_ctx = rows, rows * context
params.cpuparams.n_threads = params.cpuparams_batch.n_threads = 2
server = xllamacpp.Server(params)
print(server.listening_address, flush=True)
time.sleep(1e9)
"""


@dataclass
class Answer:
    """The result of a request."""

    text: str
    tokens: int
    seconds: float
    first: float | None  # seconds to the first character of a stream


@dataclass
class Phase:
    """The results of a number of requests, and their total time."""

    answers: list[tuple[int, Answer]] = field(default_factory=list)  # each with the number of the request
    errors: list[str] = field(default_factory=list)
    seconds: float = 0.0
    memory_bytes: list[int] = field(default_factory=list)

    def figures(self) -> dict[str, Any]:
        """Return the figures for the results file."""
        firsts = sorted(each.first for _, each in self.answers if each.first is not None)
        return {
            "requests": len(self.answers),
            "errors": self.errors[:5],
            "seconds": round(self.seconds, 2),
            "tokens": sum(each.tokens for _, each in self.answers),
            "tokens_per_second": round(sum(each.tokens for _, each in self.answers) / self.seconds, 1),
            "first_letter_median_s": round(statistics.median(firsts), 3),
            "first_letter_95_s": round(firsts[int(0.95 * len(firsts))], 3),
            "memory_mb": [round(each / 1e6) for each in self.memory_bytes[:: max(1, len(self.memory_bytes) // 6)]],
        }


def requests_of(count: int, seed: int = 5) -> list[dict[str, Any]]:
    """Return the list of requests, which is the same each time."""
    chance, beginnings = random.Random(seed), bundled_samples.beginnings()
    found = []
    for number in range(count):
        prompt = chance.choice(beginnings)
        if chance.random() < LONG_SHARE:
            prompt = " ".join(chance.choice(beginnings) + "।" for _ in range(60))
        found.append(
            {
                "prompt": prompt,
                "max_tokens": chance.choice(LENGTHS),
                "seed": number,
                "temperature": 0.8,
                "top_k": 40,
                "stream": number % 2 == 0,
            }
        )
    return found


async def ask(host: str, port: int, asked: dict[str, Any]) -> Answer:
    """Send one request over one connection, with little overhead in the client, because the server is measured."""
    more = {"stream_options": {"include_usage": True}} if asked["stream"] else {}
    body = json.dumps({**asked, **more}).encode()
    head = f"POST /v1/completions HTTP/1.1\r\nHost: {host}:{port}\r\nContent-Type: application/json\r\n"
    head += f"Content-Length: {len(body)}\r\nConnection: close\r\n\r\n"
    began, first, text, usage = time.perf_counter(), None, "", None
    reader, writer = await asyncio.open_connection(host, port)
    try:
        writer.write(head.encode() + body)
        status = (await reader.readline()).split()[1].decode()
        async for line in reader:
            if line == b"\r\n":
                break
        if not asked["stream"] or status != "200":
            said = json.loads(_unchunked(await reader.read()))
            if status != "200":
                raise RuntimeError(f"{status}: {said}")
            text, usage = said["choices"][0]["text"], said["usage"]
        else:
            async for line in reader:
                if not line.startswith(b"data: {"):
                    continue
                part = json.loads(line[6:])
                if "error" in part:
                    raise RuntimeError(str(part))
                usage = part.get("usage") or usage
                for choice in part["choices"]:
                    if choice["text"] and first is None:
                        first = time.perf_counter() - began
                    text += choice["text"]
    finally:
        writer.close()
    if usage is None:
        raise RuntimeError("a stream ended without token counts")
    return Answer(text, usage["completion_tokens"], time.perf_counter() - began, first)


def _unchunked(body: bytes) -> bytes:
    """Return the body of a response, chunked or not."""
    return body[body.index(b"{") : body.rindex(b"}") + 1]


async def one_by_one(host: str, port: int, asked: list[dict[str, Any]]) -> Phase:
    """Send all requests sequentially."""
    phase, began = Phase(), time.perf_counter()
    for number, each in enumerate(asked):
        phase.answers.append((number, await ask(host, port, each)))
    phase.seconds = time.perf_counter() - began
    return phase


async def at_once(
    host: str, port: int, asked: list[dict[str, Any]], clients: int, seconds: float, process: int
) -> Phase:
    """Send requests from this number of clients until the time is over, and wait for all responses."""
    phase, began, numbers = Phase(), time.perf_counter(), iter(range(10**9))

    async def client() -> None:
        while time.perf_counter() - began < seconds:
            number = next(numbers) % len(asked)
            try:
                phase.answers.append((number, await ask(host, port, asked[number])))
            except Exception as error:
                phase.errors.append(repr(error))

    async def watch() -> None:
        while True:
            phase.memory_bytes.append(_memory(process))
            await asyncio.sleep(1)

    watching = asyncio.create_task(watch())
    await asyncio.gather(*(client() for _ in range(clients)))
    watching.cancel()
    phase.seconds = time.perf_counter() - began
    return phase


def _memory(process: int) -> int:
    pages = int(Path(f"/proc/{process}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


@contextmanager
def kotha_server(model: str, rows: int, weights: str | None) -> Iterator[tuple[str, int, int]]:
    """Start Kotha's server on a free port; returns host, port and process."""
    command = [sys.executable, "-m", "kotha", "serve", model, "--port", "0", "--rows", str(rows)]
    command += [] if weights is None else ["--weights", weights]
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=environment) as process:
        assert process.stderr is not None
        try:
            line = process.stderr.readline()
            address = next(word for word in line.split() if word.startswith("http://"))
            host, port = address.removeprefix("http://").split("/")[0].split(":")
            yield host, int(port), process.pid
        finally:
            process.terminate()


@contextmanager
def llama_server(file: Path, rows: int, context: int) -> Iterator[tuple[str, int, int]]:
    """Start llama.cpp's server on a GGUF file, with the same number of slots."""
    command = [sys.executable, "-c", LLAMA, str(file), str(rows), str(context)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        assert process.stdout is not None
        try:
            address = next(line for line in process.stdout if line.startswith("http://")).strip()
            host, port = address.removeprefix("http://").rstrip("/").split(":")
            yield host, int(port), process.pid
        finally:
            process.kill()


def measure(
    where: tuple[str, int, int], asked: list[dict[str, Any]], clients: int, seconds: float, same: bool
) -> dict[str, Any]:
    """Measure a server with sequential requests and under load."""
    host, port, process = where
    asyncio.run(one_by_one(host, port, asked[:4]))  # loads the model and allocates memory
    alone = asyncio.run(one_by_one(host, port, asked))
    load = asyncio.run(at_once(host, port, asked, clients, seconds, process))
    found: dict[str, Any] = {"one by one": alone.figures(), "at once": load.figures()}
    found["times_faster"] = round(found["at once"]["tokens_per_second"] / found["one by one"]["tokens_per_second"], 2)
    if same:
        texts = {number: answer.text for number, answer in alone.answers}
        found["texts_equal"] = sum(texts[number] == answer.text for number, answer in load.answers)
        found["texts"] = len(load.answers)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default="box")
    parser.add_argument("--clients", type=int, default=64)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--rows", type=int, default=32)
    parser.add_argument("--requests", type=int, default=96)
    parser.add_argument("--weights", default="float32,int8")
    parser.add_argument("--beside", default="f32,q8_0")
    parser.add_argument("--name", default="serve_load")
    parser.add_argument("--out", type=Path, default=record.RESULTS)
    options = parser.parse_args()
    asked = requests_of(options.requests)
    given = {"model": options.model, "repetition_penalty": 1.1}
    figures: dict[str, Any] = {"settings": {**vars(options), "out": None}}
    for weights in filter(None, options.weights.split(",")):
        with kotha_server(options.model, options.rows, weights) as where:
            ours = [{**each, **given} for each in asked]
            figures[f"kotha {weights}"] = measure(where, ours, options.clients, options.seconds, same=True)
            print(f"kotha {weights}", json.dumps(figures[f"kotha {weights}"], indent=1), flush=True)
    for kind in filter(None, options.beside.split(",")):
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "model.gguf"
            command = [sys.executable, "-m", "kotha", "export", options.model, "--to", "gguf", "--type", kind]
            environment = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
            subprocess.run([*command, "--out", str(file)], check=True, env=environment, stdout=subprocess.DEVNULL)
            with llama_server(file, options.rows, 512) as where:
                theirs = [{**each, "repeat_penalty": 1.1, "repeat_last_n": 512} for each in asked]
                figures[f"llama-server {kind}"] = measure(where, theirs, options.clients, options.seconds, same=False)
                print(f"llama-server {kind}", json.dumps(figures[f"llama-server {kind}"], indent=1), flush=True)
    record.save(options.name, figures, ["torch", "fastapi", "uvicorn", "xllamacpp"], options.out)


if __name__ == "__main__":
    main()
