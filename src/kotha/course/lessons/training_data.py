"""The classroom: built-in texts cut into tokens, and the sizes of the models that learn them.

Every lesson reads the encyclopaedia entries of the built-in corpus, letter by letter unless it says otherwise: plain
sentences that a small model learns in seconds. All conditions of a lesson read the same batches, so that they differ in
the one thing that the lesson is about. Which sequences a step reads depends on the seed and the step alone.
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

# Corpora of the same grammar, to learn from and held out.
_LEARNED, _HELD_OUT = 0, 1
_READ = ("entry",)
# So many documents hold all letters that there are, and enough for a few hundred pieces.
_TOKENIZER_DOCUMENTS = 300


@dataclass(frozen=True, kw_only=True)
class Sizes:
    """How large everything is: the course's GPT made so small that two cores teach a dozen of them in minutes."""

    documents: int = 500  # texts to learn from
    most_tokens: int | None = None  # of them so many are read; None: all
    held_out: int = 40  # and others that nothing learns from
    tokens: Literal["char", "unigram"] = "char"  # what a token is: a letter's code point, or a piece of a word
    vocab_size: int = 128  # at most
    context_length: int = 32
    d_model: int = 64
    n_layers: int = 2
    n_heads: int = 4
    batch_size: int = 32
    steps: int = 400
    optimizer: Literal["muon", "adamw"] = "muon"

    def gpt(self, **changes: Any) -> GPTConfig:
        """The course's layout in this size: learned positions, LayerNorm first, GELU, a head of its own, no dropout."""
        names = ("vocab_size", "context_length", "d_model", "n_layers", "n_heads")
        sizes = {name: getattr(self, name) for name in names}
        return GPTConfig(**{**sizes, "attention_bias": False, "tied_head": False, **changes})

    def training(self, seed: int) -> TrainConfig:
        """How all of them learn: Muon for the matrices of the blocks, AdamW for the rest, a warm-up, a cosine.

        Where a transformer stands beside another kind of model, AdamW moves everything: Muon is made for its blocks.
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
    """Texts as one line of tokens to learn from, and one that is held out."""

    def __init__(self, sizes: Sizes) -> None:
        self.sizes = sizes
        self.texts = _texts(_LEARNED, sizes.documents)
        self.held_out_texts = _texts(_HELD_OUT, sizes.held_out)
        self.tokenizer: Tokenizer = train_pieces(self.texts[:_TOKENIZER_DOCUMENTS], sizes.tokens, sizes.vocab_size)
        self.learned = self._line(self.texts)[: sizes.most_tokens]
        self.held_out = self._line(self.held_out_texts)

    def gpt(self, **changes: Any) -> GPTConfig:
        """A GPT of this size for these tokens."""
        return self.sizes.gpt(**{"vocab_size": self.tokenizer.vocab_size, **changes})  # few texts may have fewer tokens

    @cached_property
    def words(self) -> frozenset[str]:
        """Every word of the texts that are learned from, as white space separates them."""
        return frozenset(word for text in self.texts for word in text.split())

    def batch(self, seed: int, step: int) -> Tensor:
        """The sequences of a step, each one token longer than the context: (B, T + 1)."""
        length = self.sizes.context_length
        places = len(self.learned) - length
        starts = np.random.default_rng([seed, step]).integers(0, places, self.sizes.batch_size)
        return torch.from_numpy(self.learned[starts[:, None] + np.arange(length + 1)])

    def windows(self, most: int | None = None, *, learned: bool = False) -> Tensor:
        """Sequences that do not overlap, each one token longer than the context, held out or not: (N, T + 1)."""
        line, length = self.learned if learned else self.held_out, self.sizes.context_length
        count = (len(line) - 1) // length
        places = np.arange(count if most is None else min(most, count))[:, None] * length + np.arange(length + 1)
        return torch.from_numpy(line[places])

    def _line(self, texts: Sequence[str]) -> NDArray[np.int64]:
        """All texts behind each other, each with the mark of its end."""
        end = self.tokenizer.special["eos"]
        ids = itertools.chain.from_iterable((*self.tokenizer.encode(text), end) for text in texts)
        return np.fromiter(ids, dtype=np.int64)


@lru_cache(maxsize=8)
def _texts(seed: int, count: int) -> tuple[str, ...]:
    return tuple(document.text for document in itertools.islice(stories(seed, kinds=_READ), count))


@lru_cache(maxsize=4)
def classroom(sizes: Sizes) -> Classroom:
    """The classroom of some sizes, made once."""
    return Classroom(sizes)
