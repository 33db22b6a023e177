"""What the server says is told as data, for the studio to say it in Bangla; forms of old are those of the sources."""

import ast
import json
import re
import time
from pathlib import Path

import httpx
import pytest

import kotha
from kotha.i18n.catalogue import catalogue
from kotha.report.built import WORDS

pytest.importorskip("fastapi", reason="the server stands on FastAPI")

from tests.server.conftest import models, started  # noqa: F401 - a fixture

from kotha.server.app import make_app
from kotha.server.settings import ServeSettings

SENTENCES = json.loads((WORDS / "told.json").read_text(encoding="utf-8"))
# Tables that something is wrong with, by what is said of them.
TABLES = {
    "table.fields": "only one column\nআমি\n",
    "table.empty": "text,label\n",
    "table.hole": "text,label\nআমি,\n",
    "table.uneven": "text,label\nআমি,ক,খ\n",
}
FORMS = {key: entry["en"] for key, entry in SENTENCES.items() if key != "english"}
# What a plan's page knows again, beside its own words.
PLAN = json.loads((WORDS / "plan.json").read_text(encoding="utf-8"))
FORMS |= {f"plan.{key}": entry["en"] for key, entry in PLAN.items() if key.split(".")[0] in ("why", "not", "source")}


@pytest.fixture(scope="module")
def literals() -> str:
    """Every text that stands in the sources, f-strings by their parts."""
    found = []
    for path in Path(kotha.__file__).parent.rglob("*.py"):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        found += [
            node.value for node in ast.walk(tree) if isinstance(node, ast.Constant) and isinstance(node.value, str)
        ]
    return "\n".join(found)


@pytest.mark.parametrize("key", [key for key in FORMS if key not in TABLES])
def test_a_form_is_one_that_the_sources_say(key: str, literals: str) -> None:
    clauses = [part.strip(" '()=") for part in re.split(r"\{\w+\}|[,;:]", FORMS[key])]
    assert [clause for clause in clauses if clause not in literals] == []


def test_what_a_learner_meets_is_told_as_data(models: Path, tmp_path: Path) -> None:  # noqa: F811
    app = make_app([str(models / "plain")], ServeSettings(jobs=tmp_path), device="cpu")
    for url in started(app):
        with httpx.Client(base_url=url, timeout=60) as client:
            refused = [
                client.post("/api/write", json={"model": "plain", "prompt": "মা " * 500}),
                client.post("/api/write", json={"model": "plane", "prompt": "মা"}),
                client.post("/api/tokenize", json={"model": "plain", "text": "মা" * 20_000}),
                client.post("/api/tokenize", json={"model": "plain"}),
            ]
            for answer in refused:
                error = answer.json()["error"]
                assert error["template"] in catalogue("bn"), error
                assert error["message"] != error["template"] and error["values"]
            for table in TABLES.values():
                file = client.post("/api/files", json={"text": table, "ending": "csv"}).json()["id"]
                error = client.post("/api/table", json={"file": file, "use": "classify"}).json()["error"]
                assert error["message"] and error["template"] and "values" in error
            job = client.post("/api/jobs", json={"kind": "tokenizer", "texts": [file]}).json()["id"]
            while (status := client.get(f"/api/jobs/{job}").json())["state"] == "running":
                time.sleep(0.1)
            assert status["state"] == "failed" and status["error"]["text"] in status["said"], status
