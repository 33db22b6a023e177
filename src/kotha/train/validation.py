"""How well a model does on text that it does not learn from.

The validation documents end to end, cut into windows that do not overlap, each token a target once. It is the quick
figure of a running training; each window starts with no context, so it is a little higher than what a sliding window
gives.
"""

import math
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import torch

from kotha.model.gpt import GPT
from kotha.text.shards import Split
from kotha.train.objectives import Hidden, next_token_sum
from kotha.train.precision import Arithmetic

_TOKENS_AT_ONCE = 1 << 15


@dataclass(frozen=True)
class Validation:
    """Loss on the validation set, in three units."""

    loss_nats: float
    bits_per_byte: float
    bits_per_character: float
    tokens: int

    def to_dict(self) -> dict[str, Any]:
        """Ready for JSON."""
        return asdict(self)


def validate(
    model: GPT, hidden: Hidden, split: Split, context_length: int, arithmetic: Arithmetic, tokens: int | None = None
) -> Validation:
    """Measure a model on a split, or on its first tokens."""
    line = np.concatenate([np.asarray(shard) for shard in split.shards])[: None if tokens is None else tokens + 1]
    windows = max(1, (len(line) - 1) // context_length)
    length = min(context_length, len(line) - 1)
    line = line[: windows * length + 1].astype(np.int64)
    sequences = torch.from_numpy(line[np.arange(windows)[:, None] * length + np.arange(length + 1)])
    was_training = model.training
    model.eval()
    total = 0.0
    for batch in torch.split(sequences, max(1, _TOKENS_AT_ONCE // length)):
        with arithmetic.autocast():
            total += float(next_token_sum(model, hidden, batch.to(arithmetic.device)))
    model.train(was_training)
    loss = total / (windows * length)
    bits_per_token = loss / math.log(2)
    return Validation(
        loss,
        bits_per_token * split.info.tokens / split.info.bytes,
        bits_per_token * split.info.tokens / split.info.characters,
        windows * length,
    )
