"""What the server says is known in Bangla too: the forms of the catalogue are those that the sources say."""

import ast
import json
import re
from pathlib import Path

import httpx
import pytest

import kotha
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


def form(key: str) -> re.Pattern[str]:
    """As the page knows a sentence again."""
    return re.compile(".*?".join(map(re.escape, re.split(r"\{\w+\}", FORMS[key]))), re.DOTALL)


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


def test_what_a_learner_meets_is_known_again(models: Path, tmp_path: Path) -> None:  # noqa: F811
    app = make_app([str(models / "plain")], ServeSettings(jobs=tmp_path), device="cpu")
    for url in started(app):
        with httpx.Client(base_url=url, timeout=60) as client:
            said = {
                "tokens.many": client.post("/api/write", json={"model": "plain", "prompt": "মা " * 500}),
                "model.none": client.post("/api/write", json={"model": "plane", "prompt": "মা"}),
                "text.long.cut": client.post("/api/tokenize", json={"model": "plain", "text": "মা" * 20_000}),
            }
            for key, table in TABLES.items():
                file = client.post("/api/files", json={"text": table, "ending": "csv"}).json()["id"]
                said[key] = client.post("/api/table", json={"file": file, "use": "classify"})
            for key, answer in said.items():
                message = answer.json()["error"]["message"]
                assert form(key).fullmatch(message), f"{key}: {message}"
