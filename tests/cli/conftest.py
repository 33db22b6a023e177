"""What the tests of the commands share: a little data folder, made by the commands themselves."""

from pathlib import Path

import pytest

from kotha.cli.main import main


@pytest.fixture(scope="session")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data folder; beside it the stories, ``s.jsonl``, and the tokenizer, ``tok``. Nobody may change it."""
    folder = tmp_path_factory.mktemp("data")
    stories, tokenizer = str(folder / "s.jsonl"), str(folder / "tok")
    assert main(["corpus", "stories", "--documents", "60", "--out", stories]) == 0
    assert main(["tokenizer", "train", stories, "--vocab-size", "700", "--out", tokenizer]) == 0
    assert main(["prepare", stories, "--tokenizer", tokenizer, "--out", str(folder / "data")]) == 0
    return folder / "data"
