"""``kotha import`` as a user types it; invalid folders are tested in tests/export/test_hostile.py."""

import json
import shutil
import sys
from pathlib import Path

import pytest
from tests.export.models import CONFIGS, shaken

from kotha.artifacts.model_folder import load
from kotha.cli.main import main
from kotha.export.huggingface.export import write_hf


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("there") / "hf"
    write_hf(shaken(CONFIGS["course"]), out)
    return out


def test_import_of_a_folder_with_parity(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["import", str(folder), "--out", str(tmp_path / "model"), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["architecture"] == "GPT2LMHeadModel"
    assert found["parity"]["max_logit_difference"] <= 1e-4
    assert found["parity"]["tokens_equal"] is True
    bundle = load(tmp_path / "model")
    assert bundle.config == CONFIGS["course"]
    assert bundle.tokenizer is not None
    assert main(["generate", str(tmp_path / "model"), "নদীর", "--tokens", "3"]) == 0


def test_without_its_tokenizer_and_without_transformers(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "transformers", None)
    assert main(["import", str(folder), "--out", str(tmp_path / "model"), "--no-tokenizer"]) == 0
    output = capsys.readouterr().out
    assert "not checked: transformers is not installed" in output
    assert "imported without a tokenizer" in output
    assert load(tmp_path / "model").tokenizer is None


@pytest.mark.parametrize(
    ("place", "message"),
    [
        ("nowhere", "nowhere not found; give the path of a Hugging Face folder"),
        (".", "is not a Hugging Face folder: it has no config.json"),
        ("ours", "it has no model_type, so this is not a Hugging Face folder"),
    ],
)
def test_import_of_something_else_is_rejected(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], place: str, message: str
) -> None:
    if place == "ours":
        (tmp_path / "ours").mkdir()
        (tmp_path / "ours" / "config.json").write_text('{"format": "kotha-model"}')
    assert main(["import", str(tmp_path / place), "--out", str(tmp_path / "out")]) == 1
    assert message in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_a_failed_import_leaves_nothing(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    there = Path(shutil.copytree(folder, tmp_path / "hf"))
    (there / "generation_config.json").write_text("[]")
    assert main(["import", str(there), "--out", str(tmp_path / "model")]) == 1
    assert f"transformers cannot open {there}" in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["hf"]


def test_a_folder_is_not_replaced_by_its_own_import(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "link").symlink_to(folder)
    before = (folder / "config.json").read_bytes()
    assert main(["import", str(folder), "--out", str(tmp_path / "link"), "--overwrite"]) == 2
    assert "is the source folder; choose another" in capsys.readouterr().err
    assert (folder / "config.json").read_bytes() == before
