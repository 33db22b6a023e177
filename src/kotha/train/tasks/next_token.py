"""Next tokens: what a GPT learns from a data folder.

It is measured on the validation documents end to end, cut into windows that do not overlap, each token a target once:
the quick figure of a running training. Each window starts with no context, so it is a little higher than what a sliding
window gives.
"""

import math

import numpy as np
import torch

from kotha.errors import ConfigError, DataError
from kotha.model.config import GPTConfig, ModelConfig
from kotha.model.gpt import GPT
from kotha.text.frequencies import Counts, frequency_nats
from kotha.text.shards import Dataset
from kotha.train.batches import make_batches
from kotha.train.config import TrainConfig
from kotha.train.objectives import next_token, next_token_sum
from kotha.train.tasks.order import measuring_slices
from kotha.train.tasks.task import Batch, Score, Tensors, check_vocabulary

_PART = "tokens"


class NextToken:
    """Guess each token from those before it."""

    name = "next-token"

    def __init__(self, model: ModelConfig, config: TrainConfig, data: Dataset) -> None:
        if not isinstance(model, GPTConfig):
            raise ConfigError(f"a {model.family} model cannot be trained on next tokens; use a gpt preset")
        check_vocabulary(model, data.tokenizer, DataError)
        self.data = data
        self._vocab_size, self._label_smoothing = model.vocab_size, config.label_smoothing
        self._evaluate_tokens = config.evaluate_tokens
        self.context_length = config.context_length or model.context_length
        if self.context_length > model.context_length:
            raise ConfigError(
                f"context_length={self.context_length} is more than the model's {model.context_length}; "
                f"use at most that, or a preset with a longer one"
            )
        how = (self.context_length, config.batch_size, config.seed)
        self._batches = make_batches(config.sampling, data["train"], *how)

    def batch(self, step: int, first: int, count: int) -> Batch:
        """See Task."""
        return _as_batch(torch.from_numpy(self._batches.sequences(step, first, count)))

    def sources(self, step: int) -> list[int]:
        """See Task."""
        return self._batches.documents(step)

    def losses(self, model: GPT, tensors: Tensors) -> Tensors:
        """See Task."""
        return {_PART: next_token(model, tensors["sequences"], self._label_smoothing)}

    def measure(self, model: GPT, tensors: Tensors) -> Tensors:
        """See Task."""
        return {_PART: next_token_sum(model, tensors["sequences"])}

    def score(self, sums: dict[str, float], targets: dict[str, int]) -> Score:
        """See Task."""
        split = self.data["validation"].info
        loss = sums[_PART] / targets[_PART]
        bits = loss / math.log(2) * split.tokens
        return {
            "loss_nats": loss,
            "bits_per_byte": bits / split.bytes,
            "bits_per_character": bits / split.characters,
            "tokens": targets[_PART],
        }

    def references(self) -> dict[str, float]:
        """See Task."""
        learned, held_out = (count_tokens(self.data, split, self._vocab_size) for split in ("train", "validation"))
        return {"ln V": math.log(self._vocab_size), "unigram": frequency_nats(learned, held_out)}

    def validation(self) -> list[Batch]:
        """See Task."""
        split, tokens = self.data["validation"], self._evaluate_tokens
        line = np.concatenate([np.asarray(shard) for shard in split.shards])[: None if tokens is None else tokens + 1]
        length = min(self.context_length, len(line) - 1)
        windows = (len(line) - 1) // length
        places = np.arange(windows)[:, None] * length + np.arange(length + 1)
        sequences = torch.from_numpy(line[: windows * length + 1].astype(np.int64)[places])
        slices = measuring_slices(windows, length, positions=None)
        return [_as_batch(sequences[some.start : some.stop]) for some in slices]


def _as_batch(sequences: torch.Tensor) -> Batch:
    targets = sequences[:, 1:].numel()
    return Batch({"sequences": sequences}, {_PART: targets}, targets)


def count_tokens(data: Dataset, split: str, vocab_size: int) -> Counts:
    """How often each token occurs in a split: (V,)."""
    return sum(
        (np.bincount(np.asarray(shard), minlength=vocab_size) for shard in data[split].shards),
        start=np.zeros(vocab_size, dtype=np.int64),
    )
