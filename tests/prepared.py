"""A small data folder for tests of training and evaluation: some texts, encoded by a tokenizer."""

import json
from collections.abc import Sequence
from itertools import islice
from pathlib import Path
from typing import Any

from kotha.cli.main import main
from kotha.text.prepare import PrepareOptions, prepare
from kotha.text.shards import Dataset
from kotha.text.stories.corpus import stories
from kotha.text.tokenizer.tokenizer import Tokenizer


def some_stories(seed: int, n_documents: int, kinds: list[str] | None = None) -> list[str]:
    return [story.text for story in islice(stories(seed=seed, kinds=kinds), n_documents)]


def write_lines(path: Path, texts: Sequence[str]) -> Path:
    path.write_text("".join(json.dumps({"text": text}) + "\n" for text in texts), encoding="utf-8")
    return path


# A synthetic language: each word has one translation, in the same order.
WORDS = {"আমি": "I", "তুমি": "you", "ভাত": "rice", "মাছ": "fish", "খাই": "eat", "আনি": "bring", "নদী": "river"}


def made_up_pairs(n_pairs: int) -> list[tuple[str, str]]:
    """Return distinct English and Bangla sentences: the digits of a sentence's number select its three words."""
    words, rows = list(WORDS), []
    for number in range(n_pairs):
        chosen = [words[number // 7**place % 7] for place in range(3)]
        rows.append((" ".join(WORDS[word] for word in chosen), " ".join(chosen)))
    return rows


def write_pairs(file: Path, n_pairs: int, header: tuple[str, str] = ("en", "bn")) -> Path:
    """Write a table of synthetic pairs."""
    file.write_text("".join("\t".join(row) + "\n" for row in (header, *made_up_pairs(n_pairs))), encoding="utf-8")
    return file


def prepared(folder: Path, texts: Sequence[str], tokenizer: Tokenizer, **options: Any) -> Dataset:
    """Prepare ``data`` in a folder from the ``texts.jsonl`` next to it."""
    prepare([write_lines(folder / "texts.jsonl", texts)], tokenizer, folder / "data", PrepareOptions(**options))
    return Dataset(folder / "data")


def prepared_by_commands(folder: Path, vocab_size: int) -> Path:
    """Prepare a data folder ``data`` with commands, next to the stories (``s.jsonl``) and the tokenizer (``tok``)."""
    stories, tokenizer = str(folder / "s.jsonl"), str(folder / "tok")
    assert main(["corpus", "stories", "--documents", "60", "--out", stories]) == 0
    assert main(["tokenizer", "train", stories, "--vocab-size", str(vocab_size), "--out", tokenizer]) == 0
    assert main(["prepare", stories, "--tokenizer", tokenizer, "--out", str(folder / "data")]) == 0
    return folder / "data"
