"""Loss, perplexity, bits per byte and per character of a GPT on held-out text.

Each document is read from its own start. Before its first token stands the end-of-text token alone, as it does at the
start of a document in training; its own end is the last token to be guessed. A document longer than the context is read
in sliding windows of ``context`` tokens that move on by ``stride``; a window scores only what no window before it has
scored, so each token is scored once, and past the first window with at least ``context - stride`` tokens before it. A
smaller stride gives more context and a lower loss, and takes longer; ``stride = context`` gives windows that share
nothing. A figure without context and stride says little, so every score carries them. (The windows are those of
https://huggingface.co/docs/transformers/perplexity.)

Perplexity is e to the loss per token, so it depends on what a token is: compare it under one tokenizer only. Bits per
byte and per character spread the same nats over the text itself.
"""

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch.nn.utils.rnn import pad_sequence

from kotha.errors import UsageError
from kotha.evaluation.text_score import TextScore
from kotha.i18n.message import Message, OnProgress
from kotha.model.evaluating import evaluating
from kotha.model.gpt import GPT
from kotha.model.loss import token_losses
from kotha.text.held_out import HeldOut, Line

Nats = NDArray[np.float64]

# Positions that go through the model at once; a GPU needs more to be busy.
_POSITIONS, _GPU_POSITIONS = 1 << 12, 1 << 16
# Documents that are sorted by length together, so that little of a batch is padding.
_SORTED = 128


@dataclass(frozen=True)
class Window:
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
    nats = document_nats(model, text, context, stride, on_progress)
    return score(float(nats.sum()), text, context, stride)


def document_nats(model: GPT, text: HeldOut, context: int, stride: int, on_progress: OnProgress | None = None) -> Nats:
    """Nats of each document of a text, its end included: (documents,)."""
    sequences = (np.concatenate([[text.end], document]) for document in text)
    found, done = np.zeros(text.documents), 0
    if on_progress is not None:
        on_progress(Message("measuring"), 0, len(text.line))
    for place, nats in enumerate(token_nats(model, sequences, context, stride)):
        found[place] = nats.sum()
        done += len(nats)
        if on_progress is not None:
            on_progress(Message("measuring"), done, len(text.line))
    return found


def score(nats: float, text: HeldOut, context: int, stride: int) -> TextScore:
    """A score from the nats of a whole text."""
    return TextScore(
        **figures(nats / len(text.line), text),
        tokens=len(text.line),
        documents=text.documents,
        bytes=text.bytes,
        characters=text.characters,
        unknown=text.unknown,
        context=context,
        stride=stride,
        tokenizer=text.tokenizer,
        text=str(text.name),
    )


def figures(loss: float, text: HeldOut) -> dict[str, Any]:
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
            "a {name} does not foretell the next token; only a GPT is measured this way", name=type(model).__name__
        )
    longest = model.config.context_length
    context = longest if context_length is None else context_length
    if not 1 <= context <= longest:
        raise UsageError(
            "a context of {context} is not between 1 and the model's {longest}", context=context, longest=longest
        )
    stride = max(1, context // 2) if stride is None else stride
    if not 1 <= stride <= context:
        raise UsageError(
            "a stride of {stride} is not between 1 and the context, {context}; half of it is usual",
            stride=stride,
            context=context,
        )
    return context, stride


def windows(length: int, context: int, stride: int) -> list[Window]:
    """How a sequence of so many inputs is read.

    >>> windows(10, context=6, stride=3)
    [Window(start=0, scored=0, stop=6), Window(start=3, scored=6, stop=9), Window(start=6, scored=9, stop=10)]
    """
    found, scored = [], 0
    for start in range(0, length, stride):
        stop = min(start + context, length)
        found.append(Window(start, scored, stop))
        scored = stop
        if stop == length:
            break
    return found


@torch.no_grad()
def token_nats(model: GPT, sequences: Iterable[Line], context: int, stride: int) -> Iterator[Nats]:
    """Nats of every token of each sequence but its first: (n,) -> (n - 1,), in the order of the sequences.

    Windows of several sequences go through the model together; one that is shorter is filled up on its right, which no
    token before it can see.
    """
    remaining = iter(sequences)
    with evaluating(model):
        while shelf := list(islice(remaining, _SORTED)):
            yield from _shelf_nats(model, shelf, context, stride)


def _shelf_nats(model: GPT, shelf: list[Line], context: int, stride: int) -> list[Nats]:
    places = [(number, each) for number, line in enumerate(shelf) for each in windows(len(line) - 1, context, stride)]
    places.sort(key=lambda place: place[1].stop - place[1].start, reverse=True)
    found = [np.zeros(max(0, len(each) - 1)) for each in shelf]
    device = model.tokens.weight.device
    room = _GPU_POSITIONS if device.type == "cuda" else _POSITIONS
    first = 0
    while first < len(places):
        width = places[first][1].stop - places[first][1].start
        batch = places[first : first + max(1, room // width)]
        nats = _batch_nats(model, [shelf[number][window.start : window.stop + 1] for number, window in batch])
        for (number, window), row in zip(batch, nats, strict=True):
            found[number][window.scored : window.stop] = row[window.scored - window.start : window.stop - window.start]
        first += len(batch)
    return found


def _batch_nats(model: GPT, rows: list[Line]) -> Nats:
    """Nats of every token but the first of each row: -> (B, T); what lies beyond a row's end means nothing."""
    tokens = pad_sequence([torch.from_numpy(row) for row in rows], batch_first=True).to(model.tokens.weight.device)
    hidden = model.hidden(tokens[:, :-1])  # (B, T, C)
    nats = token_losses(hidden, model.head.weight, tokens[:, 1:], model.head.bias)
    found: Nats = nats.double().cpu().numpy()
    return found
