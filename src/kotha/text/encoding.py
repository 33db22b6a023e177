"""Encoding many documents: in batches, by a worker pool, results in order.

Each worker normalizes, looks for leaked validation documents, and encodes through its own memory of words. The result
does not depend on the number of workers.
"""

from collections.abc import Generator, Iterable
from contextlib import closing
from dataclasses import dataclass

import tokenizers

from kotha.text.clean.leakage import LeakIndex, batches
from kotha.text.parallel.task import WorkerPool, WorkerTask
from kotha.text.tokenizer.memo import Ids, MemoEncoder
from kotha.text.tokenizer.tokenizer import Tokenizer


@dataclass(frozen=True, slots=True)
class EncodedDocument:
    """A document as ids, with the size of its normalized text."""

    label: str
    ids: Ids
    n_bytes: int
    n_characters: int
    leaked: bool


Batch = list[tuple[str, str]]


def encode_documents(
    labelled: Iterable[tuple[str, str]], tokenizer: Tokenizer, dtype: str, leaks: LeakIndex | None, pool: WorkerPool
) -> Generator[EncodedDocument]:
    """Encode (label, text) pairs in their order; whether a text leaks is for the caller to act on."""
    task = WorkerTask(BatchEncoder, (tokenizer.backend.to_str(), dtype, leaks))
    with closing(pool.map(task, batches(labelled, lambda pair: len(pair[1])))) as encoded:
        for documents in encoded:
            yield from documents


class BatchEncoder:
    """What a worker holds: tokenizer, memory of words, validation documents."""

    def __init__(self, tokenizer: str, dtype: str, leaks: LeakIndex | None) -> None:
        self._tokenizer = Tokenizer(tokenizers.Tokenizer.from_str(tokenizer))
        self._memo = MemoEncoder(self._tokenizer, dtype)
        self._leaks = leaks

    def __call__(self, batch: Batch) -> list[EncodedDocument]:
        """Normalize, look for leaks and encode."""
        texts = [self._tokenizer.normalize(text) for _, text in batch]
        matches = [None] * len(texts) if self._leaks is None else self._leaks.match_many(texts)
        return [
            EncodedDocument(label, ids, len(text.encode()), len(text), match is not None)
            for (label, _), text, ids, match in zip(batch, texts, self._memo.encode_batch(texts), matches, strict=True)
        ]
