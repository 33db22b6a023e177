"""Next tokens: what a GPT learns from a data folder, in batches from its shards.

What a step sees is a function of the seed and the step, so a resumed run misses nothing. ``PackedBatches`` lays the
documents of an epoch end to end in a new order, epoch after epoch, and cuts the endless line into sequences: every
token is a target exactly once an epoch, and none is wasted on padding. ``OffsetBatches`` is the course's: each sequence
starts at a random place. Some may be read backwards (``backwards.py``).

It is measured on the validation documents end to end, cut into windows that do not overlap, each token a target once:
the quick figure of a running training. Each window starts with no context, so it is a little higher than what a sliding
window gives.
"""

import math
from collections.abc import Sequence
from functools import lru_cache

import numpy as np
import torch
from numpy.typing import NDArray

from kotha.errors import ConfigError, DataError
from kotha.model.config import GPTConfig, ModelConfig
from kotha.model.gpt import GPT
from kotha.text.held_out import Counts, frequency_nats
from kotha.text.shards import Dataset, Split
from kotha.training.config import Sampling, TrainConfig
from kotha.training.objectives import next_token, next_token_sum, taught_token
from kotha.training.tasks.backwards import Backwards
from kotha.training.tasks.order import measuring_slices
from kotha.training.tasks.task import Batch, Score, Task, Tensors, check_vocabulary
from kotha.training.tasks.teachers import Teachers

_PART = "tokens"

Ids = NDArray[np.int64]


class NextToken(Task):
    """Guess each token from those before it."""

    name = "next-token"
    _teachers: Teachers | None = None

    def __init__(self, model: ModelConfig, config: TrainConfig, data: Dataset) -> None:
        if not isinstance(model, GPTConfig):
            raise ConfigError(
                "a {family} model cannot be trained on next tokens; use a gpt preset", family=model.family
            )
        check_vocabulary(model, data.tokenizer, DataError)
        self.data = data
        self._vocab_size, self._label_smoothing = model.vocab_size, config.label_smoothing
        self._evaluate_tokens = config.evaluate_tokens
        self.context_length = config.context_length or model.context_length
        if self.context_length > model.context_length:
            raise ConfigError(
                "context_length={context_length} is more than the model's {longest}; use at most that, or a "
                "preset with a longer one",
                context_length=self.context_length,
                longest=model.context_length,
            )
        how = (self.context_length, config.batch_size, config.seed)
        self._batches = make_batches(config.sampling, data["train"], *how)
        self._backwards = Backwards(config.backwards, config.seed, config.steps, data.tokenizer)
        if config.teachers:
            if config.backwards:
                raise ConfigError("teachers foretell what comes next; give either teachers or a share of backwards")
            self._teachers = Teachers(config.teachers, data.tokenizer, self.context_length)
            self._teacher_share = config.teacher_share

    def batch(self, step: int, first: int, count: int) -> Batch:
        sequences = self._batches.sequences(step, first, count)
        self._backwards.turn(sequences, step, first)
        return _as_batch(torch.from_numpy(sequences))

    def set_total_steps(self, steps: int) -> None:
        self._backwards.steps = steps

    def document_ids(self, step: int) -> list[int]:
        return self._batches.documents(step)

    def losses(self, model: GPT, tensors: Tensors) -> Tensors:
        sequences = tensors["sequences"]
        if self._teachers is None:
            return {_PART: next_token(model, sequences, self._label_smoothing)}
        taught = self._teachers.hidden(sequences[:, :-1])
        return {_PART: taught_token(model, sequences, taught, self._teacher_share, self._label_smoothing)}

    @property
    def auxiliary_models(self) -> Sequence[GPT]:
        return () if self._teachers is None else self._teachers.models

    def measure(self, model: GPT, tensors: Tensors) -> Tensors:
        return {_PART: next_token_sum(model, tensors["sequences"])}

    def score(self, sums: dict[str, float], targets: dict[str, int]) -> Score:
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
        learned, held_out = (count_tokens(self.data, split, self._vocab_size) for split in ("train", "validation"))
        return {"ln V": math.log(self._vocab_size), "unigram": frequency_nats(learned, held_out)}

    def validation(self) -> list[Batch]:
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


class PackedBatches:
    """Documents in a new order each epoch, end to end, cut into sequences."""

    def __init__(self, split: Split, context_length: int, batch_size: int, seed: int) -> None:
        self._split, self._context_length, self._batch_size, self._seed = split, context_length, batch_size, seed
        self._lengths = np.diff(split.offsets).astype(np.int64)
        self._order = lru_cache(maxsize=2)(self._shuffle)  # a batch may reach from one epoch into the next

    def sequences(self, step: int, first: int, count: int) -> Ids:
        """``count`` sequences of a step's batch, from ``first`` on, each one token longer than the context."""
        start = (step * self._batch_size + first) * self._context_length
        pieces = self._pieces(start, count * self._context_length + 1)
        line = np.concatenate([self._split[document][begin:end] for document, begin, end in pieces]).astype(np.int64)
        places = np.arange(count)[:, None] * self._context_length + np.arange(self._context_length + 1)
        sequences: Ids = line[places]
        return sequences

    def documents(self, step: int) -> list[int]:
        """The documents that a step reads."""
        size = self._batch_size * self._context_length
        return [document for document, _, _ in self._pieces(step * size, size + 1)]

    def _pieces(self, start: int, length: int) -> list[tuple[int, int, int]]:
        """The stretch of the endless line as (document, from, to)."""
        pieces: list[tuple[int, int, int]] = []
        epoch, place = divmod(start, self._split.info.tokens)
        while length > 0:
            order, ends = self._order(epoch)
            turn = int(np.searchsorted(ends, place, side="right"))
            begin = place - int(ends[turn - 1] if turn else 0)
            while length > 0 and turn < len(order):
                document = int(order[turn])
                end = min(int(self._lengths[document]), begin + length)
                pieces.append((document, begin, end))
                length -= end - begin
                begin, turn = 0, turn + 1
            epoch, place = epoch + 1, 0
        return pieces

    def _shuffle(self, epoch: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The documents of an epoch in their order, and where each ends."""
        order = np.random.default_rng([self._seed, epoch]).permutation(len(self._lengths))
        return order, np.cumsum(self._lengths[order])


class OffsetBatches:
    """Sequences from random places of the documents as they stand."""

    def __init__(self, split: Split, context_length: int, batch_size: int, seed: int) -> None:
        self._split, self._context_length, self._batch_size, self._seed = split, context_length, batch_size, seed
        self._line = np.concatenate(split.shards)

    def sequences(self, step: int, first: int, count: int) -> Ids:
        """As PackedBatches has them."""
        starts = self._starts(step)[first : first + count]
        sequences: Ids = self._line[starts[:, None] + np.arange(self._context_length + 1)].astype(np.int64)
        return sequences

    def documents(self, step: int) -> list[int]:
        """The documents that a step reads."""
        starts = self._starts(step)
        reached = [starts + place for place in (0, self._context_length)]
        first, last = (np.searchsorted(self._split.offsets, places, side="right") - 1 for places in reached)
        return sorted({document for a, b in zip(first, last, strict=True) for document in range(int(a), int(b) + 1)})

    def _starts(self, step: int) -> NDArray[np.int64]:
        last = len(self._line) - self._context_length
        return np.random.default_rng([self._seed, step]).integers(0, last, self._batch_size)


def make_batches(
    sampling: Sampling, split: Split, context_length: int, batch_size: int, seed: int
) -> PackedBatches | OffsetBatches:
    """The batches that a config asks for."""
    if split.info.tokens <= context_length:
        raise DataError(
            "the {split} split has {n:,} tokens, fewer than one sequence of {length:,}; use a shorter "
            "context_length or more text",
            split=split.name,
            n=split.info.tokens,
            length=context_length + 1,
        )
    kind = PackedBatches if sampling == "documents" else OffsetBatches
    return kind(split, context_length, batch_size, seed)
