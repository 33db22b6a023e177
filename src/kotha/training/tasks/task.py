"""What the loop asks of a task, so that one loop serves them all; and next tokens, what a GPT learns from a folder.

A task makes batches, each a function of seed and step, so that a resumed run misses nothing; gives the losses of a
batch; and measures a model on examples that it does not learn from. It knows nothing of optimizers, checkpoints or
machines.

``PackedBatches`` lays the documents of an epoch end to end in a new order, epoch after epoch, and cuts the endless line
into sequences: every token is a target exactly once an epoch, and none is wasted on padding. ``OffsetBatches`` is the
course's: each sequence starts at a random place. ``NextToken`` can also read a share of the steps backwards (reverse
training) and learn from what teachers foretell (knowledge distillation).
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from kotha.artifacts import model_folder as bundle
from kotha.errors import ConfigError, DataError
from kotha.i18n.message import Message
from kotha.model.config import GPTConfig, TextConfig
from kotha.model.gpt import GPT
from kotha.model.loss import token_losses
from kotha.model.objectives import next_token, word_loss
from kotha.text.held_out import Counts, frequency_nats
from kotha.text.shards import Dataset, Split
from kotha.text.tokenizer.chat import ChatTemplate
from kotha.text.tokenizer.tokenizer import Tokenizer
from kotha.training.config import TrainConfig

Tensors = dict[str, Tensor]
Score = dict[str, float]
Ids = NDArray[np.int64]

# Positions that go through a model at once when it is measured.
POSITIONS_AT_ONCE = {"cuda": 1 << 15, "cpu": 1 << 12}


@dataclass(frozen=True)
class Batch:
    """Some examples, ready for a model."""

    tensors: Tensors  # what the losses are computed from, by name; the first dimension counts the examples
    targets: dict[str, int]  # how many guesses each part of the loss is the mean of
    tokens: int  # positions that go through the model

    def to(self, device: torch.device) -> Tensors:
        """The tensors on a device; a GPU reads them while it still computes."""
        if device.type != "cuda":
            return self.tensors
        return {name: each.pin_memory().to(device, non_blocking=True) for name, each in self.tensors.items()}


class Task(Protocol):
    """Something to learn, and the examples to learn it from."""

    name: str  # what it is called in a run's config
    tokenizer: Tokenizer | None = None  # of the texts that it reads, which goes with the model
    chat_template: ChatTemplate | None = None  # how a model that learned this takes turns, if it does

    auxiliary_models: Sequence[nn.Module] = ()  # that the losses read beside the one that learns

    def batch(self, step: int, first: int, count: int) -> Batch:
        """``count`` examples of a step's batch, from ``first`` on."""

    def set_total_steps(self, steps: int) -> None:
        """How many steps there will be, if on the way that becomes another number than the config's."""
        return

    def losses(self, model: Any, tensors: Tensors) -> Tensors:
        """The loss to go down on, in nats: for each part the mean over its targets."""

    def measure(self, model: Any, tensors: Tensors) -> Tensors:
        """Sums over a batch that a score is made from: nats for each part, and what else counts."""

    def validation(self) -> Sequence[Batch]:
        """The examples that are never learned from."""

    def score(self, sums: dict[str, float], targets: dict[str, int]) -> Score:
        """How well a model does, from what ``measure`` gave, ``loss_nats`` among it."""

    def error(self, score: Score) -> float:
        """What a model still lacks by its score, 0 or more; the one that lacks least is the best."""
        return score["loss_nats"]

    def references(self) -> dict[str, float]:
        """Losses in nats to compare with, by name: what one reaches who knows nothing, or very little."""


def check_vocabulary(model: TextConfig, tokenizer: Tokenizer) -> None:
    """Refuse a tokenizer with more tokens than a model knows."""
    if model.vocab_size < tokenizer.vocab_size:
        raise ConfigError(
            "the model's vocabulary has {n:,} tokens, but the tokenizer's has {vocab_size:,}; use "
            "vocab_size={vocab_size}",
            n=model.vocab_size,
            vocab_size=tokenizer.vocab_size,
        )


def measuring_slices(n_examples: int, width: int, positions: int | None) -> list[range]:
    """Examples to measure on, as many at a time as a machine likes; ``positions`` limits how many in all.

    >>> measuring_slices(100, width=1024, positions=7000)
    [range(0, 4), range(4, 6)]
    """
    wanted = n_examples if positions is None else min(n_examples, max(1, positions // width))
    size = max(1, POSITIONS_AT_ONCE["cuda" if torch.cuda.is_available() else "cpu"] // width)
    return [range(start, min(start + size, wanted)) for start in range(0, wanted, size)]


# -- next tokens -------------------------------------------------------------------------------------------------------


_PART = "tokens"
_LAST_FORWARDS = 0.25  # share of the steps


class NextToken(Task):
    """Guess each token from those before it.

    Some sequences may be read from their end to their start (reverse training, https://arxiv.org/abs/2403.13799), so
    that little text teaches more; and teachers, trained models, may say how likely every token was, where the text says
    only which one came (knowledge distillation).

    It is measured on the validation documents end to end, cut into windows that do not overlap, each token a target
    once. Each window starts with no context, so the figure is a little higher than what a sliding window gives.
    """

    name = "next-token"
    auxiliary_models: Sequence[GPT] = ()  # teachers

    def __init__(self, model: GPTConfig, config: TrainConfig, data: Dataset) -> None:
        check_vocabulary(model, data.tokenizer)
        if config.teachers and config.backwards:
            raise ConfigError(
                "teachers predict the next token, so they cannot be combined with backwards; give only one of them"
            )
        self.data, self.tokenizer, self._config = data, data.tokenizer, config
        self._vocab_size, self._label_smoothing = model.vocab_size, config.label_smoothing
        self.context_length = config.context_length or model.context_length
        kind: type[PackedBatches | OffsetBatches] = PackedBatches if config.sampling == "documents" else OffsetBatches
        self._batches = kind(data["train"], self.context_length, config.batch_size, config.seed)
        self.set_total_steps(config.steps)
        self.auxiliary_models = [self._read_teacher(folder) for folder in config.teachers]

    def set_total_steps(self, steps: int) -> None:
        self._forwards_from = (1 - _LAST_FORWARDS) * steps  # the step from which all is read as written

    def batch(self, step: int, first: int, count: int) -> Batch:
        sequences = self._batches.sequences(step, first, count)
        if self._config.backwards and step < self._forwards_from:
            self._turn(sequences, step, first)
        return _as_batch(torch.from_numpy(sequences))

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

    def losses(self, model: GPT, tensors: Tensors) -> Tensors:
        asked, taught = next_token(model, tensors["sequences"]), dict[str, Any]()
        if self.auxiliary_models:
            teachers = self._taught(tensors["sequences"][:, :-1])
            taught = {"teachers": teachers, "teacher_share": self._config.teacher_share}
        return {_PART: word_loss(model, asked, self._label_smoothing, **taught)}

    @torch.no_grad()
    def _taught(self, tokens: Tensor) -> list[tuple[Tensor, Tensor]]:
        """For each teacher what its head reads, and that head: (B, T) -> (B, T, C), (V, C).

        The text says of each token only which one came; a teacher says how likely all the others were. From little
        text a student of several teachers becomes better than each of them, and smaller if it should. What they say of
        a token is the mean of their probabilities.
        """
        kind = tokens.device.type  # the teachers go where the student is, in the type that its products have
        narrow = torch.get_autocast_dtype(kind) if torch.is_autocast_enabled(kind) else torch.float32
        for model in self.auxiliary_models:
            if (model.head.weight.device, model.head.weight.dtype) != (tokens.device, narrow):
                model.to(tokens.device, narrow)
        return [(model.hidden(tokens), model.head.weight) for model in self.auxiliary_models]

    @torch.no_grad()
    def measure(self, model: GPT, tensors: Tensors) -> Tensors:
        hidden, targets = next_token(model, tensors["sequences"])
        return {_PART: token_losses(hidden, model.head.weight, targets, model.head.bias).double().sum()}

    def score(self, sums: dict[str, float], targets: dict[str, int]) -> Score:
        split = self.data["validation"].info
        loss = sums[_PART] / targets[_PART]
        bits = loss / math.log(2) * split.tokens
        figures = {"bits_per_byte": bits / split.bytes, "bits_per_character": bits / split.characters}
        return {"loss_nats": loss, **figures, "tokens": targets[_PART]}

    def references(self) -> dict[str, float]:
        learned, held_out = (count_tokens(self.data, split, self._vocab_size) for split in ("train", "validation"))
        return {"ln V": math.log(self._vocab_size), "unigram": frequency_nats(learned, held_out)}

    def validation(self) -> list[Batch]:
        tokens = self._config.evaluate_tokens
        line = np.concatenate(self.data["validation"].shards)[: None if tokens is None else tokens + 1]
        length = min(self.context_length, len(line) - 1)
        sequences = torch.from_numpy(windows(line, length, (len(line) - 1) // length))
        slices = measuring_slices(len(sequences), length, positions=None)
        return [_as_batch(sequences[some.start : some.stop]) for some in slices]

    def _read_teacher(self, folder: str) -> GPT:
        found = bundle.load(folder)
        why = self._no_teacher(found)
        if why is not None:
            raise ConfigError("{folder} cannot be a teacher of this model: {why}", folder=folder, why=why)
        assert isinstance(found.model, GPT)
        return found.model.requires_grad_(False)

    def _no_teacher(self, found: bundle.Bundle) -> Message | None:
        """Why a model's guesses would not be of the words that the student learns; None where they are."""
        if not isinstance(found.model, GPT):
            return Message("it is a {family} model; only a gpt predicts next tokens", family=found.config.family)
        if found.tokenizer is None or found.tokenizer.fingerprint != self.data.tokenizer.fingerprint:
            return Message("its tokenizer differs from that of the data")
        context_length = found.model.config.context_length
        if context_length < self.context_length:
            return Message("its context is {n} tokens; use context_length={n} or less", n=context_length)
        return None if found.model.head.bias is None else Message("its output head has a bias")


def _as_batch(sequences: Tensor) -> Batch:
    targets = sequences[:, 1:].numel()
    return Batch({"sequences": sequences}, {_PART: targets}, targets)


def count_tokens(data: Dataset, split: str, vocab_size: int) -> Counts:
    """How often each token occurs in a split: (V,)."""
    counts = [np.bincount(np.asarray(shard), minlength=vocab_size) for shard in data[split].shards]
    return sum(counts, start=np.zeros(vocab_size, dtype=np.int64))


def windows(line: NDArray[Any], length: int, count: int) -> Ids:
    """A line of ids cut into sequences, each with the token after its last: -> (count, length + 1)."""
    places = np.arange(count)[:, None] * length + np.arange(length + 1)
    sequences: Ids = line[places].astype(np.int64)
    return sequences


class _Batches:
    """The sequences of each step."""

    def __init__(self, split: Split, context_length: int, batch_size: int, seed: int) -> None:
        if split.info.tokens <= context_length:
            raise DataError(
                "the {split} split has {n:,} tokens, fewer than one sequence of {length:,}; use a shorter "
                "context_length or more text",
                split=split.name,
                n=split.info.tokens,
                length=context_length + 1,
            )
        self._split, self._context_length, self._batch_size, self._seed = split, context_length, batch_size, seed


class PackedBatches(_Batches):
    """Documents in a new order each epoch, end to end, cut into sequences."""

    @cached_property
    def _lengths(self) -> Ids:
        return np.diff(self._split.offsets).astype(np.int64)

    def sequences(self, step: int, first: int, count: int) -> Ids:
        """``count`` sequences of a step's batch, from ``first`` on, each one token longer than the context."""
        start = (step * self._batch_size + first) * self._context_length
        pieces = self._pieces(start, count * self._context_length + 1)
        line = np.concatenate([self._split[document][begin:end] for document, begin, end in pieces])
        return windows(line, self._context_length, count)

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

    @cached_property
    def _order(self) -> Callable[[int], tuple[Ids, Ids]]:
        return lru_cache(maxsize=2)(self._shuffle)  # a batch may reach from one epoch into the next

    def _shuffle(self, epoch: int) -> tuple[Ids, Ids]:
        """The documents of an epoch in their order, and where each ends."""
        order = np.random.default_rng([self._seed, epoch]).permutation(len(self._lengths))
        return order, np.cumsum(self._lengths[order])


class OffsetBatches(_Batches):
    """Sequences from random places of the documents as they stand."""

    @cached_property
    def _line(self) -> NDArray[Any]:
        return np.concatenate(self._split.shards)

    def sequences(self, step: int, first: int, count: int) -> Ids:
        """As PackedBatches has them."""
        last = len(self._line) - self._context_length
        starts = np.random.default_rng([self._seed, step]).integers(0, last, self._batch_size)[first : first + count]
        sequences: Ids = self._line[starts[:, None] + np.arange(self._context_length + 1)].astype(np.int64)
        return sequences
