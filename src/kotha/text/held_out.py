"""Held-out text as tokens, with the number of bytes and characters that they encode.

As in a data folder, documents are concatenated, and each ends with the end-of-text token, which is predicted like any
other. A file and a validation split therefore give the same results, computed as in training: the bits of all tokens,
including end-of-text, divided by the bytes or characters of the normalized text, which do not include that token.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import islice
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from kotha.errors import DataError
from kotha.i18n.message import Plural, Text
from kotha.storage.status import is_file
from kotha.text.choices import Errors
from kotha.text.corpus.documents import read_documents
from kotha.text.corpus.problems import CorpusProblem
from kotha.text.shards import DATASET_FILE, Dataset, Split
from kotha.text.tokenizer.tokenizer import Tokenizer

Line = NDArray[np.int64]
Counts = NDArray[np.int64]

_BATCH = 1000


@dataclass(frozen=True)
class HeldOut:
    """Documents to evaluate on."""

    name: Text  # where they come from, for messages
    line: Line  # all tokens; each document ends with ``end``: (N,)
    end: int  # the end-of-text token
    bytes: int  # UTF-8 bytes of the normalized text
    characters: int  # code points of the normalized text
    tokenizer: str  # fingerprint of the tokenizer
    unknown: int = 0  # number of unknown tokens
    changed: int = 0  # documents that the tokens do not reproduce: unknown characters, lost spaces or line breaks

    @cached_property
    def offsets(self) -> Line:
        """The start of each document, and the end of the last: (documents + 1,)."""
        return np.concatenate([[0], np.flatnonzero(self.line == self.end) + 1])

    @property
    def documents(self) -> int:
        """The number of documents."""
        return len(self.offsets) - 1

    def __iter__(self) -> Iterator[Line]:
        """Iterate over the tokens of each document, including its end-of-text token."""
        return (self.line[start:stop] for start, stop in zip(self.offsets[:-1], self.offsets[1:], strict=True))


def read_held_out(
    path: str | Path,
    tokenizer: Tokenizer,
    *,
    split: str = "validation",
    field: str = "text",
    errors: Errors = "stop",
    on_problem: Callable[[CorpusProblem], None] | None = None,
    most_bytes: int | None = None,
) -> HeldOut:
    """Read the text at a path: a split of a data folder, or any input of ``read_documents``.

    ``most_bytes`` keeps only the first documents that together have that size; the name then includes their number.
    """
    if is_file(Path(path) / DATASET_FILE):
        found = from_dataset(Dataset(path), tokenizer, split)
        if most_bytes is None or found.bytes <= most_bytes:
            return found
        name, texts = found.name, (tokenizer.decode(document[:-1].tolist()) for document in found)
    else:
        documents = read_documents([path], field=field, errors=errors, on_problem=on_problem)
        name, texts = str(path), (document.text for document in documents)
    if most_bytes is None:
        return from_texts(texts, tokenizer, name)
    first: list[str] = []
    for text in texts:
        if most_bytes <= 0:
            n = len(first)
            name = Plural("the first {n} document of {name}", "the first {n:,} documents of {name}", n=n, name=name)
            break
        first.append(text)
        most_bytes -= len(text.encode())
    return from_texts(first, tokenizer, name)


def from_texts(texts: Iterable[str], tokenizer: Tokenizer, name: Text = "texts") -> HeldOut:
    """Encode documents given as text."""
    end = end_token(tokenizer)
    parts: list[Line] = []
    n_bytes = n_characters = changed = 0
    remaining = iter(texts)
    while batch := list(islice(remaining, _BATCH)):
        for text, ids in zip(batch, tokenizer.encode_batch(batch), strict=True):
            if ids:  # can be empty after normalization
                normalized = tokenizer.normalize(text)
                n_bytes += len(normalized.encode())
                n_characters += len(normalized)
                changed += tokenizer.decode(ids) != normalized
                parts.append(np.array([*ids, end], np.int64))
    if not parts:
        raise DataError("{name} contains no text to evaluate on", name=name)
    return replace(_build(name, np.concatenate(parts), n_bytes, n_characters, tokenizer), changed=changed)


def from_dataset(data: Dataset, tokenizer: Tokenizer, split: str = "validation") -> HeldOut:
    """Return a split of a data folder prepared with the same tokenizer."""
    if data.tokenizer.fingerprint != tokenizer.fingerprint:
        raise DataError(
            "{path} was prepared with tokenizer {theirs}, but the model uses {ours}, so the token ids do not match; "
            "pass the text itself, or run `kotha prepare` again",
            path=data.path,
            theirs=data.tokenizer.fingerprint,
            ours=tokenizer.fingerprint,
        )
    held_out = data[split]
    if not held_out.info.tokens:
        raise DataError(
            "{path} has no {split} documents; run `kotha prepare` with a validation share, or pass a text file",
            path=data.path,
            split=split,
        )
    info = held_out.info
    return _build(f"{data.path} ({split})", tokens_of(held_out), info.bytes, info.characters, tokenizer)


def tokens_of(split: Split, most: int | None = None) -> Line:
    """Return the concatenated tokens of a split, or only the first ``most``."""
    parts: list[Line] = []
    remaining = split.info.tokens if most is None else most
    for shard in split.shards:
        parts.append(np.asarray(shard[:remaining], np.int64))
        remaining -= len(parts[-1])
    return np.concatenate(parts) if parts else np.empty(0, np.int64)


def end_token(tokenizer: Tokenizer) -> int:
    """Return the end-of-text token, which separates the documents."""
    if "eos" not in tokenizer.special:
        raise DataError("this tokenizer has no end-of-text token to separate documents")
    return tokenizer.special["eos"]


def _build(name: Text, line: Line, n_bytes: int, n_characters: int, tokenizer: Tokenizer) -> HeldOut:
    unknown = tokenizer.special.get("unk")
    n_unknown = 0 if unknown is None else int(np.count_nonzero(line == unknown))
    return HeldOut(name, line, end_token(tokenizer), n_bytes, n_characters, tokenizer.fingerprint, n_unknown)


def frequency_nats(learned: Counts, held_out: Counts) -> float:
    """Return the mean cross-entropy of held-out answers under the training frequencies: (V,), (V,) -> nats.

    Each count is increased by one (Laplace smoothing), so that an unseen answer has a probability above 0.

    >>> round(frequency_nats(np.array([2, 0]), np.array([1, 1])), 4)  # (-ln 3/4 - ln 1/4) / 2
    0.837
    """
    probabilities = (learned + 1) / (learned.sum() + len(learned))
    return -float((held_out * np.log(probabilities)).sum() / held_out.sum())
