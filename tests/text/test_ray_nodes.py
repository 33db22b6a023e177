"""A Ray cluster with several local nodes: a lost node is replaced, and an unresponsive one raises an error."""

import json
import random
import time
from importlib.util import find_spec

import pytest
from tests.text.conftest import SENTENCES, trained
from tests.text.test_ray_pool import contents

import kotha
from kotha.errors import KothaError
from kotha.text.parallel import worker_pool

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(find_spec("ray") is None, reason="Ray is not installed: pip install 'kotha[ray]'"),
]


@pytest.fixture
def nodes():
    import ray  # imported here, because it reads its settings on import
    from ray.cluster_utils import Cluster

    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False})
    lost = cluster.add_node(num_cpus=2)
    ray.init(cluster.address, log_to_driver=False, logging_level="ERROR")
    try:
        yield cluster, lost
    finally:
        ray.shutdown()
        cluster.shutdown()


def test_a_lost_node_is_replaced_by_others(nodes, tmp_path, monkeypatch):
    cluster, lost = nodes
    monkeypatch.setattr("kotha.text.clean.leakage._BATCH_CHARACTERS", 4000)
    texts = (" ".join(random.Random(number).sample(SENTENCES, 20)) for number in range(600))
    corpus = tmp_path / "corpus.jsonl"
    corpus.write_text("\n".join(json.dumps({"text": text}) for text in texts), encoding="utf-8")
    kotha.prepare(corpus, trained("unigram"), tmp_path / "alone", workers=1)
    gone: list[float] = []

    def end_it(stage: str, done: int, total: int) -> None:
        if str(stage) == "encoding" and done > total / 2 and not gone:
            gone.append(time.monotonic())
            cluster.remove_node(lost, allow_graceful=False)

    kotha.prepare(corpus, trained("unigram"), tmp_path / "ray", workers=3, on="ray", on_progress=end_it)
    assert gone
    assert contents(tmp_path / "ray") == contents(tmp_path / "alone")


def test_a_silent_address_times_out(listener):
    start = time.monotonic()
    with (
        pytest.raises(KothaError, match=f"Ray at 127.0.0.1:{listener} cannot be reached"),
        worker_pool(f"ray://127.0.0.1:{listener}", 1),
    ):
        pass
    assert time.monotonic() - start < 120
