"""A worker pool on Ray: its results are byte-identical to those of a single process, even if workers die."""

import contextlib
import json
import os
import random
import signal
import time
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import pytest
from tests.text.conftest import SENTENCES, trained
from tests.text.test_parallel import DOUBLED, Doubler

import kotha
from kotha.errors import DataError, KothaError
from kotha.text.parallel import ray_cluster, worker_pool
from kotha.text.parallel.ray_cluster import RayPool

# Ray is not imported here, because it reads its settings on import.
pytestmark = pytest.mark.skipif(find_spec("ray") is None, reason="Ray is not installed: pip install 'kotha[ray]'")


@pytest.fixture(scope="module", autouse=True)
def ray():
    """The ray module, connected to one cluster for all tests, because starting a cluster takes seconds."""
    with worker_pool("ray", 2):
        yield import_module("ray")


@pytest.fixture
def corpus(tmp_path, monkeypatch):
    """Many batches of documents, including exact and near duplicates and an invalid line."""
    monkeypatch.setattr("kotha.text.clean.leakage._BATCH_CHARACTERS", 4000)
    texts = [" ".join(random.Random(number).sample(SENTENCES, 20)) for number in range(300)]
    lines = [json.dumps({"text": text}) for text in [*texts, *texts[:9], *(f"{text} আর।" for text in texts[20:30])]]
    (tmp_path / "corpus.jsonl").write_text("\n".join([*lines, "{broken"]), encoding="utf-8")
    return tmp_path / "corpus.jsonl"


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def prepared(corpus: Path, name: str, **options) -> dict[str, bytes]:
    how = {"errors": "skip", **options}
    kotha.prepare(corpus, trained("unigram"), corpus.parent / name, **how)
    return contents(corpus.parent / name)


def family() -> list[Path]:
    """This process and its descendants."""
    found, left = [], [os.getpid()]
    while left:
        process = Path(f"/proc/{left.pop()}")
        try:
            left += [int(child) for thread in process.glob("task/*/children") for child in thread.read_text().split()]
        except OSError:  # it has just ended
            continue
        found.append(process)
    return found


def worker_processes() -> list[int]:
    """The worker processes of the cluster, found by Ray's process names."""
    names = ((process, process.joinpath("cmdline").read_bytes()) for process in family() if process.exists())
    return [int(process.name) for process, name in names if name.startswith(b"ray::")]


@pytest.mark.skipif(not Path("/proc").is_dir(), reason="finds the workers in /proc")
@pytest.mark.parametrize(
    ("workers", "deaths"), [(2, 1), *(pytest.param(*each, marks=pytest.mark.slow) for each in [(1, 0), (3, 0), (2, 2)])]
)
def test_shards_are_equal_for_any_number_of_workers_and_deaths(corpus, workers, deaths):
    killed: list[int] = []

    def kill(stage: str, done: int, total: int) -> None:
        if str(stage) == "encoding" and done > total / 3 and not killed:
            for process in worker_processes()[:deaths]:
                os.kill(process, signal.SIGKILL)
                killed.append(process)

    alone = prepared(corpus, "alone", workers=1, duplicates="near")
    assert prepared(corpus, "ray", workers=workers, on="ray", duplicates="near", on_progress=kill) == alone
    assert len(killed) == deaths
    described = json.loads(alone["dataset.json"])
    assert described["splits"]["train"]["documents"] == 285
    assert (described["made_by"]["duplicates"], described["made_by"]["leaked"]) == (19, 0)


def test_a_tokenizer_is_equal_for_any_worker_pool(corpus):
    made = [
        kotha.train_tokenizer(corpus, vocab_size=600, errors="skip", **how).backend.to_str()
        for how in ({}, {"workers": 2}, {"on": "ray", "workers": 2})
    ]
    assert len(set(made)) == 1


@pytest.mark.slow
def test_an_item_that_kills_every_worker_is_an_error(ray):
    with pytest.raises(DataError, match="4 workers of the Ray cluster died in a row"):
        list(RayPool(ray, 2).map(partial(Doubler, 3), range(20)))


def test_results_come_in_order_and_few_are_in_flight(ray):
    taken: list[int] = []
    results = RayPool(ray, 2).map(Doubler, (taken.append(number) or number for number in range(20)))
    assert next(results) == 0
    assert len(taken) <= 5
    assert list(results) == DOUBLED[1:]


class Refuser:
    def __call__(self, _: int) -> int:
        raise KothaError("not today")


def test_an_error_of_a_worker_is_raised_unchanged(ray, monkeypatch):
    with pytest.raises(KothaError, match=r"^not today$"):
        list(RayPool(ray, 1).map(Refuser, [1]))
    monkeypatch.setattr(ray_cluster, "versions", lambda: ["kotha 0.0.0"])
    with pytest.raises(KothaError, match=r"but this machine has kotha 0.0.0; install the same versions"):
        list(RayPool(ray, 1).map(Doubler, [1]))


def test_a_cluster_without_a_free_core_times_out(ray, monkeypatch):
    monkeypatch.setattr(ray_cluster, "_SECONDS_TO_BEGIN", 1)
    with_all_cores = ray.remote(num_cpus=2)(lambda: time.sleep(60)).remote()
    ray.wait([with_all_cores], timeout=3)
    try:
        with pytest.raises(KothaError, match="no worker of the Ray cluster started within 1 seconds"):
            list(RayPool(ray, 1).map(Doubler, [1]))
    finally:
        ray.cancel(with_all_cores, force=True)


def test_a_second_cluster_is_rejected(listener):
    with (
        pytest.raises(KothaError, match="is already connected to a Ray cluster"),
        worker_pool(f"ray://127.0.0.1:{listener}", 1),
    ):
        pass


@pytest.mark.skipif(not Path("/proc/net/tcp").is_file(), reason="reads the open ports in /proc")
def test_a_temporary_cluster_listens_on_loopback_only():
    sockets = set()
    for process in family():
        with contextlib.suppress(OSError):  # it has just ended
            sockets |= {str(each.readlink()) for each in process.joinpath("fd").iterdir() if each.is_symlink()}
    listening = {}
    for table in ("tcp", "tcp6"):
        for line in Path(f"/proc/net/{table}").read_text(encoding="ascii").splitlines()[1:]:
            fields = line.split()
            if fields[3] == "0A" and f"socket:[{fields[9]}]" in sockets:
                listening[fields[1]] = fields[1].rpartition(":")[0][-8:]
    assert len(listening) > 3, "no listening sockets found"
    assert set(listening.values()) == {"0100007F"}, "127.0.0.1 in little-endian"


def test_a_temporary_cluster_requires_its_token(ray):
    grpc = pytest.importorskip("grpc", reason="asks as any client would, with grpcio")
    with grpc.insecure_channel(ray.get_runtime_context().gcs_address) as channel:
        ask = channel.unary_unary("/ray.rpc.JobInfoGcsService/GetAllJobInfo")
        with pytest.raises(grpc.RpcError) as refused:
            ask(b"", timeout=20)
        assert refused.value.code() == grpc.StatusCode.UNAUTHENTICATED
        ask(b"", timeout=20, metadata=[("authorization", f"Bearer {os.environ['RAY_AUTH_TOKEN']}")])
