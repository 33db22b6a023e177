"""Training objectives: each returns the inputs to the token head for a batch and the tokens to predict.

The head is applied inside the loss, in chunks, and only at the predicted positions, so the logits of a whole batch are
never in memory. Losses are means in nats; evaluation functions return sums.
"""

from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from kotha.model.bert import BERT
from kotha.model.gpt import GPT
from kotha.model.loss import CHUNK_LOGITS, IGNORED, next_token_loss
from kotha.model.seq2seq import Seq2Seq

TokenHeadInputs = tuple[Tensor, Tensor]
"""Inputs to the token head (..., C) and target tokens (...), IGNORED where there is no target."""


def next_token(model: GPT, sequences: Tensor) -> TokenHeadInputs:
    """Predict each token from the preceding ones: (B, T + 1) -> (B, T, C), (B, T)."""
    return model.hidden(sequences[:, :-1]), sequences[:, 1:]


def teacher_forcing(model: Seq2Seq, source: Tensor, target: Tensor, real: Tensor | None = None) -> TokenHeadInputs:
    """Predict target tokens from the source and earlier target tokens: (B, S), (B, T + 1) -> (B, T, C), (B, T).

    A target extends from its start token to its end token and is padded with IGNORED; ``real`` (B, S) is False at the
    source's padding.
    """
    inputs = target[:, :-1].clamp(min=0)  # any token id works as padding, because earlier tokens do not attend to it
    return model.hidden(source, inputs, real), target[:, 1:]


def masked_words(model: BERT, hidden: Tensor, places: Tensor, words: Tensor) -> TokenHeadInputs:
    """Predict the masked tokens in a text: (B, T, C), (B, K), (B, K) -> (B, K, C), (B, K).

    ``hidden`` is BERT's output for the masked text, ``places`` are the masked positions. Shorter rows are padded with
    IGNORED targets.
    """
    rows = hidden.gather(1, places[..., None].expand(-1, -1, hidden.shape[-1]))
    return model.guess(rows), words


def word_loss(
    model: GPT | BERT | Seq2Seq, inputs: TokenHeadInputs, label_smoothing: float = 0.0, **teacher: Any
) -> Tensor:
    """Return the mean loss in nats: -> (); ``teacher`` holds the teacher arguments for ``next_token_loss``."""
    rows, words = inputs
    how: Any = {"label_smoothing": label_smoothing, **teacher}
    return next_token_loss(rows, model.head.weight, words, model.head.bias, **how)


def sentence_pairs(model: BERT, hidden: Tensor, unrelated: Tensor) -> Tensor:
    """Return the loss of predicting whether sentence two follows sentence one (0) or not (1): (B, T, C), (B,) -> ()."""
    return cross_entropy(model.pair_head(model.pool(hidden)).float(), unrelated)


def classes(logits: Tensor, labels: Tensor, label_smoothing: float = 0.0, weights: Tensor | None = None) -> Tensor:
    """Return the classification loss for images or texts: (B, K), (B,) -> ().

    With ``weights`` (B,), the loss of each example is multiplied by its weight before the mean is taken.
    """
    if weights is None:
        return cross_entropy(logits.float(), labels, label_smoothing=label_smoothing)
    losses = cross_entropy(logits.float(), labels, label_smoothing=label_smoothing, reduction="none")
    return (losses * weights).mean()


@torch.no_grad()
def score_predictions(logits: Tensor, answers: Tensor) -> tuple[Tensor, Tensor]:
    """Return the summed loss in nats and the number of correct predictions, without IGNORED: (N, K), (N,) -> (), ()."""
    nats = cross_entropy(logits.float(), answers, ignore_index=IGNORED, reduction="sum").double()
    return nats, (logits.argmax(dim=-1) == answers).sum()


@torch.no_grad()
def score_token_predictions(model: GPT | BERT | Seq2Seq, inputs: TokenHeadInputs) -> tuple[Tensor, Tensor]:
    """Like ``score_predictions`` for target tokens, but computes logits in chunks: -> (), ()."""
    size = max(1, CHUNK_LOGITS // model.head.out_features)
    chunks = zip(torch.split(inputs[0].flatten(0, -2), size), torch.split(inputs[1].flatten(), size), strict=True)
    nats, right = zip(*(score_predictions(model.head(rows), words) for rows, words in chunks), strict=True)
    return torch.stack(nats).sum(), torch.stack(right).sum()
