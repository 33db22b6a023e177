"""The size of the training text: counted in a data folder, or estimated for a corpus."""

import math
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from kotha.errors import DataError
from kotha.text.corpus.documents import read_documents
from kotha.text.shards import DATASET_FILE, Dataset

# The share of a corpus that `kotha prepare` uses for training.
_TRAIN_SHARE = 0.95
# Characters per token at this vocabulary size, and the increase when the size doubles (docs/dev/experiments.md).
_CHARACTERS_PER_TOKEN, _PER_DOUBLING, _AT = 4.29, 0.476, 8192


@dataclass(frozen=True)
class TextSize:
    """The size of a training text; tokens are counted in a data folder and estimated for a corpus."""

    path: str
    bytes: int  # of the training part
    characters: int
    documents: int
    tokens: int | None = None  # of the training part, if tokenized
    vocab_size: int | None = None  # of the tokenizer, if any
    validation_tokens: int | None = None

    @property
    def prepared(self) -> bool:
        """Whether the text is a data folder."""
        return self.tokens is not None

    def tokens_with(self, vocab_size: int) -> int:
        """Return the number of training tokens: counted, or estimated for a vocabulary size."""
        if self.tokens is not None:
            return self.tokens
        per_token = _CHARACTERS_PER_TOKEN + _PER_DOUBLING * math.log2(vocab_size / _AT)
        return int(self.characters / max(1.0, per_token))


def measure_text(path: str) -> TextSize:
    """Measure a data folder or a corpus."""
    if (Path(path) / DATASET_FILE).is_file():
        data = Dataset(path, verify=False)
        train, held_out = data["train"].info, data.splits.get("validation")
        validation = None if held_out is None else held_out.info.tokens
        size = data.tokenizer.vocab_size
        return TextSize(path, train.bytes, train.characters, train.documents, train.tokens, size, validation)
    sizes = np.zeros(3, np.int64)  # bytes, characters, documents
    for document in read_documents([path]):
        sizes += (len(document.text.encode()), len(document.text), 1)
    if not sizes[2]:
        raise DataError(
            "{path} contains no text; specify a data folder, a text file or a folder of text files", path=path
        )
    return TextSize(path, *(int(_TRAIN_SHARE * each) for each in sizes.tolist()))
