"""`kotha serve --workers`: who is killed is replaced and costs the others nothing; all are counted, and all drain."""

import json
import os
import re
import secrets
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.loopback import http

from kotha.errors import KothaError, UsageError
from kotha.server import workers
from kotha.server.jobs.job import PROCESS
from kotha.server.running import listen
from kotha.server.settings import ServeSettings
from kotha.server.workers import Supervisor, WorkerOrder, doubts, threads_each

LONG = {"model": "plain", "prompt": "মা", "max_tokens": 4000, "stream": True, "temperature": 1.0, "seed": 1}
SHORT = {"model": "plain", "prompt": "মা", "max_tokens": 2}


@dataclass
class Running:
    """A server with workers, and what it has said."""

    process: subprocess.Popen[str]
    url: str
    key: str
    jobs: Path
    said: list[str] = field(default_factory=list)

    @property
    def workers(self) -> list[int]:
        pid, found = self.process.pid, []
        for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split():
            with suppress(FileNotFoundError):  # dead since
                if b"spawn_main" in Path(f"/proc/{child}/cmdline").read_bytes():
                    found.append(int(child))
        return found

    @property
    def let_in(self) -> dict[str, str]:
        return {"authorization": f"Bearer {self.key}"}

    def ask(self, **asked: Any) -> httpx.Response:
        return http.post(f"{self.url}/v1/completions", json={**SHORT, **asked}, headers=self.let_in, timeout=60)

    def count(self, name: str) -> float:
        text = http.get(f"{self.url}/metrics", headers=self.let_in, timeout=60).text
        return sum(float(line.rpartition(" ")[2]) for line in text.splitlines() if line.startswith(name))

    def stream(self) -> Any:
        return http.stream("POST", f"{self.url}/v1/completions", json=LONG, headers=self.let_in, timeout=60)

    def connections(self, clients: set[int]) -> dict[int, list[int]]:
        """Which of these clients' ports each worker speaks with: it holds the other end."""
        lines = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
        ports = {f"socket:[{line[9]}]": int(line[2].rpartition(":")[2], 16) for line in lines if line[9] != "0"}
        held = {pid: [ports[each] for each in open_files(pid) if each in ports] for pid in self.workers}
        return {pid: [port for port in found if port in clients] for pid, found in held.items()}

    def worker_of(self, stream: httpx.Response) -> int:
        """The process that answers."""
        client = stream.extensions["network_stream"].get_extra_info("client_addr")[1]
        return next(pid for pid, found in self.connections({client}).items() if found)


def open_files(pid: int) -> list[str]:
    found = []
    for each in Path(f"/proc/{pid}/fd").iterdir():
        with suppress(FileNotFoundError):  # closed since
            found.append(str(each.readlink()))
    return found


def eventually(holds: Callable[[], Any], seconds: float = 60) -> None:
    until = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < until, "it did not come to that"
        time.sleep(0.05)


def begun(models: Path, folder: Path) -> Iterator[Running]:
    """Two workers that both answer."""
    key = secrets.token_urlsafe(32)
    (folder / "key").write_text(key)
    words = ["--workers", "2", "--key-file", folder / "key", "--jobs", folder / "jobs", "--log", "text"]
    command = [sys.executable, "-m", "kotha", "serve", models / "plain", *words, "--port", "0", "--device", "cpu"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        server = Running(process, "", key, folder / "jobs")
        assert process.stderr is not None
        threading.Thread(target=lambda lines: server.said.extend(lines), args=[process.stderr], daemon=True).start()
        try:
            eventually(lambda: any("Ctrl-C" in line for line in server.said))
            server.url = re.search(r"(http://\S+)/v1;", "".join(server.said))[1]  # type: ignore[index]
            eventually(lambda: both_listen(server))
            yield server
        finally:
            process.kill()


def both_listen(server: Running) -> bool:
    """Whether both have come so far as to wait for connections."""
    return len(server.workers) == 2 and all("anon_inode:[eventpoll]" in open_files(pid) for pid in server.workers)


@pytest.fixture(scope="module")
def server(models: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    yield from begun(models, tmp_path_factory.mktemp("workers"))


def test_a_worker_that_is_killed_is_replaced_and_the_others_write_on(server: Running) -> None:
    with server.stream() as stream:
        lines = stream.iter_lines()
        next(lines)
        mine, before = server.worker_of(stream), set(server.workers)
        other = (before - {mine}).pop()
        os.kill(other, signal.SIGKILL)
        assert list(lines)[-2:] == ["data: [DONE]", ""]
    eventually(lambda: len(set(server.workers) - {other}) == 2)
    assert mine in server.workers and server.process.poll() is None
    told = [line for line in server.said if "a worker" in line]
    assert told == ["kotha: a worker was ended by SIGKILL; another takes its place, and the others go on\n"]
    eventually(lambda: both_listen(server))
    # Whose own worker dies sees that the answer is not whole, and may ask again.
    with pytest.raises(httpx.RemoteProtocolError), server.stream() as stream:
        lines = stream.iter_lines()
        next(lines)
        os.kill(server.worker_of(stream), signal.SIGKILL)
        list(lines)
    assert server.ask().is_success
    eventually(lambda: both_listen(server))


def test_all_workers_are_counted_the_dead_among_them(server: Running) -> None:
    name = 'kotha_requests_total{path="/v1/completions"'
    before, written = server.count(name), server.count("kotha_tokens_written_total")
    answers = [server.ask().json() for _ in range(4)]
    assert server.count(name) == before + 4
    new = sum(each["usage"]["completion_tokens"] for each in answers)
    assert server.count("kotha_tokens_written_total") == written + new > 0
    counted = server.workers
    for pid in counted:  # whoever counted, what was counted stays
        os.kill(pid, signal.SIGKILL)
    eventually(lambda: not set(counted) & set(server.workers) and both_listen(server))
    assert server.count(name) == before + 4
    assert server.count("kotha_at_work") == server.count("kotha_waiting") == 0


def test_connections_are_shared_among_the_workers(server: Running) -> None:
    url = httpx.URL(server.url)
    assert url.port is not None

    def shares() -> list[int]:
        """How many of sixteen connections each has."""
        with ExitStack() as stack:
            address = (url.host, url.port)
            clients = [stack.enter_context(socket.create_connection(address, 30)) for _ in range(16)]  # type: ignore[arg-type]
            ports = {client.getsockname()[1] for client in clients}
            eventually(lambda: sum(map(len, server.connections(ports).values())) == 16)
            return sorted(map(len, server.connections(ports).values()))

    found = [shares() for _ in range(4)]
    assert max(smaller for smaller, _ in found) >= 4, found  # the first may come before both take any


def test_a_job_holds_nothing_of_its_worker(server: Running) -> None:
    text = {"text": "নদীর ধারে একটি গ্রাম ছিল। " * 50}
    file = http.post(f"{server.url}/api/files", json=text, headers=server.let_in).json()["id"]
    asked = {"kind": "tokenizer", "texts": [file], "vocab_size": 512}
    id = http.post(f"{server.url}/api/jobs", json=asked, headers=server.let_in).json()["id"]
    files = open_files(json.loads((server.jobs / id / PROCESS).read_text())["pid"])
    assert not [each for each in files if each.startswith(("socket:", "pipe:"))], "or the port is never free again"
    for _ in range(4):  # whichever worker is asked
        assert http.get(f"{server.url}/api/jobs/{id}", headers=server.let_in).json()["id"] == id


def test_the_key_is_in_no_list_and_no_log(server: Running) -> None:
    assert server.ask().is_success
    for pid in (server.process.pid, *server.workers):
        for place in ("cmdline", "environ"):
            assert server.key.encode() not in Path(f"/proc/{pid}/{place}").read_bytes()
    assert any("POST /v1/completions 200" in line for line in server.said), "workers log too"
    assert server.key not in "".join(server.said)


@pytest.mark.slow  # a server of its own, two workers and what they import
def test_told_to_stop_they_finish_first(models: Path, tmp_path: Path) -> None:
    for server in begun(models, tmp_path):
        pids = server.workers
        with server.stream() as stream:
            lines = stream.iter_lines()
            next(lines)
            server.process.terminate()
            assert list(lines)[-2:] == ["data: [DONE]", ""]
        assert server.process.wait(60) == 143
        assert not [pid for pid in pids if Path(f"/proc/{pid}").exists()]
        port = httpx.URL(server.url).port
        assert port is not None
        listen("127.0.0.1", port).close()
        assert not any("a worker" in line for line in server.said)


@pytest.mark.slow  # a server of its own, two workers and what they import
def test_workers_follow_a_supervisor_that_was_killed(models: Path, tmp_path: Path) -> None:
    for server in begun(models, tmp_path):
        pids = server.workers
        server.process.kill()
        eventually(lambda pids=pids: not [pid for pid in pids if Path(f"/proc/{pid}").exists()])  # type: ignore[misc]


def test_workers_that_never_come_to_serve_are_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workers, "work", divmod)  # of which an order and a pipe have none
    monkeypatch.setattr(workers, "_PAUSE_SECONDS", 0.01)
    monkeypatch.setattr(workers, "_MOST_VAIN", 2)  # a worker's start is seconds of imports
    said: list[str] = []
    order = WorkerOrder(("box",), ServeSettings(workers=2), "cpu", socket.socket(), 1, tmp_path)
    with pytest.raises(KothaError, match="ended with code 1 before it could serve, 2 times in a row"):
        Supervisor(order, said.append, 10).run()
    assert len(said) == 1


def test_what_speaks_against_so_many_is_said(tmp_path: Path) -> None:
    (tmp_path / "model.safetensors").write_bytes(b"")
    os.truncate(tmp_path / "model.safetensors", 1 << 30)
    assert doubts(2, [tmp_path], cores=2, free_bytes=8 << 30) == []
    assert "3 workers share 2 cores" in doubts(3, [], cores=2, free_bytes=8 << 30)[0]
    crowded = doubts(4, [tmp_path], cores=4, free_bytes=5 << 30)
    assert len(crowded) == 1 and crowded[0].startswith("4 workers may need 9.2 GiB") and "2 would fit" in crowded[0]
    assert [threads_each(n, 8) for n in (1, 2, 3, 8, 9)] == [8, 4, 2, 1, 1]
    with pytest.raises(UsageError, match="workers=0 cannot be"):
        ServeSettings(workers=0)
