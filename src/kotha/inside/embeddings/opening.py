"""From a run folder to its table of embeddings, with how often training saw each token where that can be told."""

import json
from pathlib import Path

import numpy as np

from kotha import bundle
from kotha.errors import KothaError
from kotha.inside.embeddings.words import Embeddings
from kotha.model.family import Model
from kotha.text.shards import Dataset
from kotha.text.tokenizer import Tokenizer


def open_embeddings(folder: str | Path) -> tuple[Model, Embeddings]:
    """The model of a folder and its table; tokens are counted if the run's data folder is still there."""
    found = bundle.load(folder)
    counts = None if found.tokenizer is None else token_counts(Path(folder), found.tokenizer)
    return found.model, Embeddings(found.model, found.tokenizer, counts)


def token_counts(folder: Path, tokenizer: Tokenizer) -> list[int] | None:
    """How often each token stands in the text that a run learned from; None where its data folder is gone."""
    try:
        path = json.loads((folder / "config.json").read_text(encoding="utf-8"))["data"]["path"]
        data = Dataset(path, verify=False)
        shards = data["train"].shards
    except (OSError, ValueError, KeyError, TypeError, KothaError):
        return None
    if data.tokenizer.fingerprint != tokenizer.fingerprint:
        return None
    counts = sum(np.bincount(shard, minlength=tokenizer.vocab_size) for shard in shards)
    return np.asarray(counts).tolist() if shards else None
