"""The interface between the training loop and a task, and the task of a GPT: predicting the next token.

A task creates batches, computes their losses, and evaluates a model on held-out examples. A batch depends only on the
seed and the step, so a resumed run skips no data. A task is independent of optimizers, checkpoints and machines.

``PackedBatches`` shuffles the documents in each epoch, concatenates them, and cuts this endless stream into sequences,
so every token is a target exactly once per epoch and no padding is needed. ``OffsetBatches`` starts each sequence at a
random position, as in the course. ``NextToken`` can also reverse a share of the sequences (reverse training), and use
targets from teachers (knowledge distillation) or from an n-gram model (``ngram_targets.py``).
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path
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
from kotha.text.held_out import Counts, frequency_nats, tokens_of
from kotha.text.ngram import KneserNey
from kotha.text.shards import Dataset, Split
from kotha.text.tokenizer.chat import ChatTemplate
from kotha.text.tokenizer.tokenizer import Tokenizer
from kotha.training.config import TrainConfig
from kotha.training.tasks.ngram_targets import ORDER, NgramSampler

Tensors = dict[str, Tensor]
Score = dict[str, float]
Ids = NDArray[np.int64]

# Positions per forward pass in evaluation.
POSITIONS_AT_ONCE = {"cuda": 1 << 15, "cpu": 1 << 12}


@dataclass(frozen=True)
class Batch:
    """A batch of examples, or a part of one, as input to a model."""

    tensors: Tensors  # inputs to the losses, by name; the first dimension is the examples
    targets: dict[str, int]  # the number of predictions over which each part of the loss averages
    tokens: int  # number of positions that the model processes

    def to(self, device: torch.device) -> Tensors:
        """Return the tensors on a device; copies to a GPU are asynchronous."""
        if device.type != "cuda":
            return self.tensors
        return {name: each.pin_memory().to(device, non_blocking=True) for name, each in self.tensors.items()}


class Task(Protocol):
    """A training objective with its examples."""

    name: str  # name in a run's config
    tokenizer: Tokenizer | None = None  # tokenizer of the text, saved with the model
    chat_template: ChatTemplate | None = None  # chat template of a model trained on conversations

    auxiliary_models: Sequence[nn.Module] = ()  # other models used by the losses

    def batch(self, step: int, first: int, count: int) -> Batch:
        """Return ``count`` examples of a step's batch, starting at ``first``."""

    def set_total_steps(self, steps: int) -> None:
        """Set the total number of steps, which can change during the run."""
        return

    def losses(self, model: Any, tensors: Tensors) -> Tensors:
        """Return the loss to minimize, in nats: for each part, the mean over its targets."""

    def measure(self, model: Any, tensors: Tensors) -> Tensors:
        """Return the sums over a batch from which scores are computed: nats for each part, and counts."""

    def validation(self) -> Sequence[Batch]:
        """Return the held-out examples."""

    def score(self, sums: dict[str, float], targets: dict[str, int]) -> Score:
        """Compute metrics, including ``loss_nats``, from the sums of ``measure``."""

    def error(self, score: Score) -> float:
        """Return the value that selects the best model: 0 or more; lower is better."""
        return score["loss_nats"]

    def references(self) -> dict[str, float]:
        """Return baseline losses in nats by name, such as the loss of uniform guessing."""


def check_vocabulary(model: TextConfig, tokenizer: Tokenizer) -> None:
    """Raise an error if the tokenizer has more tokens than the model's vocabulary."""
    if model.vocab_size < tokenizer.vocab_size:
        raise ConfigError(
            "the model's vocabulary has {n:,} tokens, but the tokenizer has {vocab_size:,}; use "
            "vocab_size={vocab_size}",
            n=model.vocab_size,
            vocab_size=tokenizer.vocab_size,
        )


def measuring_slices(n_examples: int, width: int, positions: int | None) -> list[range]:
    """Return slices of the evaluation examples, each for one forward pass of at most ``positions`` positions.

    >>> measuring_slices(100, width=1024, positions=7000)
    [range(0, 4), range(4, 6)]
    """
    wanted = n_examples if positions is None else min(n_examples, max(1, positions // width))
    size = max(1, POSITIONS_AT_ONCE["cuda" if torch.cuda.is_available() else "cpu"] // width)
    return [range(start, min(start + size, wanted)) for start in range(0, wanted, size)]


# -- next tokens -------------------------------------------------------------------------------------------------------


_PART = "tokens"
_LAST_FORWARDS = 0.25  # share of the steps at the end
_SAMPLES = 4  # samples from the n-gram model per position
_COUNTED = 2_000_000  # tokens from which the n-gram baseline is counted, in a few seconds


class NextToken(Task):
    """Predict each token from the preceding ones.

    A share of the sequences can be reversed (reverse training, https://arxiv.org/abs/2403.13799), which improves models
    trained on a small text. Trained models can be used as teachers, whose probabilities for all tokens become targets
    (knowledge distillation).

    For evaluation, the concatenated validation documents are cut into non-overlapping windows, so each token is a
    target once. Each window starts without context, so the loss is slightly higher than with a sliding window.
    """

    name = "next-token"

    def __init__(self, model: GPTConfig, config: TrainConfig, data: Dataset, run: Path | None = None) -> None:
        """``run`` is the run folder, which contains any teachers trained as part of the run."""
        check_vocabulary(model, data.tokenizer)
        if config.teachers and config.backwards:
            raise ConfigError(
                "teachers predict the next token, so they cannot be combined with backwards; use only one of them"
            )
        if config.ngram_share and (config.teachers or config.backwards):
            raise ConfigError("ngram_share cannot be combined with teachers or backwards; use only one of them")
        self.data, self.tokenizer, self._config = data, data.tokenizer, config
        self._vocab_size, self._label_smoothing = model.vocab_size, config.label_smoothing
        self.context_length = config.context_length or model.context_length
        kind: type[PackedBatches | OffsetBatches] = PackedBatches if config.sampling == "documents" else OffsetBatches
        self._batches = kind(data["train"], self.context_length, config.batch_size, config.seed)
        self.set_total_steps(config.steps)
        self._run = run
        if run is None or all(Path(each).is_absolute() for each in config.teachers):
            self.auxiliary_models  # noqa: B018 - invalid teachers are rejected before any work

    @cached_property
    def auxiliary_models(self) -> Sequence[GPT]:  # type: ignore[override]
        """The teachers; teachers trained as part of the run have relative paths."""
        return [self._read_teacher(str((self._run or Path()) / folder)) for folder in self._config.teachers]

    def set_total_steps(self, steps: int) -> None:
        self._forward_from = (1 - _LAST_FORWARDS) * steps  # from this step on, nothing is reversed

    def batch(self, step: int, first: int, count: int) -> Batch:
        sequences = self._batches.sequences(step, first, count)
        if self._config.backwards and step < self._forward_from:
            self._reverse(sequences, step, first)
        batch = _as_batch(torch.from_numpy(sequences))
        if self._config.ngram_share:
            batch.tensors["sampled"] = torch.from_numpy(self._sample(sequences, step, first))
        return batch

    def _reverse(self, sequences: Ids, step: int, first: int) -> None:
        """Reverse a random share of the sequences, determined by seed and step: (B, T + 1).

        A token can be predicted from the following tokens as well as from the preceding ones, so training can make
        twice as many passes over a text before the model memorises it. Reversed sequences are marked with the mask
        token, if the tokenizer has one.
        """
        draw = np.random.default_rng([self._config.seed, step, 1])
        reversed_rows = draw.random(first + len(sequences))[first:] < self._config.backwards
        sequences[reversed_rows] = sequences[reversed_rows, ::-1]
        mask = self.data.tokenizer.special.get("mask")
        if mask is not None:
            sequences[reversed_rows, 0] = mask

    def _sample(self, sequences: Ids, step: int, first: int) -> Ids:
        """Sample next tokens from the n-gram model, determined by seed and step: (B, T + 1) -> (B, T, K)."""
        shape = (first + len(sequences), self.context_length, _SAMPLES, ORDER, 2)
        return self._ngrams.sample(sequences, np.random.default_rng([self._config.seed, step, 2]).random(shape)[first:])

    @cached_property
    def _ngrams(self) -> NgramSampler:
        return NgramSampler(np.concatenate(self.data["train"].shards), self._vocab_size)

    def losses(self, model: GPT, tensors: Tensors) -> Tensors:
        predicted, distillation = next_token(model, tensors["sequences"]), dict[str, Any]()
        if self.auxiliary_models:
            teachers = self._teacher_outputs(tensors["sequences"][:, :-1])
            distillation = {"teachers": teachers, "teacher_share": self._config.teacher_share}
        if "sampled" in tensors:
            distillation = {"sampled": tensors["sampled"], "sampled_share": self._config.ngram_share}
        return {_PART: word_loss(model, predicted, self._label_smoothing, **distillation)}

    @torch.no_grad()
    def _teacher_outputs(self, tokens: Tensor) -> list[tuple[Tensor, Tensor]]:
        """Return the hidden states and the head of each teacher: (B, T) -> (B, T, C), (V, C).

        In the text, the only target is the actual token; a teacher gives probabilities for all tokens. The
        probabilities of several teachers are averaged. On a small text, a student trained on this average outperforms
        each of its teachers, even if it is smaller.
        """
        kind = tokens.device.type  # move the teachers to the student's device and precision
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
        train, held_out = (count_tokens(self.data, split, self._vocab_size) for split in ("train", "validation"))
        found = {"uniform": math.log(self._vocab_size), "unigram": frequency_nats(train, held_out)}
        counted = tokens_of(self.data["train"], _COUNTED)
        if (end := self.data.tokenizer.special.get("eos")) is not None:
            ngrams = KneserNey(counted, ORDER, self._vocab_size, end)
            of = "" if len(counted) == self.data["train"].info.tokens else f" of {len(counted):,} tokens"
            found[f"{ORDER}-gram{of}"] = float(ngrams.nats(tokens_of(self.data["validation"], _COUNTED)).mean())
        return found

    def validation(self) -> list[Batch]:
        tokens = self._config.evaluate_tokens
        line = np.concatenate(self.data["validation"].shards)[: None if tokens is None else tokens + 1]
        length = min(self.context_length, len(line) - 1)
        sequences = torch.from_numpy(windows(line, length, (len(line) - 1) // length))
        slices = measuring_slices(len(sequences), length, positions=None)
        return [_as_batch(sequences[some.start : some.stop]) for some in slices]

    def _read_teacher(self, folder: str) -> GPT:
        teacher = bundle.load(folder)
        why = self._teacher_problem(teacher)
        if why is not None:
            raise ConfigError("{folder} cannot be a teacher of this model: {why}", folder=folder, why=why)
        assert isinstance(teacher.model, GPT)
        return teacher.model.requires_grad_(False)

    def _teacher_problem(self, teacher: bundle.Bundle) -> Message | None:
        """Return why a model cannot be a teacher of this student, or None if it can."""
        if not isinstance(teacher.model, GPT):
            return Message(
                "it is a {family} model; only gpt models predict the next token", family=teacher.config.family
            )
        if teacher.tokenizer is None or teacher.tokenizer.fingerprint != self.data.tokenizer.fingerprint:
            return Message("its tokenizer differs from that of the data")
        context_length = teacher.model.config.context_length
        if context_length < self.context_length:
            return Message("its context is {n} tokens; use context_length={n} or less", n=context_length)
        return None if teacher.model.head.bias is None else Message("its output head has a bias")


def _as_batch(sequences: Tensor) -> Batch:
    targets = sequences[:, 1:].numel()
    return Batch({"sequences": sequences}, {_PART: targets}, targets)


def count_tokens(data: Dataset, split: str, vocab_size: int) -> Counts:
    """Return the count of each token in a split: (V,)."""
    counts = [np.bincount(np.asarray(shard), minlength=vocab_size) for shard in data[split].shards]
    return sum(counts, start=np.zeros(vocab_size, dtype=np.int64))


def windows(line: NDArray[Any], length: int, count: int) -> Ids:
    """Cut ids into sequences that overlap by one token, the last position's target: -> (count, length + 1)."""
    indices = np.arange(count)[:, None] * length + np.arange(length + 1)
    sequences: Ids = line[indices].astype(np.int64)
    return sequences


class _Batches:
    """The sequences of each step."""

    def __init__(self, split: Split, context_length: int, batch_size: int, seed: int) -> None:
        if split.info.tokens <= context_length:
            raise DataError(
                "the {split} split has only {n:,} tokens, less than one sequence of {length:,}; use a shorter "
                "context_length or more text",
                split=split.name,
                n=split.info.tokens,
                length=context_length + 1,
            )
        self._split, self._context_length, self._batch_size, self._seed = split, context_length, batch_size, seed


class PackedBatches(_Batches):
    """Sequences cut from documents that are shuffled in each epoch and concatenated."""

    @cached_property
    def _lengths(self) -> Ids:
        return np.diff(self._split.offsets).astype(np.int64)

    def sequences(self, step: int, first: int, count: int) -> Ids:
        """Return ``count`` sequences of a step's batch from ``first``, each with one token more than the context."""
        start = (step * self._batch_size + first) * self._context_length
        pieces = self._pieces(start, count * self._context_length + 1)
        line = np.concatenate([self._split[document][begin:end] for document, begin, end in pieces])
        return windows(line, self._context_length, count)

    def _pieces(self, start: int, length: int) -> list[tuple[int, int, int]]:
        """Return a part of the endless stream as (document, begin, end)."""
        pieces: list[tuple[int, int, int]] = []
        epoch, position = divmod(start, self._split.info.tokens)
        while length > 0:
            order, ends = self._order(epoch)
            turn = int(np.searchsorted(ends, position, side="right"))
            begin = position - int(ends[turn - 1] if turn else 0)
            while length > 0 and turn < len(order):
                document = int(order[turn])
                end = min(int(self._lengths[document]), begin + length)
                pieces.append((document, begin, end))
                length -= end - begin
                begin, turn = 0, turn + 1
            epoch, position = epoch + 1, 0
        return pieces

    @cached_property
    def _order(self) -> Callable[[int], tuple[Ids, Ids]]:
        return lru_cache(maxsize=2)(self._shuffle)  # a batch can span two epochs

    def _shuffle(self, epoch: int) -> tuple[Ids, Ids]:
        """Return the order of the documents in an epoch, and the position where each ends."""
        order = np.random.default_rng([self._seed, epoch]).permutation(len(self._lengths))
        return order, np.cumsum(self._lengths[order])


class OffsetBatches(_Batches):
    """Sequences from random positions in the concatenated documents, in their original order."""

    @cached_property
    def _line(self) -> NDArray[Any]:
        return np.concatenate(self._split.shards)

    def sequences(self, step: int, first: int, count: int) -> Ids:
        """See PackedBatches."""
        last = len(self._line) - self._context_length
        starts = np.random.default_rng([self._seed, step]).integers(0, last, self._batch_size)[first : first + count]
        sequences: Ids = self._line[starts[:, None] + np.arange(self._context_length + 1)].astype(np.int64)
        return sequences
