"""Training data for lessons: built-in texts as tokens, and the model sizes.

Lessons use the encyclopaedia entries in the built-in corpus, by default with one token per character. These are simple
sentences that a small model learns in seconds. All conditions in a lesson get the same batches, so they differ only in
what the lesson compares. The sequences in a step depend only on the seed and the step.
"""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from kotha.model.config import GPTConfig
from kotha.text.stories.corpus import stories
from kotha.text.tokenizer.tokenizer import Tokenizer
from kotha.text.tokenizer.trainers import train as train_pieces
from kotha.training.config import TrainConfig

# Seeds of the training corpus and the held-out corpus, which share one grammar.
_LEARNED, _HELD_OUT = 0, 1
_READ = ("entry",)
# Enough documents to contain all characters, and to train a few hundred pieces.
_TOKENIZER_DOCUMENTS = 300


@dataclass(frozen=True, kw_only=True)
class Sizes:
    """Data and model sizes: the course's GPT, small enough to train a dozen of them in minutes on two cores."""

    documents: int = 500  # training documents
    most_tokens: int | None = None  # limit of training tokens; None: no limit
    held_out: int = 40  # held-out documents
    tokens: Literal["char", "unigram"] = "char"  # a token is a code point, or a piece of a word
    vocab_size: int = 128  # maximum
    context_length: int = 32
    d_model: int = 64
    n_layers: int = 2
    n_heads: int = 4
    batch_size: int = 32
    steps: int = 400
    optimizer: Literal["muon", "adamw"] = "muon"

    def gpt(self, **changes: Any) -> GPTConfig:
        """Return the course's GPT config in this size: learned positions, pre-norm, GELU, untied head, no dropout."""
        names = ("vocab_size", "context_length", "d_model", "n_layers", "n_heads")
        sizes = {name: getattr(self, name) for name in names}
        return GPTConfig(**{**sizes, "attention_bias": False, "tied_head": False, **changes})

    def training(self, seed: int) -> TrainConfig:
        """Return the training config: Muon for the matrices in blocks, AdamW for the rest, warm-up and cosine decay.

        Lessons that compare a transformer with another architecture use only AdamW, because Muon is meant for
        transformer blocks.
        """
        return TrainConfig(
            steps=self.steps,
            batch_size=self.batch_size,
            warmup_steps=self.steps // 20,
            seed=seed,
            optimizer=self.optimizer,
            learning_rate=3e-3,
            muon_learning_rate=2e-2,
        )


class Classroom:
    """Texts as two token sequences: training data and held-out text."""

    def __init__(self, sizes: Sizes) -> None:
        self.sizes = sizes
        self.texts = _texts(_LEARNED, sizes.documents)
        self.held_out_texts = _texts(_HELD_OUT, sizes.held_out)
        self.tokenizer: Tokenizer = train_pieces(self.texts[:_TOKENIZER_DOCUMENTS], sizes.tokens, sizes.vocab_size)
        self.learned = self._line(self.texts)[: sizes.most_tokens]
        self.held_out = self._line(self.held_out_texts)

    def gpt(self, **changes: Any) -> GPTConfig:
        """Return the config for a GPT of this size with this tokenizer."""
        return self.sizes.gpt(
            **{"vocab_size": self.tokenizer.vocab_size, **changes}
        )  # few texts can give a smaller vocabulary

    @cached_property
    def words(self) -> frozenset[str]:
        """All words in the training texts, split at white space."""
        return frozenset(word for text in self.texts for word in text.split())

    def batch(self, seed: int, step: int) -> Tensor:
        """Return the sequences for a step, each one token longer than the context: (B, T + 1)."""
        length = self.sizes.context_length
        places = len(self.learned) - length
        starts = np.random.default_rng([seed, step]).integers(0, places, self.sizes.batch_size)
        return torch.from_numpy(self.learned[starts[:, None] + np.arange(length + 1)])

    def windows(self, most: int | None = None, *, learned: bool = False) -> Tensor:
        """Return non-overlapping sequences, one token longer than the context: (N, T + 1).

        They come from held-out text, or from the training data if ``learned``.
        """
        line, length = self.learned if learned else self.held_out, self.sizes.context_length
        count = (len(line) - 1) // length
        places = np.arange(count if most is None else min(most, count))[:, None] * length + np.arange(length + 1)
        return torch.from_numpy(line[places])

    def _line(self, texts: Sequence[str]) -> NDArray[np.int64]:
        """Concatenate all texts, each followed by the end token."""
        end = self.tokenizer.special["eos"]
        ids = itertools.chain.from_iterable((*self.tokenizer.encode(text), end) for text in texts)
        return np.fromiter(ids, dtype=np.int64)


@lru_cache(maxsize=8)
def _texts(seed: int, count: int) -> tuple[str, ...]:
    return tuple(document.text for document in itertools.islice(stories(seed, kinds=_READ), count))


@lru_cache(maxsize=4)
def classroom(sizes: Sizes) -> Classroom:
    """Return the cached ``Classroom`` for these sizes."""
    return Classroom(sizes)
