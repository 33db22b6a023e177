"""Encoding many documents: in batches, by a worker pool, results in order.

Each worker normalizes, looks for leaked validation documents, and encodes through its own memory of words. No token
crosses a single space between two words, so a text is encoded word by word, and most words have been seen before: a
dictionary from a word to the bytes of its ids turns most of the work into look-ups, several times faster on running
text than encoding anew. The tests hold it equal to ``Tokenizer.encode``, and the result does not depend on the number
of workers.
"""

import re
from collections.abc import Generator, Iterable, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import partial

import numpy as np
import tokenizers
from numpy.typing import DTypeLike, NDArray

from kotha.text.clean.leakage import LeakIndex, batches
from kotha.text.parallel.local import WorkerPool
from kotha.text.tokenizer.tokenizer import Tokenizer

Ids = NDArray[np.unsignedinteger]

# Some splits treat a run of white space as one, so only a space with a word on either side is a place to cut.
_SPACE_RUN = re.compile(r"\s\s")
_LONE_SPACE = re.compile(r"(?<=\S) (?=\S)")
_CUT = "\0"

# Past this many remembered words, start over: memory stays flat, and frequent words are soon back.
_MAX_WORDS = 500_000
# Longer than any word: not worth remembering.
_MAX_LENGTH = 64


class MemoEncoder:
    """Encodes normalized texts of one tokenizer into arrays of ids."""

    def __init__(self, tokenizer: Tokenizer, dtype: DTypeLike) -> None:
        self._tokenizer = tokenizer
        self._dtype = np.dtype(dtype)
        self._by_words = tokenizer.normalizer is not None and tokenizer.split_name is not None
        self._memo: dict[str, bytes] = {}

    def encode_batch(self, normalized: Sequence[str]) -> list[Ids]:
        """The ids of texts that the tokenizer's normalization leaves as they are."""
        parts = [self._parts(text) for text in normalized]
        if len(self._memo) > _MAX_WORDS:
            self._memo.clear()
        new = list({part for text in parts for part in text}.difference(self._memo))
        for part, ids in zip(new, self._tokenizer.encode_batch(new, normalized=True), strict=True):
            self._memo[part] = np.array(ids, self._dtype).tobytes()
        encoded = [np.frombuffer(b"".join([self._memo[part] for part in text]), self._dtype) for text in parts]
        for part in new:
            if len(part) > _MAX_LENGTH:
                del self._memo[part]
        return encoded

    def _parts(self, text: str) -> list[str]:
        """The words of a text, each but the first with its space; the whole text where it cannot be cut."""
        if not self._by_words or _CUT in text:
            return [text]
        if _SPACE_RUN.search(text):
            return _LONE_SPACE.sub(_CUT + " ", text).split(_CUT)
        return text.replace(" ", _CUT + " ").split(_CUT)


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
    task = partial(BatchEncoder, tokenizer.backend.to_str(), dtype, leaks)
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
        leaked = [False] * len(texts) if self._leaks is None else self._leaks.given_away(texts)
        return [
            EncodedDocument(label, ids, len(text.encode()), len(text), leak)
            for (label, _), text, ids, leak in zip(batch, texts, self._memo.encode_batch(texts), leaked, strict=True)
        ]
