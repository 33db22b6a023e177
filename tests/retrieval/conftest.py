"""A few Bangla documents, and an embedder without a model."""

import hashlib
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pytest

from kotha.retrieval.dense import Vectors
from kotha.retrieval.documents import IndexOptions
from kotha.retrieval.index import update
from kotha.retrieval.sqlite_store import EmbedderNote, SqliteStore
from kotha.retrieval.stemming import fold

DOCUMENTS = [
    "পদ্মা নদীর তীরে রাজশাহী শহর। সেখানে আম ফলে।",
    "কৃষি বাংলাদেশের প্রধান পেশা। ধান ও পাট বেশি হয়।",
    "সুন্দরবনে বাঘ থাকে। বাঘের গায়ে ডোরা আছে।",
    "র‍্যাব ঢাকায় অভিযান চালায়। রাতে তিনজন ধরা পড়ে।",
]


class BagOfStems:
    """Embeds texts by hashed stems, which gives known numbers without a model."""

    note = EmbedderNote("stems", "bag of stems", 64)

    def __call__(self, texts: Sequence[str]) -> Vectors:
        vectors = np.zeros((len(texts), self.note.width), np.float32)
        for row, text in enumerate(texts):
            for word in fold(text):
                vectors[row, hashlib.sha256(word.stem.encode()).digest()[0] % self.note.width] += 1
        return vectors / np.linalg.norm(vectors, axis=1, keepdims=True).clip(1e-9)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "documents.txt"
    path.write_text("\n\n".join(text * 4 for text in DOCUMENTS), encoding="utf-8")
    return path


@pytest.fixture
def store(tmp_path: Path, file: Path) -> Iterator[SqliteStore]:
    made = SqliteStore(tmp_path / "index", write=True)
    update(made, [file], IndexOptions(passage_length=200), BagOfStems())
    yield made
    made.close()
