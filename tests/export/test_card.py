"""Information from a run for the model card; unreadable files raise errors."""

import json
from pathlib import Path

import pytest

from kotha.errors import KothaError
from kotha.export.card import About, _scores


def test_missing_files_are_ignored_and_damaged_ones_raise_an_error(tmp_path: Path) -> None:
    assert About.of(tmp_path) == About.of(tmp_path / "nowhere") == About.of(None) == About()
    (tmp_path / "config.json").write_text(json.dumps({"training": {}}), encoding="utf-8")
    assert About.of(tmp_path, "mit") == About({"training": {}}, license="mit")
    (tmp_path / "summary.json").write_text("{", encoding="utf-8")
    with pytest.raises(KothaError, match=r"summary\.json is corrupted"):
        About.of(tmp_path)


@pytest.mark.skipif(not Path("/proc/self/mem").exists(), reason="Linux has a file whose first page nobody can read")
@pytest.mark.parametrize("name", ["config.json", "summary.json"])
def test_an_io_error_is_raised(tmp_path: Path, name: str) -> None:
    (tmp_path / name).symlink_to("/proc/self/mem")
    with pytest.raises(KothaError, match=f"{name} cannot be read: Input/output error"):
        About.of(tmp_path)
    (tmp_path / name).unlink()
    (tmp_path / "README.md").symlink_to("/proc/self/mem")
    with pytest.raises(OSError, match=r"Input/output error: .*README\.md"):
        About.of(tmp_path)


@pytest.mark.parametrize(
    ("task", "unit"), [("text-classes", "answer"), ("image-classes", "answer"), ("answers", "token"), ("", "token")]
)
def test_the_loss_of_a_classifier_is_per_answer(task: str, unit: str) -> None:
    about = About({"task": task} if task else {}, {"loss_nats": 0.5, "accuracy": 0.9})
    assert f"| loss (nats per {unit}) | 0.5000 |" in _scores(about)
