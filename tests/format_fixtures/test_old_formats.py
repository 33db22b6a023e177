"""The folders of every release can be opened, and give the same output as when they were written.

A release adds fixtures (``curate.py``); existing ones are never changed. If a format changes, the old reader is kept.
"""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from tests.format_fixtures.guide import answers

import kotha

ROOMS = sorted(path.parent for path in Path(__file__).parent.glob("*/expected.json"))


def near(found: Any, kept: Any) -> bool:
    """Return whether two values are equal, except for the last digits, which depend on torch's version."""
    if isinstance(kept, dict):
        return isinstance(found, dict) and found.keys() == kept.keys() and all(near(found[k], kept[k]) for k in kept)
    if isinstance(kept, list):
        return isinstance(found, list) and len(found) == len(kept) and all(map(near, found, kept))
    return bool(found == (pytest.approx(kept, abs=1e-4, rel=1e-4) if isinstance(kept, float) else kept))


@pytest.fixture(params=ROOMS, ids=[room.name for room in ROOMS])
def room(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A copy of the fixtures, so that tests do not change them."""
    return Path(shutil.copytree(request.param, tmp_path / "room"))


def test_there_is_a_room_for_this_release() -> None:
    assert kotha.__version__ in [room.name for room in ROOMS]


def test_everything_says_what_it_said(room: Path) -> None:
    kept = json.loads((room / "expected.json").read_text(encoding="utf-8"))
    found = json.loads(json.dumps(answers(room), ensure_ascii=False))
    for name in found:
        assert near(found[name], kept[name]), name


def test_a_training_goes_on_where_it_was(room: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(room)
    run = kotha.train("data/unigram", out="runs/gpt", resume=True, steps=9)
    assert run.summary["steps"] == 9


def test_what_is_kept_is_seen_to_differ() -> None:
    assert near({"a": [1.0, "ক"]}, {"a": [1.00001, "ক"]})
    assert not near({"a": [1.0, "ক"]}, {"a": [1.1, "ক"]}) and not near([1], [1, 2]) and not near({"a": 1}, {"b": 1})
