"""Encoding many documents: batches, worker processes, results in order.

Each worker normalizes, looks for leaked validation documents, and encodes through its own memory of words. The result
does not depend on the number of workers.
"""

import os
import signal
from collections import deque
from collections.abc import Generator, Iterable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing import get_context, parent_process
from threading import Thread
from typing import Any

import numpy as np
import tokenizers

from kotha.errors import DataError
from kotha.text.clean.leakage import LeakIndex
from kotha.text.tokenizer.memo import Ids, MemoEncoder
from kotha.text.tokenizer.tokenizer import Tokenizer

_BATCH_CHARACTERS = 1 << 18


@dataclass(frozen=True, slots=True)
class EncodedDocument:
    """A document as ids, with the size of its normalized text."""

    label: str
    ids: Ids
    n_bytes: int
    n_characters: int
    leaked: bool


def encode_documents(
    labelled: Iterable[tuple[str, str]], tokenizer: Tokenizer, dtype: str, leaks: LeakIndex | None, workers: int
) -> Generator[EncodedDocument]:
    """Encode (label, text) pairs in their order; whether a text leaks is for the caller to act on."""
    state = (tokenizer.backend.to_str(), dtype, leaks)
    for labels, result in _mapped(_batched(labelled), workers, state):
        starts = np.concatenate([[0], np.cumsum(result.lengths)])
        ids = np.frombuffer(result.ids, dtype)
        for index, label in enumerate(labels):
            document = ids[starts[index] : starts[index + 1]]
            yield EncodedDocument(
                label, document, result.n_bytes[index], result.n_characters[index], result.leaked[index]
            )


Batch = tuple[list[str], list[str]]


def _batched(labelled: Iterable[tuple[str, str]]) -> Iterator[Batch]:
    labels: list[str] = []
    texts: list[str] = []
    size = 0
    for label, text in labelled:
        labels.append(label)
        texts.append(text)
        size += len(text)
        if size >= _BATCH_CHARACTERS:
            yield labels, texts
            labels, texts, size = [], [], 0
    if texts:
        yield labels, texts


@dataclass
class _Result:
    """A batch as it comes back from a worker; the ids of all its documents in one piece."""

    ids: bytes
    lengths: list[int]
    n_bytes: list[int]
    n_characters: list[int]
    leaked: list[bool]


class _Encoder:
    """What a worker holds: tokenizer, memory of words, validation documents."""

    def __init__(self, tokenizer: str, dtype: str, leaks: LeakIndex | None) -> None:
        self._tokenizer = Tokenizer(tokenizers.Tokenizer.from_str(tokenizer))
        self._memo = MemoEncoder(self._tokenizer, dtype)
        self._leaks = leaks

    def __call__(self, texts: Sequence[str]) -> _Result:
        normalized = [self._tokenizer.normalize(text) for text in texts]
        leaked = [False] * len(texts)
        if self._leaks is not None:
            leaked = [match is not None for match in self._leaks.match_many(normalized)]
        ids = self._memo.encode_batch(normalized)
        return _Result(
            b"".join(array.tobytes() for array in ids),
            [len(array) for array in ids],
            [len(text.encode()) for text in normalized],
            [len(text) for text in normalized],
            leaked,
        )


_worker: _Encoder | None = None


def _start_worker(*state: Any) -> None:
    global _worker
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # where it is not held back already
    Thread(target=_end_with_parent, daemon=True).start()
    os.environ["TOKENIZERS_PARALLELISM"] = "false"
    _worker = _Encoder(*state)


def _end_with_parent() -> None:
    """A worker whose parent was killed has nobody to work for."""
    parent = parent_process()
    assert parent is not None, "a worker was started by nobody"
    parent.join()
    os._exit(1)


@contextmanager
def _interrupt_held_back() -> Iterator[None]:
    """Ctrl-C is for the parent, which then ends its workers, and reaches it after this block, not within.

    A process started here never hears of it, from its first instruction on: it inherits what is held back.
    """
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _work(texts: Sequence[str]) -> _Result:
    assert _worker is not None, "a worker was asked before it was started"
    return _worker(texts)


def _mapped(batches: Iterator[Batch], workers: int, state: tuple[Any, ...]) -> Iterator[tuple[list[str], _Result]]:
    """Encode batches, with only a few of them on their way at any time."""
    if workers == 1:
        encoder = _Encoder(*state)
        yield from ((labels, encoder(texts)) for labels, texts in batches)
        return
    waiting: deque[tuple[list[str], Future[_Result]]] = deque()
    with _pool(workers, state) as pool:
        for labels, texts in batches:
            with _interrupt_held_back():  # a submission starts a worker where there are too few
                waiting.append((labels, pool.submit(_work, texts)))
            if len(waiting) > 2 * workers:
                done, future = waiting.popleft()
                yield done, future.result()
        while waiting:
            done, future = waiting.popleft()
            yield done, future.result()


@contextmanager
def _pool(workers: int, state: tuple[Any, ...]) -> Iterator[ProcessPoolExecutor]:
    """Worker processes that end with the block: after their work, or at once where it is left early."""
    with _interrupt_held_back():
        pool = ProcessPoolExecutor(workers, get_context("spawn"), _start_worker, state)
    try:
        yield pool
    except BrokenProcessPool as error:
        raise DataError(
            "a worker process ended early, perhaps for lack of memory; try fewer workers "
            '(in a script of your own, call this under `if __name__ == "__main__":`)'
        ) from error
    except BaseException:
        for process in list((pool._processes or {}).values()):
            process.kill()
        raise
    finally:
        with _interrupt_held_back():
            pool.shutdown(wait=True, cancel_futures=True)
