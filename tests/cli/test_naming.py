"""Which model is meant, and which text, where either may be left out."""

from pathlib import Path

import pytest

from kotha.cli.naming import model_and_file, model_and_prompt, model_and_words
from kotha.errors import UsageError
from kotha.storage import bundled


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "run").mkdir()
    (tmp_path / "box").mkdir()
    (tmp_path / "নদী").mkdir()
    (tmp_path / "text.txt").write_text("নদীর ধারে", encoding="utf-8")


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
def test_a_prompt_alone_is_for_the_box(words: list[str | None], found: tuple[Path, str]) -> None:
    assert model_and_prompt(*words, "generate") == found


@pytest.mark.parametrize("word", ["runn", "runs/last"])
def test_a_word_that_may_be_a_mistyped_folder_is_refused(word: str) -> None:
    with pytest.raises(UsageError, match=f"there is no {word}; name a run folder, or .* kotha generate box {word}"):
        model_and_prompt(word, None, "generate")


@pytest.mark.parametrize(
    ("words", "found"),
    [
        ([None, None], (bundled.FOLDER, None)),
        (["text.txt", None], (bundled.FOLDER, "text.txt")),
        (["run", None], (Path("run"), None)),
        (["run", "text.txt"], (Path("run"), "text.txt")),
        (["box", "text.txt"], (bundled.FOLDER, "text.txt")),
    ],
)
def test_a_file_alone_is_for_the_box(words: list[str | None], found: tuple[Path, str | None]) -> None:
    assert model_and_file(*words) == found


@pytest.mark.parametrize(
    ("first", "others", "found"),
    [
        (None, (), (None, ())),
        ("মা", ("নদী",), (bundled.FOLDER, ("মা", "নদী"))),
        ("run", ("মা",), (Path("run"), ("মা",))),
        ("box", ("মা",), (bundled.FOLDER, ("মা",))),
    ],
)
def test_words_alone_are_for_the_box(first: str | None, others: tuple[str, ...], found: object) -> None:
    assert model_and_words(first, others) == found
