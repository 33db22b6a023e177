"""What the tests of the commands share: a little data folder, made by the commands themselves."""

from pathlib import Path

import pytest
from tests.prepared import prepared_by_commands


@pytest.fixture(scope="session")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data folder; beside it the stories, ``s.jsonl``, and the tokenizer, ``tok``. Nobody may change it."""
    return prepared_by_commands(tmp_path_factory.mktemp("data"), vocab_size=700)
