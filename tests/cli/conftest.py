"""Fixtures for command tests: a small data folder."""

from pathlib import Path

import pytest
from tests.prepared import prepared_by_commands


@pytest.fixture(scope="session")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data folder next to the stories (``s.jsonl``) and the tokenizer (``tok``); tests must not modify it."""
    return prepared_by_commands(tmp_path_factory.mktemp("data"), vocab_size=700)
