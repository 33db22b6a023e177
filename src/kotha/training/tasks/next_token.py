"""Next tokens: what a GPT learns from a data folder, in batches from its shards.

What a step sees is a function of the seed and the step, so a resumed run misses nothing. ``PackedBatches`` lays the
documents of an epoch end to end in a new order, epoch after epoch, and cuts the endless line into sequences: every
token is a target exactly once an epoch, and none is wasted on padding. ``OffsetBatches`` is the course's: each sequence
starts at a random place.

Some sequences may be read from their end to their start (reverse training, https://arxiv.org/abs/2403.13799), so that
little text teaches more; and teachers, trained models, may say how likely every token was, where the text says only
which one came (knowledge distillation).

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
from torch import Tensor

from kotha.artifacts import model_folder as bundle
from kotha.errors import ConfigError, DataError
from kotha.model.config import GPTConfig
from kotha.model.gpt import GPT
from kotha.text.held_out import Counts, frequency_nats
from kotha.text.shards import Dataset, Split
from kotha.text.tokenizer.tokenizer import Tokenizer
from kotha.training.config import Sampling, TrainConfig
from kotha.training.objectives import next_token, next_token_sum, taught_token
from kotha.training.tasks.task import Batch, Score, Task, Tensors, check_vocabulary, measuring_slices

_PART = "tokens"
_LAST_FORWARDS = 0.25  # share of the steps

Ids = NDArray[np.int64]


class NextToken(Task):
    """Guess each token from those before it."""

    name = "next-token"
    _teachers: Sequence[GPT] = ()

    def __init__(self, model: GPTConfig, config: TrainConfig, data: Dataset) -> None:
        check_vocabulary(model, data.tokenizer)
        self.data, self.tokenizer, self._config = data, data.tokenizer, config
        self._vocab_size, self._label_smoothing = model.vocab_size, config.label_smoothing
        self.context_length = config.context_length or model.context_length
        how = (self.context_length, config.batch_size, config.seed)
        self._batches = make_batches(config.sampling, data["train"], *how)
        self._forwards_from = 0.0  # the step from which all is read as written
        self.set_total_steps(config.steps)
        if config.teachers and config.backwards:
            raise ConfigError("teachers foretell what comes next; give either teachers or a share of backwards")
        self.auxiliary_models = self._teachers = [
            _read_teacher(each, data.tokenizer, self.context_length) for each in config.teachers
        ]

    def batch(self, step: int, first: int, count: int) -> Batch:
        sequences = self._batches.sequences(step, first, count)
        if self._config.backwards and step < self._forwards_from:
            self._turn(sequences, step, first)
        return _as_batch(torch.from_numpy(sequences))

    def set_total_steps(self, steps: int) -> None:
        self._forwards_from = (1 - _LAST_FORWARDS) * steps

    def _turn(self, sequences: Ids, step: int, first: int) -> None:
        """Turn a share of the sequences around; which ones, seed and step decide: (B, T + 1).

        What came before a token says as much of it as what comes after, so a text gives twice the exercise before it
        is known by heart. The mask token, which no text holds, stands before what is read backwards, where the
        tokenizer has one.
        """
        draw = np.random.default_rng([self._config.seed, step, 1])
        turned = draw.random(first + len(sequences))[first:] < self._config.backwards
        sequences[turned] = sequences[turned, ::-1]
        mask = self.data.tokenizer.special.get("mask")
        if mask is not None:
            sequences[turned, 0] = mask

    def document_ids(self, step: int) -> list[int]:
        return self._batches.documents(step)

    def losses(self, model: GPT, tensors: Tensors) -> Tensors:
        sequences, smoothing = tensors["sequences"], self._label_smoothing
        if not self._teachers:
            return {_PART: next_token(model, sequences, smoothing)}
        taught = self._taught(sequences[:, :-1])
        return {_PART: taught_token(model, sequences, taught, self._config.teacher_share, smoothing)}

    @torch.no_grad()
    def _taught(self, tokens: Tensor) -> list[tuple[Tensor, Tensor]]:
        """For each teacher what its head reads, and that head: (B, T) -> (B, T, C), (V, C).

        The text says of each token only which one came; a teacher says how likely all the others were. From little
        text a student of several teachers becomes better than each of them, and smaller if it should. What they say of
        a token is the mean of their probabilities.
        """
        kind = tokens.device.type  # the teachers go where the student is, in the type that its products have
        narrow = torch.get_autocast_dtype(kind) if torch.is_autocast_enabled(kind) else torch.float32
        for model in self._teachers:
            if (model.head.weight.device, model.head.weight.dtype) != (tokens.device, narrow):
                model.to(tokens.device, narrow)
        return [(model.hidden(tokens), model.head.weight) for model in self._teachers]

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
        split, tokens = self.data["validation"], self._config.evaluate_tokens
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


def _read_teacher(folder: str, tokenizer: Tokenizer, context_length: int) -> GPT:
    found = bundle.load(folder)
    model = found.model
    if not isinstance(model, GPT):
        raise ConfigError(
            "the teacher {folder} is a {family} model; only a gpt foretells next tokens",
            folder=folder,
            family=model.config.family,
        )
    if found.tokenizer is None or found.tokenizer.fingerprint != tokenizer.fingerprint:
        raise ConfigError(
            "the teacher {folder} reads with another tokenizer than the data; its guesses would be of other words",
            folder=folder,
        )
    if model.config.context_length < context_length:
        raise ConfigError(
            "the teacher {folder} reads {context_length} tokens at once; use context_length={context_length} or less",
            folder=folder,
            context_length=model.config.context_length,
        )
    if model.head.bias is not None:
        raise ConfigError(
            "the teacher {folder} has a bias in its head, which is not known how to teach from", folder=folder
        )
    return model.requires_grad_(False)
