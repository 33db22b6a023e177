"""Loss, perplexity, bits per byte and per character of a GPT on held-out text, and what it has to beat there.

Each document is read from its own start. Before its first token stands the end-of-text token alone, as it does at the
start of a document in training; its own end is the last token to be guessed. A document longer than the context is read
in sliding windows of ``context`` tokens that move on by ``stride``; a window scores only what no window before it has
scored, so each token is scored once, and past the first window with at least ``context - stride`` tokens before it. A
smaller stride gives more context and a lower loss, and takes longer; ``stride = context`` gives windows that share
nothing. A figure without context and stride says little, so every score carries them. (The windows are those of
https://huggingface.co/docs/transformers/perplexity.)

Perplexity is e to the loss per token, so it depends on what a token is: compare it under one tokenizer only. Bits per
byte and per character spread the same nats over the text itself.

To beat, on the very same tokens: ``ln V`` is for one who knows nothing: every token of the vocabulary is as likely as
any other. ``unigram`` is for one who knows how often each token occurs, one added to each count, as a run's
``references`` have it. ``3-gram`` and ``5-gram`` are for one who has counted (``ngram.py``), in the text that the model
has learned from: a model that does not beat them has learned nothing that counting does not give in a minute.
"""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch.nn.utils.rnn import pad_sequence

from kotha.errors import DataError, UsageError
from kotha.evaluation.ngram import KneserNey
from kotha.evaluation.result import Measurement
from kotha.i18n.message import Message, OnProgress, Plural, Text
from kotha.model.evaluating import evaluating
from kotha.model.gpt import GPT
from kotha.model.loss import token_losses
from kotha.report.table import Table
from kotha.text.held_out import HeldOut, Line, frequency_nats, tokens_of
from kotha.text.shards import Dataset

Nats = NDArray[np.float64]

FIGURES = {
    "bits_per_byte": Message("bits per byte"),
    "bits_per_character": Message("bits per character"),
    "perplexity": Message("perplexity"),
}
# Positions that go through the model at once; a GPU needs more to be busy.
_POSITIONS, _GPU_POSITIONS = 1 << 12, 1 << 16
# Documents that are sorted by length together, so that little of a batch is padding.
_SORTED = 128
ORDERS = (3, 5)
# Counting this many takes a minute or two; of more text the first are counted, and the answer says so.
MAX_TOKENS = 10_000_000


@dataclass(frozen=True)
class Familiarity:
    """How many documents of a text a run knows, and from where."""

    documents: int
    trained: int  # documents that it was trained on
    held_out: int  # others that its data folder held out: not learned from, but its best step was chosen by them
    verdict: Text  # the same in words


@dataclass(frozen=True)
class TextScore(Measurement):
    """How well a model predicts a text, and how that was measured."""

    left_out = ("nats",)
    figures = ("loss_nats", "perplexity", "bits_per_byte", "bits_per_character")

    loss_nats: float  # mean over all tokens, each document's end included
    perplexity: float  # e to the loss: among how many equally likely tokens it hesitates
    bits_per_byte: float
    bits_per_character: float
    tokens: int
    documents: int
    bytes: int
    characters: int
    unknown: int  # tokens that hide what the tokenizer does not know; bits per byte are too low by what they hide
    context: int
    stride: int
    tokenizer: str  # fingerprint of the tokenizer
    text: str  # where the text comes from
    nats: Nats = field(repr=False, compare=False)  # of each document, its end included
    seen: Familiarity | None = None  # whether the model has learned from it; None where that cannot be told
    baselines: dict[str, dict[str, float]] = field(default_factory=dict)  # what counting reaches on it: name, figures

    def _repr_html_(self) -> str:
        return score_table(self).html()


class Window(NamedTuple):
    """Inputs ``start`` to ``stop`` of a sequence, of which those from ``scored`` on count."""

    start: int
    scored: int
    stop: int


def evaluate_text(
    model: GPT,
    text: HeldOut,
    *,
    context_length: int | None = None,
    stride: int | None = None,
    on_progress: OnProgress | None = None,
) -> TextScore:
    """Measure a model on a text; the context is the model's, and the stride half of it, unless given."""
    context, stride = check_windows(model, context_length, stride)
    sequences = (np.concatenate([[text.end], document]) for document in text)
    by_document, done = np.zeros(text.documents), 0
    for place, nats in enumerate(token_nats(model, sequences, context, stride)):
        by_document[place] = nats.sum()
        done += len(nats)
        if on_progress is not None:
            on_progress(Message("measuring"), done, len(text.line))
    shared = {name: getattr(text, name) for name in ("documents", "bytes", "characters", "unknown", "tokenizer")}
    how: dict[str, Any] = {"tokens": len(text.line), "context": context, "stride": stride, "text": str(text.name)}
    how |= _figures(float(by_document.sum()) / len(text.line), text)
    return TextScore(**shared, **how, nats=by_document)


def _figures(loss: float, text: HeldOut) -> dict[str, float]:
    """What a mean loss in nats is as perplexity, and in bits for each byte and character of a text."""
    bits = loss / math.log(2) * len(text.line)
    by_text = {"bits_per_byte": bits / text.bytes, "bits_per_character": bits / text.characters}
    return {"loss_nats": loss, "perplexity": perplexity(loss), **by_text}


def perplexity(loss_nats: float) -> float:
    """e to the loss; past what a number can hold it is infinite.

    >>> round(perplexity(math.log(32_100)))
    32100
    """
    return math.exp(loss_nats) if loss_nats < 700 else math.inf


def check_windows(model: GPT, context_length: int | None, stride: int | None) -> tuple[int, int]:
    """Context and stride to measure with: as asked for, where the model can."""
    if not isinstance(model, GPT):
        raise UsageError(
            "a {name} does not predict the next token; only a GPT can be evaluated this way", name=type(model).__name__
        )
    longest = model.config.context_length
    context = longest if context_length is None else context_length
    if not 1 <= context <= longest:
        raise UsageError(
            "a context of {context} is out of range; use 1 to the model's {longest}", context=context, longest=longest
        )
    stride = max(1, context // 2) if stride is None else stride
    if not 1 <= stride <= context:
        wrong = "a stride of {stride} is out of range; use 1 to the context length, {context} (default: half of it)"
        raise UsageError(wrong, stride=stride, context=context)
    return context, stride


def windows(length: int, context: int, stride: int) -> list[Window]:
    """How a sequence of so many inputs is read.

    >>> windows(10, context=6, stride=3)
    [Window(start=0, scored=0, stop=6), Window(start=3, scored=6, stop=9), Window(start=6, scored=9, stop=10)]
    """
    found, scored, start = list[Window](), 0, 0
    while scored < length:
        stop = min(start + context, length)
        found.append(Window(start, scored, stop))
        scored, start = stop, start + stride
    return found


@torch.no_grad()
def token_nats(model: GPT, sequences: Iterable[Line], context: int, stride: int) -> Iterator[Nats]:
    """Nats of every token of each sequence but its first: (n,) -> (n - 1,), in the order of the sequences.

    Windows of several sequences go through the model together; one that is shorter is filled up on its right, which no
    token before it can see.
    """
    remaining, device = iter(sequences), model.tokens.weight.device
    room = _GPU_POSITIONS if device.type == "cuda" else _POSITIONS
    with evaluating(model):
        while shelf := list(islice(remaining, _SORTED)):
            found = [np.zeros(max(0, len(each) - 1)) for each in shelf]
            places = [
                (place, each) for place, line in enumerate(shelf) for each in windows(len(line) - 1, context, stride)
            ]
            places.sort(key=lambda place: place[1].stop - place[1].start, reverse=True)
            while places:
                width = places[0][1].stop - places[0][1].start
                size = max(1, room // width)
                batch, places = places[:size], places[size:]
                rows = [torch.from_numpy(shelf[place][each.start : each.stop + 1]) for place, each in batch]
                tokens = pad_sequence(rows, batch_first=True).to(device)  # (B, T + 1)
                hidden = model.hidden(tokens[:, :-1])  # (B, T, C)
                nats = token_losses(hidden, model.head.weight, tokens[:, 1:], model.head.bias).double().cpu().numpy()
                for (place, (start, scored, stop)), row in zip(batch, nats, strict=True):
                    found[place][scored:stop] = row[scored - start : stop - start]
            yield from found


# -- what it has to beat ----------------------------------------------------------------------------------------------


def count_baselines(
    data: Dataset, text: HeldOut, vocab_size: int, on_progress: OnProgress | None = None
) -> dict[str, dict[str, float]]:
    """Count the training split of a data folder, and measure on a text of the same tokenizer: figures by name.

    Where only the first tokens of the split were counted, the names of the n-grams say so.
    """
    if data.tokenizer.fingerprint != text.tokenizer:
        raise DataError(
            "{path} was prepared with tokenizer {fingerprint}, and the text with {tokenizer}; baselines need "
            "the model's tokens: give the data that the model was trained on",
            path=data.path,
            fingerprint=data.tokenizer.fingerprint,
            tokenizer=text.tokenizer,
        )
    learned = tokens_of(data["train"], MAX_TOKENS)
    found = baselines(learned, text, vocab_size, ORDERS, on_progress)
    if len(learned) == data["train"].info.tokens:
        return found
    return {
        f"{name} of {len(learned):,} tokens" if name.endswith("-gram") else name: each for name, each in found.items()
    }


def baselines(
    learned: Line, text: HeldOut, vocab_size: int, orders: Sequence[int], on_progress: OnProgress | None = None
) -> dict[str, dict[str, float]]:
    """Figures to beat on a text, by name, from tokens of documents end to end that may be counted."""
    counts = (np.bincount(each, minlength=vocab_size) for each in (learned, text.line))
    losses = {"ln V": math.log(vocab_size), "unigram": frequency_nats(*counts)}
    for done, order in enumerate(orders, 1):
        counted = KneserNey(learned, order, vocab_size, text.end)
        losses[f"{order}-gram"] = float(counted.nats(text.line).mean())
        if on_progress is not None:
            on_progress(Message("counting"), done, len(orders))
    return {name: _figures(loss, text) for name, loss in losses.items()}


# -- as it is told ----------------------------------------------------------------------------------------------------


def score_table(score: TextScore, name: str = "model") -> Table:
    """A model's score on a text, what counting reaches on it, and how both were measured."""
    cells = [[name, *_cells(vars(score))], *([each, *_cells(found)] for each, found in score.baselines.items())]
    how = vars(score) | {
        "tokens": Plural("{n} token", "{n:,} tokens", n=score.tokens),
        "documents": Plural("{n} document", "{n:,} documents", n=score.documents),
    }
    verdict: Text = Message("not known") if score.seen is None else score.seen.verdict
    remarks: list[Text] = [
        Message(
            "{tokens} of {documents} ({bytes:,} bytes, {characters:,} characters); context {context}, stride {stride}; "
            "tokenizer {tokenizer}",
            **how,
        ),
        Message("this text, for this model: {answer}", answer=verdict),
    ]
    if score.unknown:
        remarks.append(
            Message(
                "{n:,} tokens are unknown tokens: the text that they replace was not measured, so bits per "
                "byte and per character are too low",
                n=score.unknown,
            )
        )
    header: list[Text] = ["", Message("nats per token"), FIGURES["perplexity"], *list(FIGURES.values())[:2]]
    return Table(score.text, header, cells, remarks)


def _cells(figures: Mapping[str, float]) -> list[str]:
    loss, perplexity, *bits = (figures[name] for name in TextScore.figures)
    wide = f"{perplexity:,.1f}" if perplexity < 1e6 else f"{perplexity:.2e}"
    return [f"{loss:.4f}", wide, *(f"{each:.4f}" for each in bits)]
