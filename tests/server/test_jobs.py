"""Jobs are processes that outlive the server and are found by the next one; they stop, are killed, fail and resume."""

import asyncio
import errno
import json
import os
import secrets
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.loopback import http
from tests.server.conftest import Address, read, refused, started

from kotha.artifacts.model_folder import RUN_MODEL
from kotha.artifacts.run_folder import RunFolder
from kotha.errors import KothaError
from kotha.model.fields import LARGEST_SEED
from kotha.server.app import make_app
from kotha.server.jobs.kinds import LEAST_VOCABULARY, LearnJob
from kotha.server.jobs.status import Job
from kotha.server.jobs.store import OUT_PLACE, JobStore
from kotha.server.jobs.table import (
    DATABASE,
    JobConflictError,
    NoSuchJobError,
    create_table,
    process_start_time,
    transaction,
)
from kotha.server.jobs.uploads import Uploads
from kotha.server.settings import Limits, ServeSettings
from kotha.text.stories.corpus import stories
from kotha.text.tokenizer.trainers import train as train_tokenizer

JOURNAL = f"{DATABASE}-journal"


def waited(store: JobStore, id: str, until: Callable[[Job], bool], seconds: float = 120) -> Job:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        status = store.status(id)
        if until(status):
            return status
        time.sleep(0.05)
    raise AssertionError(f"it did not come to that: {store.status(id)}")


def note(folder: Path, id: str, **values: Any) -> None:
    """Change columns of a job's row."""
    with transaction(folder, write=True) as table:
        table.execute(f"UPDATE jobs SET {', '.join(f'{name}=?' for name in values)} WHERE id=?", (*values.values(), id))


def noted(folder: Path, id: str) -> dict[str, Any]:
    """Return a job's row."""
    with transaction(folder) as table:
        return dict(table.execute("SELECT * FROM jobs WHERE id=?", (id,)).fetchone())


def add(folder: Path, id: str, kind: str, *commands: list[str], **more: Any) -> None:
    """Insert a job's row without starting it."""
    (folder / id).mkdir()
    values = {
        "id": id,
        "kind": kind,
        "name": "",
        "commands": json.dumps(commands or [["presets"]]),
        "began": 0.0,
        **more,
    }
    with transaction(folder, write=True) as table:
        names = ", ".join(values)
        table.execute(f"INSERT INTO jobs ({names}) VALUES ({', '.join('?' * len(values))})", list(values.values()))


def over(status: Job) -> bool:
    return status.state != "running"


def test_a_job_runs_and_reports_how_it_ended(tmp_path: Path) -> None:
    store = JobStore(tmp_path)
    id = store.begin("train", "প্রথম", ["presets"])
    done = waited(store, id, over)
    assert (done.state, done.kind, done.name) == ("done", "train", "প্রথম")
    assert "bangla-58m" in done.output and done.ended is not None and done.ended >= done.started
    failing = store.begin("train", "", ["train", "nowhere", "--out", OUT_PLACE])
    failed = waited(store, failing, over)
    assert failed.state == "failed" and "nowhere" in failed.output
    assert [each.id for each in store.all()] == [failing, id]


def test_another_server_finds_it_running_and_stops_it(tmp_path: Path, endless: list[str]) -> None:
    id = JobStore(tmp_path).begin("train", "", endless)
    other = JobStore(tmp_path, most_running=1)
    waited(other, id, lambda status: "Ctrl-C stops it" in status.output)
    assert other.status(id).state == "running"
    with pytest.raises(KothaError, match="1 jobs are already running"):
        other.begin("train", "", ["presets"])
    other.stop(id)
    assert waited(other, id, over).state == "stopped"
    other.stop(id)  # a second call has no effect


@pytest.mark.parametrize("moment", [0.0, 0.05, 0.1, 0.2, 0.3, 0.4, 0.6, 1.0])
def test_a_job_stopped_right_after_its_start_leaves_no_process(
    tmp_path: Path, endless: list[str], moment: float
) -> None:
    store = JobStore(tmp_path)
    id = store.begin("train", "", endless)
    session = noted(tmp_path, id)["pid"]
    time.sleep(moment)
    store.stop(id)
    stopped = waited(store, id, over)
    assert stopped.state == "stopped" and stopped.ended is not None, stopped
    assert "memory" not in stopped.output
    end = time.monotonic() + 60
    while processes_of(session) and time.monotonic() < end:  # the process that recorded the end needs a moment to exit
        time.sleep(0.05)
    assert processes_of(session) == []


def processes_of(session: int) -> list[int]:
    """The running processes of a session."""
    found = []
    for file in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):  # it has ended in the meantime
            state, _, _, its_session = file.read_text(encoding="utf-8").rpartition(") ")[2].split()[:4]
            if int(its_session) == session and state != "Z":
                found.append(int(file.parent.name))
    return found


def test_a_signal_during_the_start_of_a_command_reaches_it(tmp_path: Path, endless: list[str]) -> None:
    """The signal arrives after the command has started and before the pid is stored in its job."""
    create_table(tmp_path)
    add(tmp_path, "0123456789ab", "train", endless)
    program = (
        "import os, signal, subprocess, sys\n"
        "from pathlib import Path\n"
        "from kotha.server.jobs import job_process\n"
        "from kotha.server.jobs.table import transaction\n"
        "with transaction(Path(sys.argv[1]).parent, write=True) as table:\n"
        "    table.execute('UPDATE jobs SET pid=?', (os.getpid(),))\n"
        "begin = subprocess.Popen\n"
        "def interrupted(*args, **named):\n"
        "    process = begin(*args, **named)\n"
        "    os.kill(os.getpid(), signal.SIGTERM)\n"
        "    return process\n"
        "subprocess.Popen = interrupted\n"
        "job_process.main(Path(sys.argv[1]), 0)\n"
    )
    command = [sys.executable, "-c", program, str(tmp_path / "0123456789ab")]
    done = subprocess.run(command, check=False, timeout=120)
    assert done.returncode == 0
    assert noted(tmp_path, "0123456789ab")["code"] == -signal.SIGTERM


def test_a_job_does_nothing_if_its_server_died_before_recording_it(tmp_path: Path) -> None:
    JobStore(tmp_path)
    server = subprocess.Popen(["true"])
    server.wait()
    command = [sys.executable, "-m", "kotha.server.jobs.job_process", str(tmp_path / "0123456789ab"), str(server.pid)]
    assert subprocess.run(command, check=False, timeout=60).returncode == 0
    assert JobStore(tmp_path).all() == [] and not (tmp_path / "0123456789ab").exists()


def test_what_a_killed_server_left_is_cleared_by_the_next(tmp_path: Path, endless: list[str]) -> None:
    store = JobStore(tmp_path)
    id = store.begin("train", "", endless)
    (tmp_path / "00000000000f").mkdir()  # killed before the job was recorded
    (tmp_path / ".00000000000e.kotha-gone" / "out").mkdir(parents=True)  # while it removed a job
    (tmp_path / "uploads" / ".00000000000d.txt.kotha-partial").write_text("আ")  # during an upload
    (tmp_path / "uploads" / "00000000000d.name").write_text("গান")
    assert [each.id for each in JobStore(tmp_path).all()] == [id]
    assert sorted(each.name for each in tmp_path.iterdir()) == sorted([id, "uploads", DATABASE, JOURNAL])
    assert not list((tmp_path / "uploads").iterdir())
    store.stop(id)
    assert waited(store, id, over).state in ("stopped", "killed")


def test_a_killed_job_is_not_reported_as_running(tmp_path: Path, endless: list[str]) -> None:
    store = JobStore(tmp_path)
    id = store.begin("train", "", endless)
    waited(store, id, lambda status: "Ctrl-C stops it" in status.output)
    os.killpg(noted(tmp_path, id)["pid"], signal.SIGKILL)
    assert waited(store, id, over).state == "killed"
    # A process with a reused pid is not mistaken for the job.
    note(tmp_path, id, pid=os.getpid(), process="1")
    assert store.status(id).state == "killed"


def test_concurrent_requests_cannot_exceed_the_limit_of_running_jobs(tmp_path: Path, endless: list[str]) -> None:
    stores = [JobStore(tmp_path, most_running=2) for _ in range(8)]  # as with several servers

    def ask(store: JobStore) -> str | None:
        try:
            return store.begin("train", "", endless)
        except JobConflictError as error:
            assert "2 jobs are already running" in str(error)
            return None

    with ThreadPoolExecutor(len(stores)) as workers:
        begun = [id for id in workers.map(ask, stores) if id is not None]
    with pytest.raises(JobConflictError, match="2 jobs are already running"):
        add(tmp_path, "a" * 12, "train")
        stores[0].resume("a" * 12)
    for id in begun:
        os.killpg(noted(tmp_path, id)["pid"], signal.SIGKILL)
    assert len(begun) == 2


@pytest.mark.parametrize("id", ["", ".", "..", "../..", "/etc", "0" * 12, "uploads", "A" * 12, "0" * 11 + "\n"])
def test_no_id_leads_out_of_the_folder(tmp_path: Path, id: str) -> None:
    store = JobStore(tmp_path / "jobs")
    for ask in (
        store.status,
        store.stop,
        store.result,
        store.uploads.path,
        store.resume,
        store.remove,
        store.remove_file,
        store.label,
    ):
        with pytest.raises(NoSuchJobError):
            ask(id)


@pytest.fixture(scope="module")
def working(models: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Address]:
    folder = tmp_path_factory.mktemp("jobs")
    app = make_app([str(models / "plain")], ServeSettings(jobs=folder), device="cpu")
    for url in started(app):
        yield Address(url, app, folder)


def said(answer: httpx.Response) -> Any:
    assert answer.status_code == 200, answer.text
    return answer.json()


def test_a_file_is_uploaded_and_indexed(working: Address) -> None:
    text = "\n\n".join(story.text for story in islice(stories(seed=0), 40))
    file = said(http.post(f"{working.url}/api/files", json={"text": text}))["id"]
    asked = {"kind": "index", "texts": [file], "name": "ছোট"}
    id = said(http.post(f"{working.url}/api/jobs", json=asked))["id"]
    assert waited(JobStore(working.folder), id, over).state == "done"
    assert (working.folder / id / "out").exists()
    listed = said(http.get(f"{working.url}/api/jobs"))
    assert [each["name"] for each in listed] == ["ছোট"]


def written(store: JobStore, kind: str, code: int | None) -> str:
    """Insert a job's row without starting it; without a code it is running."""
    id = secrets.token_hex(6)
    if code is not None:
        add(store.folder, id, kind, code=code, ended=1.0)
    else:
        add(store.folder, id, kind, pid=os.getpid(), process=process_start_time(os.getpid()))
    return id


@pytest.mark.parametrize(
    ("wanted", "given", "status", "words"),
    [
        ("texts", "index", 404, "not found; upload it first"),
        ("table", "index", 404, "not found; upload it first"),
        ("table", "file", 400, "was uploaded as txt, which has no columns"),
        ("model", "index", 409, "has no model; a training job has a model once it has saved one"),
        ("model", "learn running", 409, "has no model; a training job has a model once it has saved one"),
    ],
)
def test_an_id_of_the_wrong_kind_or_too_early_is_rejected_with_a_message(
    tmp_path: Path, models: Path, wanted: str, given: str, status: int, words: str
) -> None:
    app = make_app([str(models / "plain")], ServeSettings(jobs=tmp_path), device="cpu")
    store: JobStore = app.state.kotha.jobs
    file, table = store.upload("নদী", "txt"), store.upload("text,label", "csv")
    kind, _, state = given.partition(" ")
    id = file if given == "file" else written(store, kind, None if state else 0)
    asked = {
        "texts": {"kind": "index", "texts": [id]},
        "table": {"kind": "finetune", "use": "classify", "table": id, "model": "plain"},
        "model": {"kind": "finetune", "use": "classify", "table": table, "model": id},
    }[wanted]
    for url in started(app):
        refused = http.post(f"{url}/api/jobs", json=asked)
        if wanted == "model":
            alike = http.post(f"{url}/v1/completions", json={"model": id, "prompt": "মা"})
            assert (alike.status_code, alike.json()) == (status, refused.json())
    assert refused.status_code == status and words in refused.json()["error"]["message"], refused.text
    assert len(store.all()) == (given != "file"), "no job was started"


def test_a_server_without_a_job_folder_rejects_jobs(address: Address) -> None:
    answer = http.get(f"{address.url}/api/jobs")
    assert answer.status_code == 404 and "has no folder for jobs" in answer.json()["error"]["message"]


def test_files_are_listed_and_removed(working: Address) -> None:
    called = "  আমার\u202e নদী\0.csv" + "x" * 300  # a possible name of an uploaded file
    id = said(http.post(f"{working.url}/api/files", json={"text": "নদী", "file_type": "csv", "name": called}))["id"]
    listed = {each["id"]: each for each in said(http.get(f"{working.url}/api/files"))}
    assert listed[id]["name"].startswith("আমার নদী.csvxx") and len(listed[id]["name"]) == 200
    assert (listed[id]["file_type"], listed[id]["n_bytes"]) == ("csv", len("নদী".encode()))
    assert said(http.delete(f"{working.url}/api/files/{id}")) == {"id": id}
    assert id not in [each["id"] for each in said(http.get(f"{working.url}/api/files"))]
    assert http.delete(f"{working.url}/api/files/{id}").status_code == 404
    assert http.delete(f"{working.url}/api/files/..").status_code in (400, 404, 405)


def test_files_over_the_limit_are_rejected(tmp_path: Path, serve: Any) -> None:
    limits = Limits(files=3, files_bytes=20, jobs=1)
    at = serve(jobs=tmp_path, limits=limits)
    first = said(http.post(f"{at.url}/api/files", json={"text": "a" * 15}))["id"]
    large = http.post(f"{at.url}/api/files", json={"text": "b" * 6})
    assert large.status_code == 413 and "take 15 bytes and this one 6 more" in large.json()["error"]["message"]
    for _ in range(2):
        said(http.post(f"{at.url}/api/files", json={"text": "c"}))
    many = http.post(f"{at.url}/api/files", json={"text": "c"})
    assert many.status_code == 409 and "3 files are stored" in many.json()["error"]["message"]
    said(http.delete(f"{at.url}/api/files/{first}"))
    second = said(http.post(f"{at.url}/api/files", json={"text": "b" * 6}))["id"]
    asked = {"kind": "index", "texts": [second]}
    job = said(http.post(f"{at.url}/api/jobs", json=asked))["id"]
    waited(JobStore(tmp_path), job, over)
    many = http.post(f"{at.url}/api/jobs", json=asked)
    assert many.status_code == 409 and "1 jobs are stored" in many.json()["error"]["message"]
    said(http.delete(f"{at.url}/api/jobs/{job}"))
    assert {each.name for each in tmp_path.iterdir()} == {"uploads", DATABASE, JOURNAL}
    third = said(http.post(f"{at.url}/api/files", json={"text": "b" * 6}))["id"]  # the second was removed with its job
    asked = {"kind": "index", "texts": [third]}
    waited(JobStore(tmp_path), said(http.post(f"{at.url}/api/jobs", json=asked))["id"], over)


def test_a_running_job_and_its_inputs_are_not_removed(tmp_path: Path, endless: list[str]) -> None:
    store = JobStore(tmp_path)
    file = store.upload("নদী", "txt")
    data = store.begin("prepare", "", ["presets"])
    waited(store, data, over)
    running = store.begin("train", "", endless)
    words = [*endless, str(store.uploads.path(file)), str(store.result(data))]
    note(tmp_path, running, commands=json.dumps([words]))
    with pytest.raises(JobConflictError, match="is running; stop it first"):
        store.remove(running)
    with pytest.raises(JobConflictError, match=f"the file {file} is in use by the job {running}"):
        store.remove_file(file)
    with pytest.raises(JobConflictError, match=f"job {data} is in use by the job {running}"):
        store.remove(data)
    store.stop(running)
    waited(store, running, over)
    store.remove_file(file)
    for id in (data, running):
        store.remove(id)
    assert store.all() == [] and store.uploads.all() == []


def test_a_failed_removal_leaves_the_job_unchanged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = JobStore(tmp_path)
    id = store.begin("prepare", "", ["presets"])
    waited(store, id, over)

    def fail(*_: object) -> None:
        raise OSError(errno.EIO, "Input/output error")

    with monkeypatch.context() as patched:
        patched.setattr(Path, "rename", fail)
        with pytest.raises(KothaError, match="cannot be removed: Input/output error"):
            store.remove(id)
    assert [each.id for each in store.all()] == [id]
    store.remove(id)
    assert {each.name for each in tmp_path.iterdir()} == {"uploads", DATABASE, JOURNAL}


def test_removing_a_job_removes_its_model_unless_in_use(tmp_path: Path, models: Path) -> None:
    store = JobStore(tmp_path)
    id = store.begin("train", "", ["presets"])
    waited(store, id, over)
    shutil.copytree(models / "plain", store.result(id) / RUN_MODEL)
    app = make_app([str(models / "taught")], ServeSettings(jobs=tmp_path), device="cpu")
    shelf = app.state.kotha.registry
    for url in started(app):
        asked = {"model": id, "prompt": "মা", "max_tokens": 2}
        said(http.post(f"{url}/v1/completions", json=asked, timeout=60))
        shelf.opened[id].users += 1
        refused = http.delete(f"{url}/api/jobs/{id}")
        assert refused.status_code == 409 and "is in use" in refused.json()["error"]["message"]
        said(http.post(f"{url}/v1/completions", json=asked, timeout=60))
        shelf.opened[id].users -= 1
        said(http.delete(f"{url}/api/jobs/{id}"))
        assert id not in shelf.opened and not (tmp_path / id).exists()
        assert http.post(f"{url}/v1/completions", json=asked).status_code == 404
        assert [each["id"] for each in said(http.get(f"{url}/v1/models"))["data"]] == ["taught"]


def test_the_output_of_a_job_contains_no_paths_of_the_server(working: Address, tmp_path: Path) -> None:
    store = JobStore(working.folder)
    file = store.upload("নদী", "txt")
    model = tmp_path / "some" / "model"
    texts = [str(store.uploads.path(file)), "--tokenizer", str(model)]
    id = store.begin("prepare", "", ["prepare", *texts, "--out", OUT_PLACE])
    failed = waited(store, id, over)
    log = (working.folder / id / "log.txt").read_text(encoding="utf-8")
    assert failed.state == "failed" and str(model) in log
    assert str(tmp_path) not in failed.output and "model" in failed.output
    (working.folder / id / "log.txt").write_text(f"it cannot read {working.folder}/uploads/{file}.txt")
    assert store.status(id).output == f"it cannot read uploads/{file}.txt"


def test_jobs_are_not_read_in_the_event_loop(
    tmp_path: Path, models: Path, monkeypatch: pytest.MonkeyPatch, serve: Any
) -> None:
    """Job folders and file names are read in threads for every request."""
    in_loop: list[str] = []

    def watched(kind: type, name: str) -> None:
        plain = getattr(kind, name)

        def noted(*given: Any) -> Any:
            with suppress(RuntimeError):  # threads have no event loop
                asyncio.get_running_loop()
                in_loop.append(name)
            return plain(*given)

        monkeypatch.setattr(kind, name, noted)

    at = serve(jobs=tmp_path)
    for name in ("all", "status", "stop", "trained_as", "remove"):
        watched(JobStore, name)
    for name in ("path", "all", "upload"):
        watched(Uploads, name)
    id = "0" * 12
    for path in (
        "/v1/models",
        "/v1/models/nobody",
        "/api/models/nobody",
        "/api/jobs",
        f"/api/jobs/{id}",
        "/api/files",
    ):
        http.get(at.url + path)
    http.post(f"{at.url}/v1/completions", json={"model": "nobody", "prompt": "মা"})
    http.post(f"{at.url}/api/jobs", json={"kind": "index", "texts": [id]})
    http.post(f"{at.url}/api/jobs", json={"kind": "finetune", "use": "classify", "table": id, "model": "nobody"})
    http.post(f"{at.url}/api/jobs/{id}/stop")
    http.delete(f"{at.url}/api/jobs/{id}")
    http.delete(f"{at.url}/api/files/{id}")
    assert in_loop == []


@pytest.mark.slow
def test_a_training_job_survives_its_server_and_its_model_generates(working: Address, models: Path, serve: Any) -> None:
    text = "\n\n".join(story.text for story in islice(stories(seed=1), 200))
    file = said(http.post(f"{working.url}/api/files", json={"text": text}))["id"]
    store = JobStore(working.folder)

    asked = {"kind": "learn", "texts": [file], "vocab_size": 800, "minutes": 0.3}
    run = said(http.post(f"{working.url}/api/jobs", json=asked))["id"]
    metrics = working.folder / run / "out" / "metrics.jsonl"
    waited(store, run, lambda _: metrics.is_file() and metrics.stat().st_size > 0)
    said(http.post(f"{working.url}/api/jobs/{run}/stop"))
    assert waited(store, run, over).state == "stopped"
    # Another server, as after a crash, finds the job, resumes it, and serves its model.
    at = serve(jobs=working.folder)
    assert said(http.post(f"{at.url}/api/jobs/{run}/resume"))["state"] == "running"
    assert waited(store, run, over, 300).state == "done", store.status(run).output
    steps = [json.loads(line).get("step", 0) for line in metrics.read_text().splitlines()]
    assert steps == sorted(steps), "one curve"
    assert run in [each["id"] for each in said(http.get(f"{at.url}/v1/models"))["data"]]
    asked = {"model": run, "prompt": "নদীর ধারে", "max_tokens": 5}
    assert said(http.post(f"{at.url}/v1/completions", json=asked, timeout=60))["usage"]["completion_tokens"] <= 5


def clients(app: Any) -> Iterator[httpx.Client]:
    for url in started(app):
        with httpx.Client(base_url=url, timeout=60) as client:
            yield client


@pytest.mark.extended
def test_one_job_makes_tokenizer_data_and_model(tmp_path: Path, models: Path) -> None:
    app = make_app([str(models / "plain")], ServeSettings(jobs=tmp_path), device="cpu")
    for client in clients(app):
        sizes = {"n_layers": 1, "d_model": 16, "n_heads": 2, "context_length": 32, "batch_size": 4}
        asked = {"kind": "learn", "stories": 60, "steps": 8, "preset": "mini", "sizes": sizes, "vocab_size": 600}
        id = client.post("/api/jobs", json={**asked, "name": "গল্প"}).json()["id"]
        stages = client.get(f"/api/runs/{id}").json()["stages"]
        assert list(stages) == ["stories", "tokenizer", "prepare"] and not stages["prepare"], "no stage is complete yet"
        for _ in range(600):
            status = client.get(f"/api/jobs/{id}").json()
            if status["state"] != "running":
                break
            time.sleep(0.2)
        assert status["state"] == "done", status["output"]
        result = client.get(f"/api/runs/{id}").json()
        folder = RunFolder(tmp_path / id / "out")
        assert [each["step"] for each in result["points"]] == [
            row["step"] for row in folder.metrics() if "learning_rate" in row
        ]
        assert result["references"] == folder.about()["references"] and result["title"] == "গল্প"
        assert all(result["stages"].values())
        assert result["sizes"]["n_layers"] == 1 and result["sizes"]["vocab_size"] == 600
        later = client.get(f"/api/runs/{id}?after={result['points'][-2]['step']}").json()
        assert later["points"] == result["points"][-1:]
        [row] = [each for each in client.get("/api/runs").json() if each["name"] == id]
        assert row["bits_per_byte"] == folder.best()["bits_per_byte"]  # type: ignore[index]


@pytest.mark.parametrize(
    ("path", "asked", "message"),
    [
        ("files", {"text": ""}, "text: it must not be empty"),
        ("files", {}, "text: it is missing"),
        ("files", {"text": "ক", "file_type": "sh"}, "file_type: it must be 'txt', 'jsonl', 'csv' or 'tsv'"),
        ("jobs", {"minutes": 1}, "the field 'kind' is missing"),
        ("jobs", {"kind": "rm"}, "it must be 'learn', 'finetune', 'pairs', 'index'"),
        ("jobs", {"kind": "learn", "minutes": 1, "vocab_size": 511}, "vocab_size: it must be 512 or more"),
        ("jobs", {"kind": "learn", "minutes": 0}, "minutes: it must be more than 0"),
        ("jobs", {"kind": "learn", "minutes": "soon"}, "minutes: it must be a number"),
        ("jobs", {"kind": "learn", "minutes": 1, "seed": 1.5}, "seed: it must be an integer"),
        ("jobs", {"kind": "learn", "minutes": 1, "preset": "mimi"}, "did you mean 'mini'"),
        (
            "jobs",
            {"kind": "learn", "minutes": 1, "preset": "vit-digits"},
            "'vit-digits' is not a preset for plain text",
        ),
        ("jobs", {"kind": "learn", "minutes": 1, "preset": "po\0cket"}, "is not a preset for plain text"),
        ("jobs", {"kind": "learn", "minutes": 1, "start": "plain", "vocab_size": 600}, "keeps its sizes"),
        ("jobs", {"kind": "learn", "minutes": 1, "out": "/etc"}, "unknown field 'out'"),
        ("jobs", {"kind": "learn", "minutes": 1, "seed": -1}, "seed: it must be 0 or more"),
        ("jobs", {"kind": "learn", "minutes": 1, "seed": 1 << 63}, "9,223,372,036,854,775,808"),
        ("jobs", {"kind": "index", "texts": ["/etc/passwd"]}, "index.texts.0"),
        ("jobs", {"kind": "index", "texts": ["0" * 12] * 1001}, "index.texts"),
        (
            "jobs",
            {"kind": "finetune", "use": "classify", "table": "0" * 12, "model": "plain"},
            "not found; upload it first",
        ),
        (
            "jobs",
            {"kind": "finetune", "use": "classify", "table": "0" * 12, "model": "a", "fields": ["\0", "b"]},
            "fields.0",
        ),
        ("jobs/000000000000/stop", {}, "not found"),
    ],
)
def test_invalid_jobs_are_rejected_with_a_message(working: Address, path: str, asked: Any, message: str) -> None:
    status = 404 if message.startswith("not found") else 400
    assert message in refused(working, path, status, **asked)


def test_a_model_without_a_run_has_no_curve(working: Address) -> None:
    read(working, "runs/plain", 404)


def test_bounds_are_those_of_the_library() -> None:
    assert LearnJob(kind="learn", minutes=1, seed=LARGEST_SEED).seed == LARGEST_SEED
    texts = ["নদীর ধারে একটি গ্রাম ছিল।"] * 50
    for kind in ("unigram", "bpe", "wordpiece"):
        assert train_tokenizer(texts, kind, LEAST_VOCABULARY).vocab_size <= LEAST_VOCABULARY
