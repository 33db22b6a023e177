"""The text that a model is to learn from, measured: it decides the vocabulary and how large a model pays.

A data folder knows its tokens. A corpus is read once and its bytes and characters are counted; how many tokens it would
be is then an estimate from the news set, where our unigram's tokens had 4.3 characters with 8,192 pieces and about
half a character more with each doubling (docs/experiments.md).
"""

import math
from dataclasses import dataclass
from pathlib import Path

from kotha.errors import DataError
from kotha.storage.status import is_file
from kotha.text.corpus.documents import read_documents
from kotha.text.shards import DATASET_FILE, Dataset

# Of a corpus, what `kotha prepare` leaves for training.
_TRAIN_SHARE = 0.95
_CHARACTERS_PER_TOKEN, _PER_DOUBLING, _AT = 4.29, 0.476, 8192


@dataclass(frozen=True)
class TextSize:
    """A text to learn from."""

    path: str
    bytes: int  # of the training part
    characters: int
    documents: int
    tokens: int | None  # of the training part, where it is already cut into tokens
    vocab_size: int | None  # of its tokenizer, where it has one
    validation_tokens: int | None = None

    @property
    def prepared(self) -> bool:
        """Is it a data folder?"""
        return self.tokens is not None

    def tokens_with(self, vocab_size: int) -> int:
        """Tokens of the training part: counted, or estimated for a vocabulary."""
        if self.tokens is not None:
            return self.tokens
        per_token = _CHARACTERS_PER_TOKEN + _PER_DOUBLING * math.log2(vocab_size / _AT)
        return int(self.characters / max(1.0, per_token))


def measure_text(path: str) -> TextSize:
    """Measure a data folder or any corpus that can be read."""
    if is_file(Path(path) / DATASET_FILE):
        data = Dataset(path, verify=False)
        train, held_out = data["train"].info, data.splits.get("validation")
        validation = None if held_out is None else held_out.info.tokens
        size = data.tokenizer.vocab_size
        return TextSize(path, train.bytes, train.characters, train.documents, train.tokens, size, validation)
    n_bytes = n_characters = n_documents = 0
    for document in read_documents([path]):
        n_bytes += len(document.text.encode())
        n_characters += len(document.text)
        n_documents += 1
    if not n_documents:
        raise DataError("{path} has no text in it; name a data folder, a file or a folder of texts", path=path)
    kept = [int(_TRAIN_SHARE * each) for each in (n_bytes, n_characters, n_documents)]
    return TextSize(path, kept[0], kept[1], kept[2], tokens=None, vocab_size=None)
