"""Whether a second worker helps where there are two cores: the same clients, one worker and two, in turns.

    python benchmarks/serve_workers.py [--clients 16] [--seconds 15] [--rounds 3]

The requests and the clients are those of ``serve_load.py``. One worker computes with a thread a core, two with a thread
each; the clients share the cores with them, on both sides alike. What else the machine does changes the figures, so the
two take turns, and every round is written down.
"""

import argparse
import asyncio
import os
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import record
import serve_load

WORKERS = (1, 2)
_WARM_CONNECTIONS = 12  # enough that every worker has opened the model


@contextmanager
def served(workers: int) -> Iterator[tuple[str, int, int]]:
    """A server with so many workers, each of which has written once: host, port, process."""
    command = [sys.executable, "-m", "kotha", "serve", "box", "--port", "0", "--workers", str(workers)]
    environment = {**os.environ, "PYTHONPATH": str(serve_load.ROOT / "src")}
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=environment) as process:
        assert process.stderr is not None
        try:
            line = next(line for line in process.stderr if "http://" in line)
            host, port = line.split("http://")[1].split("/")[0].split(":")
            urllib.request.urlopen(f"http://{host}:{port}/ready", timeout=120).close()
            time.sleep(5)  # the other one, if there is another
            warm = [{**each, "model": "box", "max_tokens": 1} for each in serve_load.requests_of(_WARM_CONNECTIONS)]
            for _ in range(2):
                asyncio.run(serve_load.at_once(host, int(port), warm, _WARM_CONNECTIONS, 2.0, process.pid))
            yield host, int(port), process.pid
        finally:
            process.terminate()


def main() -> None:
    asked = argparse.ArgumentParser(description=__doc__)
    asked.add_argument("--clients", type=int, default=16)
    asked.add_argument("--seconds", type=float, default=15)
    asked.add_argument("--rounds", type=int, default=3)
    options = asked.parse_args()
    requests = [{**each, "model": "box"} for each in serve_load.requests_of(400)]
    rounds: dict[str, list[dict[str, Any]]] = {str(workers): [] for workers in WORKERS}
    for _ in range(options.rounds):
        for workers in WORKERS:
            with served(workers) as (host, port, process):
                phase = asyncio.run(serve_load.at_once(host, port, requests, options.clients, options.seconds, process))
            figures = {name: value for name, value in phase.figures().items() if name != "memory_mb"}
            rounds[str(workers)].append(figures)
            print(workers, figures, file=sys.stderr, flush=True)
    record.save("serve_workers", {"clients": options.clients, "rounds_by_workers": rounds}, ["torch", "uvicorn"])


if __name__ == "__main__":
    main()
