"""Faults in a running server produce an error message, do not affect other requests, and end with their cause."""

import asyncio
import errno
import json
import os
import resource
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.loopback import http
from tests.prepared import prepared, some_stories
from tests.server.test_jobs import note, noted, over, waited
from tests.text.conftest import trained

from kotha.artifacts.model_folder import WEIGHTS_FILE
from kotha.artifacts.run_folder import CHECKPOINTS
from kotha.errors import KothaError
from kotha.server.errors import answer
from kotha.server.jobs.job_process import LOG
from kotha.server.jobs.store import OUT_PLACE, JobStore
from kotha.server.jobs.table import DATABASE, JobConflictError
from kotha.server.settings import Limits

ASKED = {"prompt": "মা", "max_tokens": 3, "temperature": 0}


def ask(url: str, model: str = "plain") -> httpx.Response:
    return http.post(f"{url}/v1/completions", json={**ASKED, "model": model}, timeout=60)


def eventually(holds: Callable[[], bool]) -> None:
    for _ in range(2000):
        if holds():
            return
        time.sleep(0.01)
    raise AssertionError("it did not come to that")


# -- a full queue -----------------------------------------------------------------------------------------------------


async def overfill(url: str, batcher: Any) -> list[httpx.Response]:
    """Three clients, one row, a queue of three: return the responses to the two rejected requests, then the others."""
    gate, step = threading.Event(), batcher.engine.step
    batcher.engine.step = lambda: gate.wait(30) and step()
    path, asked = f"{url}/v1/completions", {**ASKED, "model": "plain"}
    async with AsyncExitStack() as stack:
        addresses = [httpx.AsyncHTTPTransport(local_address=f"127.0.0.{place}") for place in (1, 2, 3)]
        clients = [await stack.enter_async_context(httpx.AsyncClient(transport=each, timeout=60)) for each in addresses]
        sent = [asyncio.create_task(clients[0].post(path, json=asked))]
        await asyncio.to_thread(eventually, lambda: batcher.n_at_work == 1)
        sent += [asyncio.create_task(clients[place].post(path, json=asked)) for place in (0, 0, 1)]
        await asyncio.to_thread(eventually, lambda: batcher.n_waiting == 3)
        refused = [await clients[place].post(path, json=asked) for place in (0, 2)]
        gate.set()
        return [*refused, *await asyncio.gather(*sent)]


def test_a_full_queue_is_rejected_with_a_message_and_works_again(serve: Any) -> None:
    limits = Limits(rows=1, waiting=3, waiting_for_one=2)
    at = serve(limits=limits)
    assert ask(at.url).is_success
    mine, everyones, *written = asyncio.run(overfill(at.url, at.app.state.kotha.registry.opened["plain"].batcher))
    assert mine.status_code == 429 and "2 of your texts are already waiting" in mine.json()["error"]["message"]
    assert everyones.status_code == 503 and "3 texts are already waiting" in everyones.json()["error"]["message"]
    assert mine.headers["retry-after"] == everyones.headers["retry-after"] == "1"
    assert [each.status_code for each in written] == [200] * 4, "accepted requests are finished"
    assert ask(at.url).is_success


# -- a damaged model folder -------------------------------------------------------------------------------------------


def truncate(model: Path) -> None:
    os.truncate(model / WEIGHTS_FILE, 1000)


def empty(model: Path) -> None:
    (model / WEIGHTS_FILE).write_bytes(b"")


def break_config(model: Path) -> None:
    (model / "config.json").write_text("{")


def take_away(model: Path) -> None:
    shutil.rmtree(model)


@pytest.fixture
def shelf(models: Path, tmp_path: Path) -> Path:
    for name in ("plain", "taught"):
        shutil.copytree(models / name, tmp_path / name)
    return tmp_path


@pytest.mark.parametrize("damage", [truncate, empty, break_config, take_away])
def test_a_model_that_is_damaged_before_its_first_use(
    models: Path, shelf: Path, damage: Callable[[Path], None], serve: Any
) -> None:
    at = serve(shelf / "plain", shelf / "taught")
    damage(shelf / "plain")
    for _ in range(2):  # the second request gets the same error
        response = ask(at.url)
        assert response.status_code == 500 and response.json()["error"]["type"] == "server_error"
        message = response.json()["error"]["message"]
        assert "plain" in message and str(shelf) not in message, "errors contain the name, not the path"
    assert ask(at.url, "taught").is_success
    shutil.copytree(models / "plain", shelf / "plain", dirs_exist_ok=True)
    assert ask(at.url).is_success, "it works again without a restart"


def test_a_model_damaged_while_loaded_and_after_unloading(models: Path, shelf: Path, serve: Any) -> None:
    at = serve(shelf / "plain", shelf / "taught", limits=Limits(model_bytes=1))
    before = ask(at.url).json()["choices"]
    truncate(shelf / "plain")
    assert ask(at.url).json()["choices"] == before, "a loaded model does not need the disk"
    assert ask(at.url, "taught").is_success  # which unloads the other model
    response = ask(at.url)
    assert response.status_code == 500 and "truncated" in response.json()["error"]["message"]
    assert ask(at.url, "taught").is_success
    shutil.copytree(models / "plain", shelf / "plain", dirs_exist_ok=True)
    assert ask(at.url).json()["choices"] == before


# -- jobs that are killed ---------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("faults")
    prepared(folder, some_stories(0, 60), trained("unigram"))
    return folder / "data"


def training(data: Path, steps: int) -> list[str]:
    """The command for a small training run with frequent checkpoints."""
    sizes = [f"steps={steps}", "batch_size=2", "warmup_steps=1", "evaluate_every=5", "evaluate_tokens=100"]
    return ["train", str(data), "--preset", "char", *(f"--set={size}" for size in sizes), "--out", OUT_PLACE]


def process_of(folder: Path) -> int:
    return int(noted(folder.parent, folder.name)["pid"])


def command_of(job: int) -> int:
    """The pid of the command that a job's process runs."""
    return int(Path(f"/proc/{job}/task/{job}/children").read_text().split()[0])


@pytest.mark.slow  # takes half a minute; the next test kills a faster command
def test_a_killed_training_job_is_reported_and_can_be_resumed(tmp_path: Path, data: Path) -> None:
    store = JobStore(tmp_path)
    id = store.begin("train", "", training(data, steps=30))
    out = store.result(id)
    waited(store, id, lambda status: over(status) or any((out / CHECKPOINTS).glob("step-*")))
    assert store.status(id).state == "running", store.status(id).output
    os.killpg(process_of(tmp_path / id), signal.SIGKILL)
    killed = waited(store, id, over)
    assert killed.state == "killed"
    assert "a user killed it" in killed.output and killed.output.endswith("resume it from its last checkpoint")
    store.resume(id)
    done = waited(store, id, over)
    assert done.state == "done", done.output
    steps = [json.loads(line).get("step", 0) for line in (out / "metrics.jsonl").read_text().splitlines()]
    assert steps == sorted(steps) and steps[-1] == 30
    with pytest.raises(JobConflictError, match="is done"):
        store.resume(id)
    for saved in (out / CHECKPOINTS).iterdir():
        shutil.rmtree(saved) if saved.is_dir() else saved.unlink()
    note(tmp_path, id, code=143, ended=1.0)
    with pytest.raises(JobConflictError, match="no checkpoint"):
        store.resume(id)


def test_a_killed_command_is_reported(tmp_path: Path, endless: list[str]) -> None:
    store = JobStore(tmp_path)
    id = store.begin("train", "", endless)
    waited(store, id, lambda status: "Ctrl-C stops it" in status.output)
    os.kill(command_of(process_of(tmp_path / id)), signal.SIGKILL)
    killed = waited(store, id, over)
    assert killed.state == "killed" and killed.ended is not None and "a user killed it" in killed.output


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux ends a command together with its job")
def test_a_command_does_not_outlive_its_job(tmp_path: Path, endless: list[str]) -> None:
    store = JobStore(tmp_path)
    id = store.begin("train", "", endless)
    waited(store, id, lambda status: "Ctrl-C stops it" in status.output)
    job = process_of(tmp_path / id)
    command = Path(f"/proc/{command_of(job)}/stat")
    os.kill(job, signal.SIGKILL)
    assert waited(store, id, over).state == "killed"
    end = time.monotonic() + 60
    while command.exists() and command.read_text().rpartition(") ")[2][0] != "Z" and time.monotonic() < end:
        time.sleep(0.05)
    assert not command.exists() or command.read_text().rpartition(") ")[2][0] == "Z", (
        "a second one would go on beside it"
    )


def test_user_input_is_never_a_placeholder(tmp_path: Path) -> None:
    store = JobStore(tmp_path)
    id = store.begin("train", "", ["presets", "{out}", "{job}/x", OUT_PLACE])
    assert json.loads(noted(tmp_path, id)["commands"]) == [["presets", "{out}", "{job}/x", str(tmp_path / id / "out")]]
    waited(store, id, over)


def test_a_killed_job_that_is_no_training_must_be_started_again(tmp_path: Path) -> None:
    store = JobStore(tmp_path)
    id = store.begin("tokenizer", "", ["presets"])
    waited(store, id, over)
    for code, state, words in [
        (-signal.SIGKILL, "killed", "start it again"),
        (-signal.SIGSEGV, "failed", "terminated by SIGSEGV"),
        (1, "failed", ""),
    ]:
        note(tmp_path, id, code=code, ended=1.0)
        assert store.status(id).state == state and words in store.status(id).output


def test_a_killed_training_job_without_a_checkpoint_must_be_started_again(tmp_path: Path) -> None:
    store = JobStore(tmp_path)
    id = store.begin("train", "", ["presets"])
    waited(store, id, over)
    note(tmp_path, id, code=-signal.SIGKILL, ended=1.0)
    assert store.status(id).output.endswith("the machine went down; start it again")
    (store.result(id) / CHECKPOINTS / "step-00000004").mkdir(parents=True)
    assert store.status(id).output.endswith("resume it from its last checkpoint")


def test_the_output_of_jobs_of_earlier_versions_is_kept(tmp_path: Path) -> None:
    (tmp_path / ("0" * 12) / "out").mkdir(parents=True)
    (tmp_path / ("0" * 12) / "job.json").write_text("{}")
    assert JobStore(tmp_path).all() == [] and (tmp_path / ("0" * 12) / "out").is_dir()


def test_a_damaged_job_table_is_reported(tmp_path: Path) -> None:
    store = JobStore(tmp_path)
    (tmp_path / DATABASE).write_bytes(b"no table " * 1000)
    with pytest.raises(KothaError, match="the list of jobs cannot be read or written: file is not a database"):
        store.all()


def test_models_are_listed_when_the_folder_of_one_is_gone(shelf: Path, serve: Any) -> None:
    at = serve(shelf / "plain", shelf / "taught")
    take_away(shelf / "plain")
    listed = http.get(f"{at.url}/v1/models")
    assert listed.status_code == 200, listed.text
    assert [each["id"] for each in listed.json()["data"]] == ["plain", "taught"]
    assert http.get(f"{at.url}/v1/models/plain").is_success
    response = ask(at.url)
    assert response.status_code == 500 and "plain" in response.json()["error"]["message"]


# -- a full disk ------------------------------------------------------------------------------------------------------


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of a few pages, which fills up quickly."""
    place = tmp_path / "disk"
    place.mkdir()
    made = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=256k", "none", place], capture_output=True, check=False)
    if made.returncode:
        pytest.skip("only root can mount a disk")
    yield place
    subprocess.run(["umount", "-l", place], check=True)


def fill(disk: Path, but: int = 0) -> Path:
    """Fill a disk, leaving a given number of bytes free."""
    filler, free = disk / "filler", shutil.disk_usage(disk).free
    filler.write_bytes(b"x" * (free - but))
    return filler


def test_a_job_on_a_full_disk_fails_with_a_message(small_disk: Path, data: Path) -> None:
    store = JobStore(small_disk / "jobs")
    id = store.begin("train", "", training(data, steps=200))
    failed = waited(store, id, over)
    assert failed.state == "failed" and "No space left on device" in failed.output, failed


def test_the_end_of_a_job_is_recorded_on_a_full_disk(small_disk: Path, endless: list[str]) -> None:
    store = JobStore(small_disk / "jobs")
    id = store.begin("train", "", endless)
    waited(store, id, lambda status: "Ctrl-C stops it" in status.output)
    fill(small_disk)
    os.kill(command_of(process_of(store.folder / id)), signal.SIGSEGV)
    ended = waited(store, id, over)
    assert ended.state == "failed" and "terminated by SIGSEGV" in ended.output
    assert ended.ended is not None and ended.ended > ended.started


def test_a_full_disk_rejects_uploads_and_jobs_with_a_message(small_disk: Path, serve: Any) -> None:
    at = serve(jobs=small_disk / "jobs")
    file = http.post(f"{at.url}/api/files", json={"text": "নদীর ধারে একটি গ্রাম ছিল।"}).json()["id"]
    filler = fill(small_disk)
    response = http.post(f"{at.url}/api/files", json={"text": "ক" * 10_000})
    assert response.status_code == 500 and "No space left on device" in response.json()["error"]["message"]
    assert str(small_disk) not in response.text
    response = http.post(f"{at.url}/api/jobs", json={"kind": "index", "texts": [file]})
    assert response.status_code == 500 and "No space left on device" in response.json()["error"]["message"]
    assert str(small_disk) not in response.text, "the answer contains no path"
    assert http.get(f"{at.url}/api/jobs").json() == [], "no job was started"
    assert ask(at.url).is_success
    filler.unlink()
    assert http.post(f"{at.url}/api/files", json={"text": "ক"}).is_success


def test_a_job_that_cannot_be_recorded_does_not_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    begun, spawn, store = [], os.posix_spawn, JobStore(tmp_path)
    usual = resource.getrlimit(resource.RLIMIT_FSIZE)

    def spawned(*args: Any, **named: Any) -> int:
        begun.append(spawn(*args, **named))
        resource.setrlimit(resource.RLIMIT_FSIZE, (8, usual[1]))  # from now on like a full disk
        return begun[-1]

    monkeypatch.setattr(os, "posix_spawn", spawned)
    try:
        with pytest.raises(KothaError, match="the list of jobs cannot be read or written"):
            store.begin("train", "", ["presets"])
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, usual)
    assert len(begun) == 1 and not Path(f"/proc/{begun[0]}").exists()
    assert JobStore(tmp_path).all() == []


def test_a_job_with_a_file_size_limit_fails_with_a_message(
    tmp_path: Path, data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As with a quota, small files can be written, but the weights cannot."""
    store, spawn = JobStore(tmp_path), os.posix_spawn

    def limited(*args: Any, **named: Any) -> int:
        pid = spawn(*args, **named)
        resource.prlimit(pid, resource.RLIMIT_FSIZE, (20_000, 20_000))
        return pid

    monkeypatch.setattr(os, "posix_spawn", limited)
    id = store.begin("train", "", training(data, steps=200))
    failed = waited(store, id, over)
    assert failed.state == "failed" and "File too large" in failed.output, failed
    assert (tmp_path / id / LOG).is_file()


@pytest.mark.parametrize("code", [errno.EIO, errno.ENOSPC, errno.EROFS, errno.EACCES, errno.ENOENT])
def test_an_io_error_is_reported_without_paths(code: int, caplog: pytest.LogCaptureFixture) -> None:
    status, body, _ = answer(OSError(code, os.strerror(code), "/home/me/jobs/log.txt"))
    result = body["error"]["message"]
    assert status == 500 and result == f"I/O error on the server: {os.strerror(code)}; see its log"
    assert caplog.records[0].exc_info is not None
