"""Which texts of a corpus are new: each asked once, in order, with the costly part given to a worker pool."""

from collections import deque
from collections.abc import Iterable, Iterator
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Literal

from kotha.text.clean.duplicates import ExactDuplicates
from kotha.text.clean.leakage import batches
from kotha.text.clean.near_copies import NearCopies, Signer
from kotha.text.parallel.task import WorkerPool, WorkerTask

Duplicates = Literal["keep", "exact", "near"]


def told_apart(
    texts: Iterable[str], duplicates: Duplicates, pool: WorkerPool, folder: Path
) -> Iterator[tuple[str, bool]]:
    """Each text with whether it is new; what near copies are known by lies in ``folder`` for as long."""
    exact = ExactDuplicates()
    if duplicates == "keep":
        yield from ((text, True) for text in texts)
    elif duplicates == "exact":
        yield from ((text, exact.is_new(text)) for text in texts)
    else:
        yield from _near(((text, exact.is_new(text)) for text in texts), pool, folder)


def _near(told: Iterable[tuple[str, bool]], pool: WorkerPool, folder: Path) -> Iterator[tuple[str, bool]]:
    on_their_way: deque[list[tuple[str, bool]]] = deque()

    def sent() -> Iterator[list[str]]:
        for batch in batches(told, lambda pair: len(pair[0])):
            on_their_way.append(batch)
            yield [text for text, is_new in batch if is_new]

    with TemporaryDirectory(dir=folder) as place, closing(pool.map(WorkerTask(Signer), sent())) as answers:
        near = NearCopies(Path(place))
        for signatures, has_words in answers:
            stays = ~has_words  # a text without words is like no other
            stays[has_words] = near.stay(signatures[has_words])
            fresh = iter(stays.tolist())
            for text, is_new in on_their_way.popleft():
                yield text, is_new and next(fresh)
