"""What is learned: each objective says what the word head reads of a batch, and which words it should say.

The head is applied inside the loss, in chunks, and only to the places that are guessed: logits for a whole batch never
exist. Losses are means in nats; what is measured are sums.
"""

from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from kotha.model.bert import BERT
from kotha.model.gpt import GPT
from kotha.model.loss import CHUNK_LOGITS, IGNORED, next_token_loss
from kotha.model.seq2seq import Seq2Seq

Asked = tuple[Tensor, Tensor]
"""Rows that the word head reads (..., C), and the words that it should say (...), IGNORED where nothing is asked."""


def next_token(model: GPT, sequences: Tensor) -> Asked:
    """Guess each token from those before it: (B, T + 1) -> (B, T, C), (B, T)."""
    return model.hidden(sequences[:, :-1]), sequences[:, 1:]


def teacher_forcing(model: Seq2Seq, source: Tensor, target: Tensor, real: Tensor | None = None) -> Asked:
    """Guess each target token from the source and the true tokens before it: (B, S), (B, T + 1) -> (B, T, C), (B, T).

    A target runs from its start mark to its end mark, then IGNORED; ``real`` (B, S) is False at the source's padding.
    """
    inputs = target[:, :-1].clamp(min=0)  # any token will do for padding: it comes last, and nothing before sees it
    return model.hidden(source, inputs, real), target[:, 1:]


def masked_words(model: BERT, hidden: Tensor, places: Tensor, words: Tensor) -> Asked:
    """Guess the words that stood at some places of a text: (B, T, C), (B, K), (B, K) -> (B, K, C), (B, K).

    ``hidden`` is what BERT made of the text in which they are hidden. Texts with fewer places than others are filled up
    with words that are IGNORED.
    """
    rows = hidden.gather(1, places[..., None].expand(-1, -1, hidden.shape[-1]))
    return model.guess(rows), words


def word_loss(model: GPT | BERT | Seq2Seq, asked: Asked, label_smoothing: float = 0.0, **taught: Any) -> Tensor:
    """Mean nats of the words that are asked for: -> (); ``taught`` is what teachers say of them, as the loss has it."""
    rows, words = asked
    how: Any = {"label_smoothing": label_smoothing, **taught}
    return next_token_loss(rows, model.head.weight, words, model.head.bias, **how)


def sentence_pairs(model: BERT, hidden: Tensor, unrelated: Tensor) -> Tensor:
    """Tell whether a second sentence follows the first (0) or is from elsewhere (1): (B, T, C), (B,) -> ()."""
    return cross_entropy(model.pair_head(model.pool(hidden)).float(), unrelated)


def classes(logits: Tensor, labels: Tensor, label_smoothing: float = 0.0, weights: Tensor | None = None) -> Tensor:
    """Say what an image shows, or of which class a text is: (B, K), (B,) -> ().

    With ``weights`` (B,), one for each example, the mean over the examples of what each loses times its weight.
    """
    if weights is None:
        return cross_entropy(logits.float(), labels, label_smoothing=label_smoothing)
    losses = cross_entropy(logits.float(), labels, label_smoothing=label_smoothing, reduction="none")
    return (losses * weights).mean()


@torch.no_grad()
def judge(logits: Tensor, answers: Tensor) -> tuple[Tensor, Tensor]:
    """Nats, summed, and how many first guesses are right, of the answers that count: (N, K), (N,) -> (), ()."""
    nats = cross_entropy(logits.float(), answers, ignore_index=IGNORED, reduction="sum").double()
    return nats, (logits.argmax(dim=-1) == answers).sum()


@torch.no_grad()
def judge_words(model: GPT | BERT | Seq2Seq, asked: Asked) -> tuple[Tensor, Tensor]:
    """The same of words that are asked for, a chunk of logits at a time: -> (), ()."""
    size = max(1, CHUNK_LOGITS // model.head.out_features)
    chunks = zip(torch.split(asked[0].flatten(0, -2), size), torch.split(asked[1].flatten(), size), strict=True)
    nats, right = zip(*(judge(model.head(rows), words) for rows, words in chunks), strict=True)
    return torch.stack(nats).sum(), torch.stack(right).sum()
