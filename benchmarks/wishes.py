"""Settings as words on a benchmark's command line, without the libraries of ours: a bare GPU box lacks them."""

import tomllib
from collections.abc import Sequence
from typing import Any


def from_words(words: Sequence[str]) -> dict[str, Any]:
    """NAME=VALUE words as settings; a value is read as TOML would, or else is a plain word."""
    found: dict[str, Any] = {}
    for word in words:
        name, _, value = word.partition("=")
        try:
            found[name] = tomllib.loads(f"value = {value}")["value"]
        except ValueError:
            found[name] = value
    return found
