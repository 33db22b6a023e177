"""Encoding many documents: batches, worker processes, results in order.

Each worker normalizes, looks for leaked validation documents, and encodes through its own memory of words. The result
does not depend on the number of workers.
"""

import os
import signal
import sys
from collections import deque
from collections.abc import Generator, Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing import get_context, parent_process
from threading import Thread
from typing import Any

import tokenizers

from kotha.errors import DataError
from kotha.text.clean.leakage import LeakIndex, batches
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
    labelled: Iterable[tuple[str, str]], tokenizer: Tokenizer, dtype: str, leaks: LeakIndex | None, workers: int
) -> Generator[EncodedDocument]:
    """Encode (label, text) pairs in their order; whether a text leaks is for the caller to act on."""
    state = (tokenizer.backend.to_str(), dtype, leaks)
    for documents in _mapped(batches(labelled, lambda pair: len(pair[1])), workers, state):
        yield from documents


class _Encoder:
    """What a worker holds: tokenizer, memory of words, validation documents."""

    def __init__(self, tokenizer: str, dtype: str, leaks: LeakIndex | None) -> None:
        self._tokenizer = Tokenizer(tokenizers.Tokenizer.from_str(tokenizer))
        self._memo = MemoEncoder(self._tokenizer, dtype)
        self._leaks = leaks

    def __call__(self, batch: Batch) -> list[EncodedDocument]:
        texts = [self._tokenizer.normalize(text) for _, text in batch]
        matches = [None] * len(texts) if self._leaks is None else self._leaks.match_many(texts)
        return [
            EncodedDocument(label, ids, len(text.encode()), len(text), match is not None)
            for (label, _), text, ids, match in zip(batch, texts, self._memo.encode_batch(texts), matches, strict=True)
        ]


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


@contextmanager
def _script_left_alone() -> Iterator[None]:
    """A process started here does not run the caller's script again, as it otherwise would: it needs nothing of it.

    A script without ``if __name__ == "__main__":`` would start everything anew in each worker, one that came through a
    pipe cannot be found by it; both would end before reading what they are sent, and their parent wait forever.
    """
    script = vars(sys.modules["__main__"])
    hidden: dict[str, Any] = {name: script[name] for name in ("__file__", "__spec__") if name in script}
    script.update(dict.fromkeys(hidden))
    try:
        yield
    finally:
        script.update(hidden)


def _work(batch: Batch) -> list[EncodedDocument]:
    assert _worker is not None, "a worker was asked before it was started"
    return _worker(batch)


def _mapped(found: Iterator[Batch], workers: int, state: tuple[Any, ...]) -> Iterator[list[EncodedDocument]]:
    """Encode batches, with only a few of them on their way at any time."""
    if workers == 1:
        yield from map(_Encoder(*state), found)
        return
    waiting: deque[Future[list[EncodedDocument]]] = deque()
    with _pool(workers, state) as pool:
        for batch in found:
            with _interrupt_held_back(), _script_left_alone():  # starts a worker where there are too few
                waiting.append(pool.submit(_work, batch))
            if len(waiting) > 2 * workers:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()


@contextmanager
def _pool(workers: int, state: tuple[Any, ...]) -> Iterator[ProcessPoolExecutor]:
    """Worker processes that end with the block: after their work, or at once where it is left early."""
    with _interrupt_held_back():
        pool = ProcessPoolExecutor(workers, get_context("spawn"), _start_worker, state)
    try:
        yield pool
    except BrokenProcessPool as error:
        raise DataError("a worker process ended early, perhaps for lack of memory; try fewer workers") from error
    except BaseException:
        for process in list((pool._processes or {}).values()):
            process.kill()
        raise
    finally:
        with _interrupt_held_back():
            pool.shutdown(wait=True, cancel_futures=True)
