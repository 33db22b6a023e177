"""Names and tags of jobs can change at any time, have a limited length, and do not affect the job."""

import resource
from pathlib import Path
from typing import Any

import pytest
from tests.loopback import http
from tests.server.conftest import Address
from tests.server.test_jobs import working, written  # noqa: F401 - a fixture

from kotha.errors import KothaError
from kotha.server.jobs.store import JobStore
from kotha.server.json_requests import LONGEST_NAME, LONGEST_TAG, MOST_TAGS


def change(address: Address, id: str, **label: Any) -> dict[str, Any]:
    response = http.patch(f"{address.url}/api/jobs/{id}", json=label, timeout=60)
    assert response.status_code == 200, response.text
    found: dict[str, Any] = response.json()
    return found


def test_a_label_is_stored_and_found_by_another_server(tmp_path: Path) -> None:
    store = JobStore(tmp_path)
    id = written(store, "train", 0)
    store.label(id, "গল্পের মডেল", ["ছোট", "গল্প"])
    found = JobStore(tmp_path).status(id)
    assert (found.name, found.tags) == ("গল্পের মডেল", ("ছোট", "গল্প"))
    store.label(id, tags=["বড়"])
    assert (store.status(id).name, store.status(id).tags) == ("গল্পের মডেল", ("বড়",)), "what is left out stays"
    store.label(id, name="", tags=[])
    assert (store.status(id).name, store.status(id).tags) == ("", ()), "as it was begun"


def test_a_training_job_is_started_with_tags(tmp_path: Path) -> None:
    store = JobStore(tmp_path)
    id = store.begin("train", "প্রথম", ["presets"], tags=["গল্প"])
    assert (store.status(id).name, store.status(id).tags) == ("প্রথম", ("গল্প",))


def test_training_runs_are_listed_with_their_tags(working: Address) -> None:  # noqa: F811
    store = JobStore(working.folder)
    id = written(store, "train", 0)
    assert change(working, id, name=" আমার   মডেল ", tags=["ছোট", "র‍্যাম", "ছোট"])["tags"] == ["ছোট", "র‍্যাম"]
    [row] = [each for each in http.get(f"{working.url}/api/runs").json() if each["name"] == id]
    assert (row["title"], row["tags"]) == ("আমার মডেল", ["ছোট", "র‍্যাম"])
    result = http.get(f"{working.url}/api/runs/{id}", timeout=60).json()
    assert (result["title"], result["tags"]) == ("আমার মডেল", ["ছোট", "র‍্যাম"])
    assert http.get(f"{working.url}/api/jobs/{id}").json() == change(working, id), "nothing asked, nothing changed"
    running = written(store, "train", None)
    assert change(working, running, tags=["চলছে"])["state"] == "running"


@pytest.mark.parametrize(
    ("label", "words"),
    [
        ({"tags": ["ক" * (LONGEST_TAG + 1)]}, "tags.0: it is longer than 40 characters; shorten it"),
        ({"tags": ["\u09df" * LONGEST_TAG]}, "tags.0: it has 80 characters, more than 40"),
        ({"tags": [str(each) for each in range(MOST_TAGS + 1)]}, "tags: it has more than 12 items; remove some"),
        ({"tags": [{}] * 100_000}, "tags"),
        ({"tags": ["ভালো", ""]}, "tags.1: it must not be empty"),
        ({"tags": [" \t "]}, "a tag is empty"),
        ({"tags": ["\u200d"]}, "a tag is empty"),
        ({"tags": ["ক, খ"]}, "a tag cannot contain a comma"),
        ({"tags": ["ক\u202eখ"]}, "U+202E"),
        ({"tags": ["ক\x00"]}, "U+0000"),
        ({"tags": ["ক\x1b[31m"]}, "U+001B"),
        ({"tags": "ক"}, "tags: it must be a list"),
        ({"tags": [7]}, "tags.0: it must be a string"),
        ({"tags": ["a" + "\u0316\u0301" * 19]}, "marks"),
        ({"name": "ক" * (LONGEST_NAME + 1)}, "name: it is longer than 200 characters; shorten it"),
        ({"name": "ক\u2066"}, "name: it contains the invisible character U+2066"),
        ({"name": 7}, "name: it must be a string"),
        ({"kind": "train"}, "unknown field 'kind'"),
        ({"commands": [["rm"]]}, "unknown field 'commands'"),
    ],
)
def test_invalid_labels_are_rejected_and_change_nothing(working: Address, label: Any, words: str) -> None:  # noqa: F811
    store = JobStore(working.folder)
    id = written(store, "train", 0)
    store.label(id, "নাম", ["ভালো"])
    response = http.patch(f"{working.url}/api/jobs/{id}", json=label, timeout=60)
    assert response.status_code == 400 and words in response.json()["error"]["message"], response.text[:500]
    assert len(response.text) < 1000
    assert (store.status(id).name, store.status(id).tags) == ("নাম", ("ভালো",))


def test_a_failed_write_keeps_the_old_label(tmp_path: Path) -> None:
    store = JobStore(tmp_path)
    id = written(store, "train", 0)
    store.label(id, tags=["আগের"])
    usual = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (8, usual[1]))  # like a disk that is full after eight bytes
    try:
        with pytest.raises(KothaError):
            store.label(id, tags=["নতুন"])
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, usual)
    assert store.status(id).tags == ("আগের",)
