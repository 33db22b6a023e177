"""What heads are measured on: a text as passages to look at and batches with a loss.

A GPT guesses each token from those before it, a BERT hidden words, a Seq2Seq each token of a translation. A text is
read as every view reads it, a GPT's behind the mark that starts a document; of a file or of data the documents lie end
to end, as in training. Passages are as long as the context allows, and all count alike. A GPT's have one length, so
that a batch holds several; a BERT's and a Seq2Seq's are batches of their own.
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

# Longer ones cost a square in time and show nothing more of a head.
_LONGEST, _FEWEST = 256, 9
# Tokens of a GPT's batch: more would be no faster, and their logits are the largest thing here.
_TOGETHER = 1024
_BYTES_PER_TOKEN = 64  # more than a piece has: enough of a long text is read, and not all of it
_HIDDEN = 0.15  # the share of a BERT's words, as when it learned
# Time grows with them; fewer leave heads of nearly the same worth in an order of chance.
TOKENS = 2048


@dataclass(frozen=True, kw_only=True)
class TextSource:
    """Where the text comes from that heads are measured on."""

    text: str | None = None
    path: str | None = None  # a file, folder or data folder
    run: Path | None = None  # a run folder: its held-out documents are read where nothing else is named
    field: str = "text"  # of records: which one holds the text
    pair: tuple[str, str] | None = None  # for a model that translates: the fields of source and target
    tokens: int = TOKENS  # at most; each head is measured on all of them

    def __post_init__(self) -> None:
        if self.path is not None and self.text is not None:
            raise UsageError("give either a path or a text, not both")
        if self.tokens < _FEWEST:
            given = Option("tokens", self.tokens)
            raise UsageError("{tokens} is too few; use {fewest} or more", tokens=given, fewest=_FEWEST)


class GuessedBatch(NamedTuple):
    """What a model is given, and what it should say at each place; IGNORED where nothing is asked."""

    inputs: tuple[Tensor, ...]
    targets: Tensor  # (B, T)

    def passages(self) -> Iterator[Passage]:
        """Each row as a passage to look at; a BERT's hidden words are there again."""
        hidden = (self.targets == IGNORED).any()
        tokens = torch.where(self.targets == IGNORED, self.inputs[-1], self.targets) if hidden else self.inputs[-1]
        for row, line in enumerate(tokens.cpu()):
            yield Passage(line, self.inputs[0][row].cpu() if len(self.inputs) > 1 else None)


def batch_loss(model: Any, batch: GuessedBatch) -> Tensor:
    """The mean loss of each example, in nats: (B,).

    These are few logits; training's loss, which never holds them all, would load torch's compiler first.
    """
    answer, targets = model(*batch.inputs), batch.targets
    logits = answer if isinstance(answer, Tensor) else answer.token_logits  # a BERT says more
    nats = cross_entropy(logits.flatten(0, 1).float(), targets.flatten(), ignore_index=IGNORED, reduction="none")
    return nats.view_as(targets).sum(dim=1) / (targets != IGNORED).sum(dim=1)


@dataclass(frozen=True)
class Examined:
    """A model, and the text that it is examined on."""

    bundle: Bundle
    tokenizer: Tokenizer
    text: Text  # where the text comes from
    counts: Sequence[int]  # how often each token occurs in all of it, also in what is not measured on
    batches: list[GuessedBatch]

    @property
    def context_length(self) -> int:
        """Of the model, which reads text."""
        assert isinstance(self.bundle.config, TextConfig), "what reads no text was refused"
        return self.bundle.config.context_length

    @cached_property
    def passages(self) -> list[Passage]:
        """What heads look at."""
        return [passage for batch in self.batches for passage in batch.passages()]

    @cached_property
    def loss_nats(self) -> float:
        """The loss of the whole model."""
        return mean_loss(self.bundle.model, self.batches, batch_loss)

    @property
    def rare(self) -> set[int]:
        """The rarest tokens of the whole text."""
        return rarest(self.counts, besides=self.tokenizer.special.values())

    @property
    def punctuation(self) -> list[int]:
        """Tokens of the text that are stops, dandas, commas and the like, and nothing else."""
        occurring = (token for token in self.ordinary if token < len(self.counts) and self.counts[token])
        texts = ((token, self.tokenizer.decode([token]).strip()) for token in occurring)
        return [t for t, text in texts if text and all(unicodedata.category(letter)[0] == "P" for letter in text)]

    @cached_property
    def ordinary(self) -> list[int]:
        """Tokens that stand for text."""
        return sorted(set(range(self.tokenizer.vocab_size)) - set(self.tokenizer.special.values()))


def gather(bundle: Bundle, source: TextSource) -> Examined:
    """Batches of a text, for a model that reads text."""
    family, tokenizer, config = bundle.config.family, bundle.tokenizer, bundle.config
    if tokenizer is None or not isinstance(config, TextConfig):
        raise UsageError("a {family} model takes no text, and heads are measured on text", family=family)
    if family != "seq2seq" and source.pair is not None:
        raise UsageError(
            "{pair} applies only to a translation model, and this one is a {family}", pair=Option("pair"), family=family
        )
    name: Text
    if family == "seq2seq":
        name, batches = source.path or "", list(_pairs(config.context_length, tokenizer, source))
        counts = torch.cat([batch.inputs[0][0] for batch in batches]).bincount()
    else:
        name, whole = _read(source, family, tokenizer)
        line, counts = torch.from_numpy(whole[: source.tokens]), torch.from_numpy(whole).bincount()
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
    there = [GuessedBatch(tuple(each.to(device) for each in some.inputs), some.targets.to(device)) for some in batches]
    return Examined(bundle, tokenizer, name, counts.tolist(), there)


def _read(source: TextSource, family: str, tokenizer: Tokenizer) -> tuple[Text, Line]:
    """The text's name and its tokens."""
    if source.text is not None:
        # Nothing says that it ends where it does, so the mark at the end is not to be foretold.
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
        raise UsageError("the data of {name} was not found; give {text}, or a path", name=name, text=given)
    found = read_held_out(data, tokenizer, **more)
    return str(found.name), found.line


def _windows(line: Tensor, length: int) -> Tensor:
    """A line in stretches: (N,) -> (n, length); what is left over is not read, unless it is all."""
    length = min(length, len(line))
    return line[: len(line) // length * length].view(-1, length)


def _next_tokens(length: int, _: Tokenizer, line: Tensor) -> Iterator[GuessedBatch]:
    windows = _windows(line, length + 1)
    for some in torch.split(windows, max(1, _TOGETHER // windows.shape[1])):
        yield GuessedBatch((some[:, :-1],), some[:, 1:])


def _masked(length: int, tokenizer: Tokenizer, line: Tensor) -> Iterator[GuessedBatch]:
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
            yield GuessedBatch((shown[None],), targets[None])


def _pairs(length: int, tokenizer: Tokenizer, source: TextSource) -> Iterator[GuessedBatch]:
    if source.path is None or source.pair is None:
        raise UsageError("a translation model is measured on pairs of texts; give a path, and the two fields as pair")
    start, end = (special(tokenizer, role) for role in ("bos", "eos"))
    most = source.tokens
    for _, ((source_text, target_text), _) in read_records([source.path], source.pair):
        asked = torch.tensor([[*tokenizer.encode(source_text), end]])
        target = torch.tensor([[start, *tokenizer.encode(target_text), end]])
        if not source_text.strip() or not target_text.strip() or max(asked.numel(), target.numel() - 1) > length:
            continue
        if most < 0:
            return
        most -= asked.numel() + target.numel()
        yield GuessedBatch((asked, target[:, :-1]), target[:, 1:])
    if most == source.tokens:
        raise UsageError("{path} has no pair that fits the model's context length of {n}", path=source.path, n=length)
