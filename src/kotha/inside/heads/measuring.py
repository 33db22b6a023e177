"""What heads are measured on: a text as passages to look at and batches with a loss.

A GPT guesses each token from those before it, a BERT hidden words, a Seq2Seq each token of a translation. A text is
read as every view reads it, a GPT's behind the mark that starts a document; of a file or of data the documents lie end
to end, as in training. Passages are as long as the context allows, and all count alike. A GPT's have one length, so
that a batch holds several; a BERT's and a Seq2Seq's are batches of their own.
"""

import unicodedata
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from kotha.artifacts.model_folder import Bundle
from kotha.artifacts.run_folder import find_data, run_config
from kotha.errors import UsageError
from kotha.i18n.message import Message, Option, Text
from kotha.inside.heads.attention_patterns import Passage
from kotha.inside.heads.importance import mean_loss
from kotha.inside.heads.kinds import rarest
from kotha.model.config import TextConfig
from kotha.storage import bundled
from kotha.storage.status import is_a_name
from kotha.text.akshara import aksharas
from kotha.text.corpus.documents import read_pairs
from kotha.text.held_out import HeldOut, Line, from_texts, read_held_out
from kotha.text.tokenizer.prompt import start_of_document
from kotha.text.tokenizer.tokenizer import Tokenizer
from kotha.training.objectives import masked_words, teacher_forcing
from kotha.training.tasks.masked_words import Masking

# Longer ones cost a square in time and show nothing more of a head.
_LONGEST, _FEWEST = 256, 9
# Tokens of a GPT's batch: more would be no faster, and their logits are the largest thing here.
_TOGETHER = 1024
_BYTES_PER_TOKEN = 64  # more than a piece has: enough of a long text is read, and not all of it
# Time grows with them; fewer leave heads of nearly the same worth in an order of chance.
TOKENS = 2048
Batch = dict[str, Tensor]


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
            raise UsageError("a path and a text are two texts; give one of them")
        if self.tokens < _FEWEST:
            given = Option("tokens", self.tokens)
            raise UsageError("{tokens} shows nothing; use {fewest} or more", tokens=given, fewest=_FEWEST)
        if not is_a_name(Path(self.path or "")):  # most likely a text that went astray
            start = "".join(aksharas(self.path or "")[:20])
            raise UsageError("“{start} …” is no file name; give a text as the text, not as the path", start=start)


@dataclass(frozen=True)
class Examined:
    """A model, and the text that it is examined on."""

    bundle: Bundle
    tokenizer: Tokenizer
    text: Text  # where the text comes from
    counts: list[int]  # how often each token occurs in all of it, also in what is not measured on
    passages: list[Passage]
    batches: list[Batch]
    loss: Callable[[Any, Batch], Tensor]

    @property
    def context_length(self) -> int:
        """Of the model, which reads text."""
        return _text_config(self.bundle).context_length

    @cached_property
    def loss_nats(self) -> float:
        """The loss of the whole model."""
        return mean_loss(self.bundle.model, self.batches, self.loss)

    @property
    def rare(self) -> list[int]:
        """The rarest tokens of the whole text."""
        return sorted(rarest(self.counts, besides=self.tokenizer.special.values()))

    @property
    def punctuation(self) -> list[int]:
        """Tokens of the text that are stops, dandas, commas and the like, and nothing else."""
        occurring = (token for token in self.ordinary if token < len(self.counts) and self.counts[token])
        texts = ((token, self.tokenizer.decode([token]).strip()) for token in occurring)
        return [t for t, text in texts if text and all(unicodedata.category(letter)[0] == "P" for letter in text)]

    @cached_property
    def ordinary(self) -> list[int]:
        """Tokens that stand for text."""
        special = set(self.tokenizer.special.values())
        return [token for token in range(self.tokenizer.vocab_size) if token not in special]


def gather(bundle: Bundle, source: TextSource) -> Examined:
    """Passages and batches of a text, for a model that reads text."""
    family, tokenizer = bundle.config.family, bundle.tokenizer
    if tokenizer is None:
        raise UsageError("a {family} model reads no text, and heads are measured on text", family=family)
    if family == "seq2seq":
        return _pairs(bundle, tokenizer, source)
    if source.pair is not None:
        raise UsageError(
            "{pair} is for a model that translates, and this one is a {family}", pair=Option("pair"), family=family
        )
    name, whole = _read(source, family, tokenizer)
    line = whole[: source.tokens]
    if len(line) < _FEWEST:
        raise UsageError(
            "{name} has {n} tokens; {fewest} are the least that shows something",
            name=name,
            n=len(line),
            fewest=_FEWEST,
        )
    counts = np.bincount(whole).tolist()
    return (_masked if family == "bert" else _next_tokens)(bundle, tokenizer, name, counts, line)


def _read(source: TextSource, family: str, tokenizer: Tokenizer) -> tuple[Text, Line]:
    """The text's name and its tokens."""
    if source.text is not None:
        # Nothing says that it ends where it does, so the mark at the end is not to be foretold.
        start = None if family == "bert" else start_of_document(tokenizer)
        line = from_texts([source.text], tokenizer, "the text").line[:-1]
        return Message("the text"), line if start is None else np.concatenate([[start], line])
    found = _documents(source, tokenizer)
    return str(found.name), found.line


def _documents(source: TextSource, tokenizer: Tokenizer) -> HeldOut:
    if source.path is not None:
        most = _BYTES_PER_TOKEN * source.tokens
        return read_held_out(source.path, tokenizer, field=source.field, most_bytes=most)
    data = None if source.run is None else find_data(run_config(source.run), source.run)
    if data is None:
        name: Text = Message("the model") if source.run is None else bundled.title(source.run)
        given = Option("text", ...)
        raise UsageError(
            "{name} knows no data that is still there; give {text}, or the path of one", name=name, text=given
        )
    return read_held_out(data, tokenizer)


def _text_config(bundle: Bundle) -> TextConfig:
    assert isinstance(bundle.config, TextConfig), "what reads no text was refused"
    return bundle.config


def _windows(line: Line, bundle: Bundle, more: int) -> Iterator[Tensor]:
    """A line in stretches as long as the context, and a little; what is left over is not read, unless it is all."""
    length = min(min(_text_config(bundle).context_length, _LONGEST) + more, len(line))
    return (torch.from_numpy(line[start : start + length]) for start in range(0, len(line) - length + 1, length))


def _batch_of_one(values: Tensor, bundle: Bundle) -> Tensor:
    return values[None].to(next(bundle.model.parameters()).device)


def _next_tokens(bundle: Bundle, tokenizer: Tokenizer, text: Text, counts: list[int], line: Line) -> Examined:
    windows = list(_windows(line, bundle, 1))
    passages = [Passage(window[:-1]) for window in windows]
    device = next(bundle.model.parameters()).device
    size = max(1, _TOGETHER // len(windows[0]))
    batches = [{"sequences": each} for each in torch.split(torch.stack(windows).to(device), size)]

    def loss(model: Any, batch: Batch) -> Tensor:
        # These are few logits; training's loss, which never holds them all, would load torch's compiler first.
        inputs, targets = batch["sequences"][:, :-1], batch["sequences"][:, 1:]
        nats = cross_entropy(model(inputs).flatten(0, 1).float(), targets.flatten(), reduction="none")
        return nats.view_as(targets).mean(dim=1)  # (B,)

    return Examined(bundle, tokenizer, text, counts, passages, batches, loss)


def _masked(bundle: Bundle, tokenizer: Tokenizer, text: Text, counts: list[int], line: Line) -> Examined:
    masking, chance = Masking(tokenizer), np.random.default_rng(0)
    ends = torch.tensor([masking.cls]), torch.tensor([masking.sep])
    passages, batches = [], []
    for window in _windows(line, bundle, -2):
        tokens = torch.cat((ends[0], window, ends[1]))
        passages.append(Passage(tokens))
        hidden = masking.hide(tokens.numpy(), chance)._asdict()
        batches.append({key: _batch_of_one(torch.from_numpy(each), bundle) for key, each in hidden.items()})

    def loss(model: Any, batch: Batch) -> Tensor:
        return masked_words(model, model.hidden(batch["tokens"]), batch["places"], batch["words"])

    return Examined(bundle, tokenizer, text, counts, passages, batches, loss)


def _pairs(bundle: Bundle, tokenizer: Tokenizer, source: TextSource) -> Examined:
    if source.path is None or source.pair is None:
        raise UsageError("a model that translates is measured on pairs; give a path, and the fields as pair")
    start, end = tokenizer.special["bos"], tokenizer.special["eos"]
    context_length, most = _text_config(bundle).context_length, source.tokens
    passages: list[Passage] = []
    batches: list[Batch] = []
    for each in read_pairs([source.path], source_field=source.pair[0], target_field=source.pair[1]):
        asked = torch.tensor([*tokenizer.encode(each.source_text), end])
        target = torch.tensor([start, *tokenizer.encode(each.target_text), end])
        if max(len(asked), len(target) - 1) > context_length:
            continue
        if most < 0:
            break
        most -= len(asked) + len(target)
        passages.append(Passage(target[:-1], asked))
        batches.append({"source": _batch_of_one(asked, bundle), "target": _batch_of_one(target, bundle)})
    if not batches:
        raise UsageError("{path} has no pair that fits the model's context of {n}", path=source.path, n=context_length)
    counts = np.bincount(torch.cat([batch["source"][0] for batch in batches]).cpu().numpy()).tolist()

    def loss(model: Any, batch: Batch) -> Tensor:
        return teacher_forcing(model, batch["source"], batch["target"])

    return Examined(bundle, tokenizer, source.path, counts, passages, batches, loss)
