"""Our own addresses: letters and tokens, what could come next, counters; and a schema that keeps its word."""

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from tests.loopback import http
from tests.server.conftest import Address

import kotha
from kotha.artifacts import model_folder as bundle
from kotha.model.presets import presets
from kotha.server.settings import Limits
from kotha.text.akshara import aksharas

TEXT = "নদীর ধারে ক্ষণিক"


def post(address: Address, path: str, **asked: Any) -> Any:
    said = http.post(address.url + path, json={"model": "plain", **asked}, timeout=60)
    assert said.status_code == 200, said.text
    return said.json()


def test_a_text_as_letters_and_tokens_and_back(address: Address) -> None:
    tokenizer = bundle.load(address.folder / "plain").tokenizer
    assert tokenizer is not None
    said = post(address, "/api/tokenize", text=TEXT)
    ids = [token["id"] for token in said["tokens"]]
    assert ids == tokenizer.encode(TEXT) and said["letters"] == aksharas(TEXT) and said["bytes"] == len(TEXT.encode())
    assert post(address, "/api/detokenize", tokens=ids)["text"] == TEXT
    refused = http.post(f"{address.url}/api/detokenize", json={"model": "plain", "tokens": [999_999]})
    assert refused.status_code == 400 and "outside the vocabulary" in refused.json()["error"]["message"]


def test_what_could_come_next_is_the_models_own_distribution(address: Address) -> None:
    opened = bundle.load(address.folder / "plain")
    assert opened.tokenizer is not None
    said = post(address, "/api/next", text=TEXT, count=5)["tokens"]
    ids = [opened.tokenizer.special["eos"], *opened.tokenizer.encode(TEXT)]
    with torch.no_grad():
        wanted = opened.model(torch.tensor([ids]))[0, -1, : opened.tokenizer.vocab_size].softmax(-1)  # type: ignore[operator]
    assert [each["id"] for each in said] == wanted.topk(5).indices.tolist()
    assert [each["probability"] for each in said] == pytest.approx(wanted.topk(5).values.tolist(), abs=1e-5)
    cold = post(address, "/api/next", text=TEXT, count=5, temperature=0.1)["tokens"]
    assert cold[0]["probability"] > said[0]["probability"]


def test_it_says_how_it_fares(address: Address) -> None:
    assert http.get(f"{address.url}/ready", timeout=60).json()["status"] == "ready"
    post(address, "/v1/completions", prompt=TEXT, max_tokens=3)
    counted = http.get(f"{address.url}/metrics").text
    assert 'kotha_requests_total{path="/v1/completions",status="200"}' in counted
    assert 'kotha_waiting{model="plain"} 0.0' in counted
    assert TEXT not in counted and "kotha_first_byte_seconds_bucket" in counted
    http.get(f"{address.url}/some/secret/path")
    assert "secret" not in http.get(f"{address.url}/metrics").text, "what is asked for is not what is counted by"


def test_every_field_of_every_request_and_answer_is_described(address: Address) -> None:
    told = http.get(f"{address.url}/openapi.json").json()
    models = told["components"]["schemas"]
    routes = {f"{way} {path}": about for path, ways in told["paths"].items() for way, about in ways.items()}
    described = models | routes
    for name, each in models.items():
        described |= {f"{name}.{field}": about for field, about in each.get("properties", {}).items()}
    for path, route in routes.items():
        described |= {f"{path} {each['name']}": each for each in route.get("parameters", [])}
    assert len(models) > 50
    assert [name for name, each in described.items() if not each.get("description")] == []
    assert "part of a character" in models["TokenPiece"]["properties"]["part"]["description"]


@pytest.mark.parametrize("temperature", [1e-9, 0.5, 2.0])
def test_a_temperature_divides_among_what_is_told(address: Address, temperature: float) -> None:
    plain = post(address, "/api/next", text=TEXT, count=5)["tokens"]
    told = post(address, "/api/next", text=TEXT, count=5, temperature=temperature)["tokens"]
    logits = torch.tensor([each["probability"] for each in plain], dtype=torch.float64).log()
    expected = torch.softmax(logits / temperature, 0)
    torch.testing.assert_close(torch.tensor([each["probability"] for each in told]).double(), expected)


@pytest.mark.slow
def test_schemathesis_finds_nothing(models: Path, tmp_path: Path, serve: Any) -> None:
    """Requests that nobody would write, of a model and an index that are there."""
    pytest.importorskip("schemathesis", reason="it thinks of requests that nobody would write")
    shutil.copytree(models / "plain", tmp_path / "box")
    (tmp_path / "river.txt").write_text("নদীর ধারে একটি গ্রাম।", encoding="utf-8")
    kotha.Index(tmp_path / "stories.index").update(tmp_path / "river.txt")
    limits = Limits(rows=8, tokens=50, choices=8, prompts=8, studied=64)
    at = serve(tmp_path / "box", limits=limits, jobs=tmp_path / "jobs", indexes=(str(tmp_path / "stories.index"),))
    checks = "not_a_server_error,status_code_conformance,content_type_conformance,response_schema_conformance"
    schema = http.get(f"{at.url}/openapi.json").json()
    for each in schema["components"]["schemas"].values():
        for name, there in {"model": "box", "index": "stories", "run": "box"}.items():
            if name in each.get("properties", {}) and each["title"].endswith("Request"):
                each["properties"][name] = {"type": "string", "enum": [there]}
    (tmp_path / "schema.json").write_text(json.dumps(schema))
    command = [Path(sys.executable).with_name("schemathesis"), "run", "schema.json", "--at.url", at.url]
    asked = [*command, "--checks", checks, "--max-examples", "30", "--seed", "1"]
    done = subprocess.run(asked, capture_output=True, text=True, check=False, timeout=900, cwd=tmp_path)
    assert done.returncode == 0, done.stdout[-4000:]


def test_a_design_for_a_text_of_a_size_that_there_is_not_yet(address: Address) -> None:
    told = http.post(f"{address.url}/api/plan", json={"minutes": 1, "text_bytes": 2_000_000}, timeout=120)
    assert told.status_code == 200, told.text
    assert told.json()["design"] is not None and told.json()["epochs"] > 0
    both = http.post(f"{address.url}/api/plan", json={"minutes": 1}, timeout=60)
    assert both.status_code == 400 and "go together" in both.json()["error"]["message"]


def test_the_machine_and_the_presets_are_told(address: Address) -> None:
    machine = http.get(f"{address.url}/api/machine", timeout=60).json()
    assert machine["memory_bytes"] > 0 and machine["operations_per_second"] > 0
    names = [each["name"] for each in http.get(f"{address.url}/api/presets").json()]
    assert names == [each.name for each in presets()]
