"""Routes for monitoring, plans, the machine and presets; and the OpenAPI document."""

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.loopback import http
from tests.server.conftest import Address, ask, refused

import kotha
from kotha.model.presets import presets
from kotha.server.settings import Limits

TEXT = "নদীর ধারে ক্ষণিক"


def test_health_readiness_and_metrics_are_reported(address: Address) -> None:
    assert http.get(f"{address.url}/ready", timeout=60).json()["status"] == "ready"
    asked = {"model": "plain", "prompt": TEXT, "max_tokens": 3}
    assert http.post(f"{address.url}/v1/completions", json=asked, timeout=60).is_success
    counted = http.get(f"{address.url}/metrics").text
    assert 'kotha_requests_total{path="/v1/completions",status="200"}' in counted
    assert 'kotha_waiting{model="plain"} 0.0' in counted
    assert TEXT not in counted and "kotha_first_byte_seconds_bucket" in counted
    http.get(f"{address.url}/some/secret/path")
    assert "secret" not in http.get(f"{address.url}/metrics").text, "metrics must not contain request data"


def test_every_field_of_every_request_and_answer_is_described(address: Address) -> None:
    result = http.get(f"{address.url}/openapi.json").json()
    models = result["components"]["schemas"]
    routes = {f"{way} {path}": about for path, ways in result["paths"].items() for way, about in ways.items()}
    described = models | routes
    for name, each in models.items():
        described |= {f"{name}.{field}": about for field, about in each.get("properties", {}).items()}
    for path, route in routes.items():
        described |= {f"{path} {each['name']}": each for each in route.get("parameters", [])}
    assert len(models) > 40
    assert [name for name, each in described.items() if not each.get("description")] == []
    assert "part of a character" in models["ViewedToken"]["properties"]["part"]["description"]


@pytest.mark.slow
def test_schemathesis_finds_nothing(models: Path, tmp_path: Path, serve: Any) -> None:
    """Generated requests, for an existing model and an existing index."""
    pytest.importorskip("schemathesis", reason="it thinks of requests that nobody would write")
    shutil.copytree(models / "plain", tmp_path / "box")
    (tmp_path / "river.txt").write_text("নদীর ধারে একটি গ্রাম।", encoding="utf-8")
    kotha.Index(tmp_path / "stories.index").update(tmp_path / "river.txt")
    limits = Limits(rows=8, choices=8, prompts=8)
    at = serve(tmp_path / "box", limits=limits, jobs=tmp_path / "jobs", indexes=(str(tmp_path / "stories.index"),))
    checks = "not_a_server_error,status_code_conformance,content_type_conformance,response_schema_conformance"
    schema = http.get(f"{at.url}/openapi.json").json()
    for each in schema["components"]["schemas"].values():
        for name, there in {"model": "box", "index": "stories", "run": "box"}.items():
            if name in each.get("properties", {}) and each["title"].endswith("Request"):
                each["properties"][name] = {"type": "string", "enum": [there]}
    (tmp_path / "schema.json").write_text(json.dumps(schema))
    command = [Path(sys.executable).with_name("schemathesis"), "run", "schema.json", "--url", at.url]
    asked = [*command, "--checks", checks, "--max-examples", "30", "--seed", "1"]
    done = subprocess.run(asked, capture_output=True, text=True, check=False, timeout=900, cwd=tmp_path)
    assert done.returncode == 0, done.stdout[-4000:]


def test_a_design_for_a_text_size_without_data(address: Address) -> None:
    result = ask(address, "plan", minutes=1, text_bytes=2_000_000, gpu="t4")
    assert result["design"] is not None and result["epochs"] > 0
    assert "data is missing" in refused(address, "plan", minutes=1)


def test_the_machine_and_the_presets_are_described(address: Address) -> None:
    machine = http.get(f"{address.url}/api/machine", timeout=60).json()
    assert machine["memory_bytes"] > 0 and machine["operations_per_second"] > 0
    names = [each["name"] for each in http.get(f"{address.url}/api/presets").json()]
    assert names == [each.name for each in presets()]
