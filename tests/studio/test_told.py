"""The server sends messages as data, which the studio translates to Bangla."""

import time
from pathlib import Path

import httpx
from tests.server.conftest import models, started  # noqa: F401 - a fixture

from kotha.i18n.catalogue import catalogue
from kotha.server.app import make_app
from kotha.server.settings import ServeSettings

# Invalid tables, by the error message for each.
TABLES = {
    "table.fields": "only one column\nআমি\n",
    "table.empty": "text,label\n",
    "table.hole": "text,label\nআমি,\n",
    "table.uneven": "text,label\nআমি,ক,খ\n",
}


def test_what_a_learner_meets_is_told_as_data(models: Path, tmp_path: Path) -> None:  # noqa: F811
    app = make_app([str(models / "plain")], ServeSettings(jobs=tmp_path), device="cpu")
    for url in started(app):
        with httpx.Client(base_url=url, timeout=60) as client:
            refused = [
                client.post("/api/write", json={"model": "plain", "prompt": "মা " * 500}),
                client.post("/api/write", json={"model": "plane", "prompt": "মা"}),
                client.post("/api/card", json={"model": "plain", "text": "মা" * 20_000}),
                client.post("/api/card", json={"model": "plain"}),
            ]
            for answer in refused:
                error = answer.json()["error"]
                assert error["template"] in catalogue("bn"), error
                assert error["message"] != error["template"] and error["values"]
            for table in TABLES.values():
                file = client.post("/api/files", json={"text": table, "file_type": "csv"}).json()["id"]
                error = client.post("/api/table", json={"file": file, "use": "classify"}).json()["error"]
                assert error["message"] and error["template"] and "values" in error
            asked = {"kind": "finetune", "use": "classify", "table": file, "model": "plain"}
            job = client.post("/api/jobs", json=asked).json()["id"]
            while (status := client.get(f"/api/jobs/{job}").json())["state"] == "running":
                time.sleep(0.1)
            assert status["state"] == "failed" and status["error"]["text"] in status["output"], status
