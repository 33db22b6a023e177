"""Loss, perplexity, bits per byte and per character of a GPT on held-out text, with baselines.

Each document is evaluated from its start, after a single end-of-text token, as at the start of a document in training.
The last token that is predicted is the document's own end-of-text token. A document longer than the context is
evaluated in sliding windows of ``context`` tokens that advance by ``stride``. A window scores only tokens that no
earlier window has scored, so each token is scored once; after the first window, it is predicted from at least ``context
- stride`` tokens. A smaller stride gives more context and a lower loss, but takes longer; with ``stride = context`` the
windows do not overlap. A score depends on context and stride, so the result contains both. (The method is described at
https://huggingface.co/docs/transformers/perplexity.)

Perplexity is e to the power of the loss per token, so it is comparable only between models with the same tokenizer.
Bits per byte and per character are the same total loss divided by the size of the text.

The baselines use the same tokens. ``uniform`` assigns the same probability to every token. ``unigram`` uses the
frequency of each token (counts plus one), as in a run's ``references``. ``3-gram`` and ``5-gram`` are n-gram models
(``ngram.py``) built from the model's training data, which takes a minute.
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
from kotha.evaluation.result import Measurement
from kotha.i18n.message import Message, OnProgress, Plural, Text
from kotha.i18n.short_repr import ShortRepr
from kotha.model.evaluating import check_finite, evaluating, overflow_as_nan
from kotha.model.gpt import GPT
from kotha.model.loss import token_losses
from kotha.report.table import Table
from kotha.text.held_out import HeldOut, Line, frequency_nats, tokens_of
from kotha.text.ngram import KneserNey
from kotha.text.shards import Dataset

Nats = NDArray[np.float64]

FIGURES = {
    "bits_per_byte": Message("bits per byte"),
    "bits_per_character": Message("bits per character"),
    "perplexity": Message("perplexity"),
}
# Positions per forward pass; a GPU needs more for full utilization.
_POSITIONS, _GPU_POSITIONS = 1 << 12, 1 << 16
# Number of documents that are sorted by length together, so that batches have little padding.
_SORTED = 128
ORDERS = (3, 5)
# Counting this many tokens takes a minute or two; in a longer text only the first tokens are counted, and the names of
# the baselines include their number.
MAX_TOKENS = 10_000_000


@dataclass(frozen=True, repr=False)
class Contamination(ShortRepr):
    """The number of documents in a text that are also in a run's data."""

    documents: int
    trained: int  # documents in the training split
    held_out: int  # other documents, in the validation split: not trained on, but used to choose the best step
    verdict: Text  # summary as text


@dataclass(frozen=True, repr=False)
class TextScore(Measurement):
    """The score of a model on a text, and how it was measured."""

    left_out = ("nats",)
    figures = ("loss_nats", "perplexity", "bits_per_byte", "bits_per_character")

    loss_nats: float  # mean over all tokens, including end-of-text tokens
    perplexity: float  # e to the power of the loss
    bits_per_byte: float
    bits_per_character: float
    tokens: int
    documents: int
    bytes: int
    characters: int
    unknown: int  # number of unknown tokens; the text that they replace is not scored, so bits per byte are too low
    changed: int  # documents that the tokens do not reproduce; their missing characters are not measured either
    context: int
    stride: int
    tokenizer: str  # its fingerprint
    text: str  # its source
    nats: Nats = field(repr=False, compare=False)  # losses in each document, including its end-of-text token
    seen: Contamination | None = None  # whether the text is in the model's data; None if unknown
    baselines: dict[str, dict[str, float]] = field(default_factory=dict)  # scores of the baselines, by name

    def _repr_html_(self) -> str:
        return score_table(self).html()


class Window(NamedTuple):
    """Inputs ``start`` to ``stop`` of a sequence; those at ``scored`` and later are scored."""

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
    """Evaluate a model on a text; the context defaults to that of the model, and the stride to half the context."""
    context, stride = check_windows(model, context_length, stride)
    sequences = (np.concatenate([[text.end], document]) for document in text)
    by_document, done = np.zeros(text.documents), 0
    for number, nats in enumerate(token_nats(model, sequences, context, stride)):
        by_document[number] = nats.sum()
        done += len(nats)
        if on_progress is not None:
            on_progress(Message("measuring"), done, len(text.line))
    shared = {
        name: getattr(text, name) for name in ("documents", "bytes", "characters", "unknown", "changed", "tokenizer")
    }
    how: dict[str, Any] = {"tokens": len(text.line), "context": context, "stride": stride, "text": str(text.name)}
    how |= _figures(float(by_document.sum()) / len(text.line), text)
    return TextScore(**shared, **how, nats=by_document)


def _figures(loss: float, text: HeldOut) -> dict[str, float]:
    """Convert a mean loss in nats to perplexity and to bits per byte and per character of a text."""
    bits = loss / math.log(2) * len(text.line)
    by_text = {"bits_per_byte": bits / text.bytes, "bits_per_character": bits / text.characters}
    return {"loss_nats": loss, "perplexity": perplexity(loss), **by_text}


def perplexity(loss_nats: float) -> float:
    """Return e to the power of the loss, or infinity on overflow.

    >>> round(perplexity(math.log(32_100)))
    32100
    """
    return math.exp(loss_nats) if loss_nats < 700 else math.inf


def check_windows(model: GPT, context_length: int | None, stride: int | None) -> tuple[int, int]:
    """Validate the context and stride for a model; None is replaced by the default."""
    if not isinstance(model, GPT):
        raise UsageError(
            "a {name} does not predict the next token; only a GPT can be evaluated this way", name=type(model).__name__
        )
    longest = model.config.context_length
    context = longest if context_length is None else context_length
    if not 1 <= context <= longest:
        raise UsageError(
            "a context of {context} is out of range; use a value from 1 to the model's limit of {longest}",
            context=context,
            longest=longest,
        )
    stride = max(1, context // 2) if stride is None else stride
    if not 1 <= stride <= context:
        wrong = (
            "a stride of {stride} is out of range; use a value from 1 to the context length of {context} "
            "(default: half of it)"
        )
        raise UsageError(wrong, stride=stride, context=context)
    return context, stride


def windows(length: int, context: int, stride: int) -> list[Window]:
    """Return the windows that cover a sequence of ``length`` inputs.

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
    """Yield the loss in nats of every token but the first in each sequence, in order: (n,) -> (n - 1,).

    Windows from several sequences are batched; shorter ones are padded on the right, and causal attention ignores this
    padding.
    """
    remaining, device = iter(sequences), model.tokens.weight.device
    budget = _GPU_POSITIONS if device.type == "cuda" else _POSITIONS
    with evaluating(model), overflow_as_nan(model):
        while group := list(islice(remaining, _SORTED)):
            found = [np.zeros(max(0, len(each) - 1)) for each in group]
            pending = [
                (number, each) for number, line in enumerate(group) for each in windows(len(line) - 1, context, stride)
            ]
            pending.sort(key=lambda item: item[1].stop - item[1].start, reverse=True)
            while pending:
                width = pending[0][1].stop - pending[0][1].start
                size = max(1, budget // width)
                batch, pending = pending[:size], pending[size:]
                rows = [torch.from_numpy(group[number][each.start : each.stop + 1]) for number, each in batch]
                tokens = pad_sequence(rows, batch_first=True).to(device)  # (B, T + 1)
                hidden = model.hidden(tokens[:, :-1])  # (B, T, C)
                nats = token_losses(hidden, model.head.weight, tokens[:, 1:], model.head.bias).double().cpu()
                for (number, (start, scored, stop)), row in zip(batch, check_finite(nats).numpy(), strict=True):
                    found[number][scored:stop] = row[scored - start : stop - start]
            yield from found


# -- baselines -------------------------------------------------------------------------------------------------------


def count_baselines(
    data: Dataset, text: HeldOut, vocab_size: int, on_progress: OnProgress | None = None
) -> dict[str, dict[str, float]]:
    """Return the scores of baselines on a text, by name, counted in the training split of a data folder.

    If only the first tokens in the split were counted, the names of the n-gram baselines include the number of tokens.
    """
    if data.tokenizer.fingerprint != text.tokenizer:
        raise DataError(
            "{path} was prepared with tokenizer {fingerprint}, but the text with {tokenizer}; give the data "
            "that the model was trained on",
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
    """Return the scores of the baselines on a text, by name, counted in the concatenated documents of ``learned``."""
    counts = (np.bincount(each, minlength=vocab_size) for each in (learned, text.line))
    losses = {"uniform": math.log(vocab_size), "unigram": frequency_nats(*counts)}
    for done, order in enumerate(orders, 1):
        counted = KneserNey(learned, order, vocab_size, text.end)
        losses[f"{order}-gram"] = float(counted.nats(text.line).mean())
        if on_progress is not None:
            on_progress(Message("counting"), done, len(orders))
    return {name: _figures(loss, text) for name, loss in losses.items()}


# -- rendering -------------------------------------------------------------------------------------------------------


def score_table(score: TextScore, name: str = "model") -> Table:
    """Return a table of a model's score and its baselines, with notes on the method."""
    cells: list[list[Text]] = [[name, *_cells(vars(score))]]
    for each, found in score.baselines.items():
        cells.append([Message(each), *_cells(found)])
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
        Message("relation to the training data: {answer}", answer=verdict),
    ]
    better = {name: each for name, each in score.baselines.items() if each["loss_nats"] < score.loss_nats}
    if better:
        best = min(better, key=lambda name: better[name]["loss_nats"])
        remarks.append(
            Message(
                "the {baseline} baseline, counted in the training text, predicts this text better than the model; "
                "train for longer, or check the run with {doctor}",
                baseline=Message(best),
                doctor="`kotha doctor`",
            )
        )
    if score.changed and not score.unknown:
        remarks.append(
            Message(
                "the tokenizer does not reproduce {documents} exactly: lost spaces, line breaks or characters were not "
                "measured, so bits per byte and per character are too low",
                documents=Plural("{n} document", "{n:,} documents", n=score.changed),
            )
        )
    if score.unknown:
        remarks.append(
            Message(
                "{n:,} tokens are unknown tokens: the text that they replace was not scored, so bits per byte and per "
                "character are too low",
                n=score.unknown,
            )
        )
    header: list[Text] = ["", Message("nats per token"), FIGURES["perplexity"], *list(FIGURES.values())[:2]]
    return Table(score.text, header, cells, remarks)


def _cells(figures: Mapping[str, float]) -> list[str]:
    loss, perplexity, *bits = (figures[name] for name in TextScore.figures)
    wide = f"{perplexity:,.1f}" if perplexity < 1e6 else f"{perplexity:.2e}"
    return [f"{loss:.4f}", wide, *(f"{each:.4f}" for each in bits)]
