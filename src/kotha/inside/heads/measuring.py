"""The data that heads are measured on: a text, split into passages and into batches with targets.

A GPT predicts each token from those before it, a BERT predicts masked words, and a Seq2Seq each token of a translation.
A text is tokenized as in the other views (for a GPT, with the start-of-document token in front). The documents in a
file or in training data are concatenated, as in training. Passages are as long as the context allows, and all have
equal weight. For a GPT they all have the same length, so a batch holds several; for a BERT or a Seq2Seq, each batch is
one passage.
"""

import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from kotha.artifacts.model_folder import Bundle
from kotha.artifacts.run_folder import find_data, run_config
from kotha.errors import UsageError
from kotha.i18n.message import Message, Option, Text
from kotha.inside.heads.importance import mean_loss
from kotha.inside.heads.kinds import Passage, rarest
from kotha.inside.inputs import special
from kotha.model.config import TextConfig
from kotha.model.loss import IGNORED
from kotha.storage import bundled
from kotha.text.corpus.documents import read_records
from kotha.text.held_out import Line, from_texts, read_held_out
from kotha.text.tokenizer.prompt import start_of_document
from kotha.text.tokenizer.tokenizer import Tokenizer

# Longer passages cost quadratic time and add no evidence.
_LONGEST, _FEWEST = 256, 9
# Tokens per batch of a GPT; larger batches are no faster, and their logits need more memory.
_TOGETHER = 1024
_BYTES_PER_TOKEN = 64  # an upper limit, so that only the needed part of a long text is read
_HIDDEN = 0.15  # share of tokens masked for a BERT, as in training
# More tokens take more time; with fewer, similarly important heads are ranked almost at random.
TOKENS = 2048


@dataclass(frozen=True, kw_only=True)
class TextSource:
    """The source of the text on which heads are measured."""

    text: str | None = None
    path: str | None = None  # a file, folder or data folder
    run: Path | None = None  # a run folder; its held-out documents are the default text
    field: str = "text"  # field of a record that holds the text
    pair: tuple[str, str] | None = None  # for a translation model: the fields of source and target
    tokens: int = TOKENS  # maximum number of tokens; each head is measured on all of them

    def __post_init__(self) -> None:
        if self.path is not None and self.text is not None:
            raise UsageError("give either a path or a text, not both")
        if self.tokens < _FEWEST:
            given = Option("tokens", self.tokens)
            raise UsageError("{tokens} is too small; use at least {fewest}", tokens=given, fewest=_FEWEST)


class TargetBatch(NamedTuple):
    """Model inputs with the target at each position, which is IGNORED where nothing is predicted."""

    inputs: tuple[Tensor, ...]
    targets: Tensor  # (B, T)

    def passages(self) -> Iterator[Passage]:
        """Yield each row as a passage; for a BERT, the masked words are restored."""
        hidden = (self.targets == IGNORED).any()
        tokens = torch.where(self.targets == IGNORED, self.inputs[-1], self.targets) if hidden else self.inputs[-1]
        for row, line in enumerate(tokens.cpu()):
            yield Passage(line, self.inputs[0][row].cpu() if len(self.inputs) > 1 else None)


def batch_loss(model: Any, batch: TargetBatch) -> Tensor:
    """Return the mean loss for each example in nats: (B,).

    All logits are computed at once, because they are small enough. The training loss computes them in chunks, but would
    load torch's compiler.
    """
    answer, targets = model(*batch.inputs), batch.targets
    logits = answer if isinstance(answer, Tensor) else answer.token_logits  # a BERT returns more than logits
    nats = cross_entropy(logits.flatten(0, 1).float(), targets.flatten(), ignore_index=IGNORED, reduction="none")
    return nats.view_as(targets).sum(dim=1) / (targets != IGNORED).sum(dim=1)


@dataclass(frozen=True)
class HeadExamination:
    """A model and the text on which its heads are measured."""

    bundle: Bundle
    tokenizer: Tokenizer
    text: Text  # where the text comes from
    counts: Sequence[int]  # count of each token in the full text, including the part that is not measured
    batches: list[TargetBatch]

    @property
    def context_length(self) -> int:
        """Context length of the model."""
        assert isinstance(self.bundle.config, TextConfig), "gather() accepts only models that take text"
        return self.bundle.config.context_length

    @cached_property
    def passages(self) -> list[Passage]:
        """All passages in the text."""
        return [passage for batch in self.batches for passage in batch.passages()]

    @cached_property
    def loss_nats(self) -> float:
        """Loss of the model with all heads, in nats."""
        return mean_loss(self.bundle.model, self.batches, batch_loss)

    @property
    def rare(self) -> set[int]:
        """The rarest tokens in the full text."""
        return rarest(self.counts, besides=self.tokenizer.special.values())

    @property
    def punctuation(self) -> list[int]:
        """Tokens in the text that consist only of punctuation."""
        occurring = (token for token in self.ordinary if token < len(self.counts) and self.counts[token])
        texts = ((token, self.tokenizer.decode([token]).strip()) for token in occurring)
        return [t for t, text in texts if text and all(unicodedata.category(character)[0] == "P" for character in text)]

    @cached_property
    def ordinary(self) -> list[int]:
        """All tokens except the special ones."""
        return sorted(set(range(self.tokenizer.vocab_size)) - set(self.tokenizer.special.values()))


def gather(bundle: Bundle, source: TextSource) -> HeadExamination:
    """Split a text into batches for a model that takes text as input."""
    family, tokenizer, config = bundle.config.family, bundle.tokenizer, bundle.config
    if tokenizer is None or not isinstance(config, TextConfig):
        raise UsageError("heads are measured on text, but a {family} model takes no text", family=family)
    if family != "seq2seq" and source.pair is not None:
        raise UsageError(
            "{pair} applies only to a translation model, but this model is a {family}",
            pair=Option("pair"),
            family=family,
        )
    name: Text
    if family == "seq2seq":
        name, batches = source.path or "", list(_pairs(config.context_length, tokenizer, source))
        counts = torch.cat([batch.inputs[0][0] for batch in batches]).bincount()
    else:
        name, tokens = _read(source, family, tokenizer)
        line, counts = torch.from_numpy(tokens[: source.tokens]), torch.from_numpy(tokens).bincount()
        if len(line) < _FEWEST:
            raise UsageError(
                "{name} has {n} tokens; at least {fewest} are needed",
                name=name,
                n=len(line),
                fewest=_FEWEST,
            )
        length = min(config.context_length, _LONGEST)
        batches = list((_masked if family == "bert" else _next_tokens)(length, tokenizer, line))
    device = next(bundle.model.parameters()).device
    moved = [TargetBatch(tuple(each.to(device) for each in some.inputs), some.targets.to(device)) for some in batches]
    return HeadExamination(bundle, tokenizer, name, counts.tolist(), moved)


def _read(source: TextSource, family: str, tokenizer: Tokenizer) -> tuple[Text, Line]:
    """Return the name and the tokens of the text."""
    if source.text is not None:
        # The text may continue, so the end token is not predicted.
        start = None if family == "bert" else start_of_document(tokenizer)
        line = from_texts([source.text], tokenizer, "the text").line[:-1]
        return Message("the text"), line if start is None else np.concatenate([[start], line])
    data: str | Path | None = source.path
    more: dict[str, Any] = {"field": source.field, "most_bytes": _BYTES_PER_TOKEN * source.tokens}
    if data is None and source.run is not None:
        data, more = find_data(run_config(source.run), source.run), {}
    if data is None:
        name: Text = Message("the model") if source.run is None else bundled.title(source.run)
        given = Option("text", ...)
        raise UsageError("the training data of {name} was not found; give {text} or a path", name=name, text=given)
    found = read_held_out(data, tokenizer, **more)
    return str(found.name), found.line


def _windows(line: Tensor, length: int) -> Tensor:
    """Cut a line into windows: (N,) -> (n, length).

    A remainder is dropped, but a line shorter than ``length`` becomes one window.
    """
    length = min(length, len(line))
    return line[: len(line) // length * length].view(-1, length)


def _next_tokens(length: int, _: Tokenizer, line: Tensor) -> Iterator[TargetBatch]:
    windows = _windows(line, length + 1)
    for some in torch.split(windows, max(1, _TOGETHER // windows.shape[1])):
        yield TargetBatch((some[:, :-1],), some[:, 1:])


def _masked(length: int, tokenizer: Tokenizer, line: Tensor) -> Iterator[TargetBatch]:
    cls, sep, mask = (special(tokenizer, role) for role in ("cls", "sep", "mask"))
    marks = torch.tensor(sorted(tokenizer.special.values()))
    chance = torch.Generator().manual_seed(0)
    for window in _windows(line, length - 2):
        tokens = torch.cat((torch.tensor([cls]), window, torch.tensor([sep])))
        words = (~torch.isin(tokens, marks)).nonzero().flatten()
        if len(words):
            hidden = words[torch.randperm(len(words), generator=chance)[: max(1, round(_HIDDEN * len(words)))]]
            shown, targets = tokens.clone(), torch.full_like(tokens, IGNORED)
            shown[hidden], targets[hidden] = mask, tokens[hidden]
            yield TargetBatch((shown[None],), targets[None])


def _pairs(length: int, tokenizer: Tokenizer, source: TextSource) -> Iterator[TargetBatch]:
    if source.path is None or source.pair is None:
        raise UsageError(
            "a translation model is measured on pairs; give a path, and the names of the two fields as pair",
        )
    start, end = (special(tokenizer, role) for role in ("bos", "eos"))
    most = source.tokens
    for _, ((source_text, target_text), _) in read_records([source.path], source.pair):
        encoded = torch.tensor([[*tokenizer.encode(source_text), end]])
        target = torch.tensor([[start, *tokenizer.encode(target_text), end]])
        if not source_text.strip() or not target_text.strip() or max(encoded.numel(), target.numel() - 1) > length:
            continue
        if most < 0:
            return
        most -= encoded.numel() + target.numel()
        yield TargetBatch((encoded, target[:, :-1]), target[:, 1:])
    if most == source.tokens:
        raise UsageError("{path} has no pair that fits the model's context length of {n}", path=source.path, n=length)
