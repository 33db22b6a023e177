"""The RUN and PROMPT arguments, either of which may be omitted."""

from pathlib import Path

import pytest

from kotha.cli.model_argument import model_and_prompt
from kotha.errors import UsageError
from kotha.storage import bundled


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "run").mkdir()
    (tmp_path / "box").mkdir()
    (tmp_path / "নদী").mkdir()


@pytest.mark.parametrize(
    ("words", "found"),
    [
        ([None, None], (bundled.FOLDER, "")),
        (["", None], (bundled.FOLDER, "")),
        (["আমি", None], (bundled.FOLDER, "আমি")),
        (["Once upon a time", None], (bundled.FOLDER, "Once upon a time")),
        (["ক" * 5000, None], (bundled.FOLDER, "ক" * 5000)),
        (["box", None], (bundled.FOLDER, "")),
        (["box", "run"], (bundled.FOLDER, "run")),
        (["./box", None], (Path("box"), "")),
        (["run", None], (Path("run"), "")),
        (["run", "আমি"], (Path("run"), "আমি")),
        (["নদী", None], (Path("নদী"), "")),
        (["nowhere", "আমি"], (Path("nowhere"), "আমি")),
    ],
)
def test_a_prompt_alone_uses_the_bundled_model(words: list[str | None], found: tuple[Path, str]) -> None:
    assert model_and_prompt(*words, "generate") == found


@pytest.mark.parametrize("word", ["runn", "runs/last"])
def test_a_possibly_mistyped_folder_is_rejected(word: str) -> None:
    with pytest.raises(UsageError, match=f"{word} not found; specify a run folder, or .* kotha generate box {word}"):
        model_and_prompt(word, None, "generate")
