"""What is learned: each objective is a function of a model and a batch's tensors that gives a mean loss in nats.

Where the answer is a word of the vocabulary, the head is applied inside the loss, in chunks, and only to the places
that are guessed: logits for a whole batch never exist.
"""

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from kotha.model.bert import BERT
from kotha.model.gpt import GPT
from kotha.model.loss import CHUNK_LOGITS, IGNORED, RowsAndHead, next_token_loss, taught_loss, token_losses
from kotha.model.seq2seq import Seq2Seq


def next_token(model: GPT, sequences: Tensor, label_smoothing: float = 0.0) -> Tensor:
    """Guess each token from those before it: (B, T + 1) -> ()."""
    return asked_tokens(model, sequences[:, :-1], sequences[:, 1:], label_smoothing)


def asked_tokens(model: GPT, inputs: Tensor, targets: Tensor, label_smoothing: float = 0.0) -> Tensor:
    """The same where not every token is asked for; the targets of the others are IGNORED: (B, T), (B, T) -> ()."""
    hidden = model.hidden(inputs)
    return next_token_loss(hidden, model.head.weight, targets, model.head.bias, label_smoothing=label_smoothing)


def taught_token(
    model: GPT, sequences: Tensor, teachers: list[RowsAndHead], teacher_share: float, label_smoothing: float = 0.0
) -> Tensor:
    """The same from what teachers made of the inputs too (knowledge distillation): (B, T + 1) -> ()."""
    hidden, targets = model.hidden(sequences[:, :-1]), sequences[:, 1:]
    head = model.head
    return taught_loss(hidden, head.weight, targets, head.bias, teachers, teacher_share, label_smoothing)


@torch.no_grad()
def next_token_sum(model: GPT, sequences: Tensor) -> Tensor:
    """The sum of the same over all targets, for measuring: (B, T + 1) -> ()."""
    inputs, targets = sequences[:, :-1], sequences[:, 1:]
    return token_losses(model.hidden(inputs), model.head.weight, targets, model.head.bias).double().sum()


def masked_words(model: BERT, hidden: Tensor, places: Tensor, words: Tensor, label_smoothing: float = 0.0) -> Tensor:
    """Guess the words that stood at some places of a text: (B, T, C), (B, K), (B, K) -> ().

    ``hidden`` is what BERT made of the text in which they are hidden. Texts with fewer places than others are filled up
    with words that are IGNORED.
    """
    rows = guessed_rows(model, hidden, places)
    return next_token_loss(rows, model.head.weight, words, model.head.bias, label_smoothing=label_smoothing)


def guessed_rows(model: BERT, hidden: Tensor, places: Tensor) -> Tensor:
    """What the word head reads at some places: (B, T, C), (B, K) -> (B, K, C)."""
    rows = hidden.gather(1, places[..., None].expand(-1, -1, hidden.shape[-1]))
    return model.guess(rows)


def sentence_pairs(model: BERT, hidden: Tensor, unrelated: Tensor) -> Tensor:
    """Tell whether a second sentence follows the first (0) or is from elsewhere (1): (B, T, C), (B,) -> ()."""
    return cross_entropy(model.pair_head(model.pool(hidden)).float(), unrelated)


def teacher_forcing(
    model: Seq2Seq, source: Tensor, target: Tensor, real: Tensor | None = None, label_smoothing: float = 0.0
) -> Tensor:
    """Guess each target token from the source and the true tokens before it: (B, S), (B, T + 1) -> ().

    A target runs from its start mark to its end mark, then IGNORED; ``real`` (B, S) is False at the source's padding.
    """
    hidden, targets = forced(model, source, target, real)
    return next_token_loss(hidden, model.head.weight, targets, model.head.bias, label_smoothing=label_smoothing)


def forced(model: Seq2Seq, source: Tensor, target: Tensor, real: Tensor | None = None) -> tuple[Tensor, Tensor]:
    """What the head reads before each target, and the targets: (B, S), (B, T + 1) -> (B, T, C), (B, T)."""
    inputs = target[:, :-1].clamp(min=0)  # any token will do for padding: it comes last, and nothing before sees it
    return model.hidden(source, inputs, real), target[:, 1:]


def classes(logits: Tensor, labels: Tensor, label_smoothing: float = 0.0, weights: Tensor | None = None) -> Tensor:
    """Say what an image shows, or of which class a text is: (B, K), (B,) -> ().

    With ``weights`` (B,), one for each example, the mean over the examples of what each loses times its weight.
    """
    if weights is None:
        return cross_entropy(logits.float(), labels, label_smoothing=label_smoothing)
    losses = cross_entropy(logits.float(), labels, label_smoothing=label_smoothing, reduction="none")
    return (losses * weights).mean()


# -- measuring ---------------------------------------------------------------------------------------------------------


@torch.no_grad()
def judge(logits: Tensor, answers: Tensor) -> tuple[Tensor, Tensor]:
    """Nats, summed, and how many first guesses are right, of the answers that count: (N, K), (N,) -> (), ()."""
    nats = cross_entropy(logits.float(), answers, ignore_index=IGNORED, reduction="sum").double()
    return nats, (logits.argmax(dim=-1) == answers).sum()


@torch.no_grad()
def judge_words(rows: Tensor, head: nn.Linear, words: Tensor) -> tuple[Tensor, Tensor]:
    """The same from what a word head reads, a chunk of logits at a time: (..., C), (...) -> (), ()."""
    size = max(1, CHUNK_LOGITS // head.out_features)
    chunks = zip(torch.split(rows.flatten(0, -2), size), torch.split(words.flatten(), size), strict=True)
    found = [judge(head(some), answers) for some, answers in chunks]
    nats, right = zip(*found, strict=True)
    return torch.stack(nats).sum(), torch.stack(right).sum()
