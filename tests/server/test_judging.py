"""Blind comparison over HTTP: judgements are stored as by ``kotha judge``, and results are shown only at the end."""

from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.server.conftest import started

from kotha.evaluation.judge.session import JudgingSession
from kotha.server.app import make_app
from kotha.server.settings import ServeSettings

PROMPTS = ["নদীর ধারে", "মা বললেন", "একদিন", "গ্রামের পথে", "বাবা", "সকালে", "রাতে", "পাখি", "স্কুলে", "বৃষ্টি", "আকাশ", "গল্প"]


@pytest.fixture(scope="module")
def client(models: Path, tmp_path_factory: pytest.TempPathFactory) -> Any:
    folder = tmp_path_factory.mktemp("judged")
    names = [str(models / name) for name in ("plain", "taught")]
    for url in started(make_app(names, ServeSettings(jobs=folder), device="cpu")):
        with httpx.Client(base_url=url, timeout=120) as client:
            yield client, folder


def test_judgements_are_stored_and_results_come_late(client: Any) -> None:
    client, folder = client
    asked = {"models": ["plain", "taught"], "prompts": PROMPTS, "tokens": 6}
    answer = client.post("/api/judgings", json=asked).json()
    id, total = answer["id"], answer["left"]
    assert total + answer["same"] == len(PROMPTS)
    assert not {"models", "model"} & set(answer["pair"]), "nobody is told whose text it is"
    for count in range(1, total + 1):
        pair = client.get(f"/api/judgings/{id}", params={"judge": "মিনা"}).json()["pair"]
        result = {"judge": "মিনা", "pair": pair["id"], "choice": ("left", "right", "tie")[count % 3]}
        answer = client.post(f"/api/judgings/{id}", json=result).json()
        assert (answer["judged"], answer["left"]) == (count, total - count)
        assert bool(answer["meetings"]) == (count >= 10 or count == total)
    assert answer["pair"] is None
    [meeting] = answer["meetings"]
    kept = JudgingSession.open(folder / "judgings" / id).result().to_dict()["meetings"][0]
    assert meeting == kept


def test_mistakes_are_reported(client: Any) -> None:
    client, _ = client
    twice = client.post("/api/judgings", json={"models": ["plain", "plain"], "prompts": ["মা"]})
    assert twice.status_code == 400 and "twice" in twice.json()["error"]["message"]
    assert client.get("/api/judgings/0123456789ab").status_code == 404
    nobody = client.post("/api/judgings", json={"models": ["plain", "nobody"], "prompts": ["মা"]})
    assert nobody.status_code == 404
