"""What a run tells the model card: what is there; what cannot be read is not left out in silence."""

import json
from pathlib import Path

import pytest

from kotha.errors import KothaError
from kotha.export.card import About


def test_what_is_not_there_tells_nothing_and_what_is_broken_is_said(tmp_path: Path) -> None:
    assert About.of(tmp_path) == About.of(tmp_path / "nowhere") == About.of(None) == About()
    (tmp_path / "config.json").write_text(json.dumps({"training": {}}), encoding="utf-8")
    assert About.of(tmp_path, "mit") == About({"training": {}}, license="mit")
    (tmp_path / "summary.json").write_text("{", encoding="utf-8")
    with pytest.raises(KothaError, match=r"summary\.json is broken"):
        About.of(tmp_path)


@pytest.mark.skipif(not Path("/proc/self/mem").exists(), reason="Linux has a file whose first page nobody can read")
@pytest.mark.parametrize("name", ["config.json", "summary.json"])
def test_what_the_disk_does_not_give_is_told(tmp_path: Path, name: str) -> None:
    (tmp_path / name).symlink_to("/proc/self/mem")
    with pytest.raises(KothaError, match=f"{name} cannot be read: Input/output error"):
        About.of(tmp_path)
    (tmp_path / name).unlink()
    (tmp_path / "README.md").symlink_to("/proc/self/mem")
    with pytest.raises(OSError, match=r"Input/output error: .*README\.md"):
        About.of(tmp_path)
