"""Fill-mask: predict masked words with a BERT, and whether one sentence follows another.

Each gap is predicted independently, given the rest of the text. The input is ``[CLS] text [SEP]``, as in training.
Probabilities are a softmax over the whole vocabulary; special tokens are excluded from the results.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import torch
from torch import Tensor

from kotha.errors import UsageError
from kotha.i18n.message import Option
from kotha.i18n.short_repr import ShortRepr
from kotha.model.bert import BERT
from kotha.model.evaluating import check_finite, evaluating, overflow_as_nan
from kotha.text.tokenizer.tokenizer import Tokenizer

GAP = "[MASK]"
_CONTINUES = "##"  # WordPiece's prefix for a piece that continues a word


@dataclass(frozen=True)
class Guess:
    """One prediction for a gap."""

    word: str  # starts with ## if it continues the preceding word
    probability: float
    text: str  # the whole text with this word; other gaps are unchanged


@dataclass(frozen=True, repr=False)
class Filled(ShortRepr):
    """The most likely words for each gap in a text, best first."""

    text: str
    words: list[list[Guess]]

    def to_dict(self) -> dict[str, Any]:
        """Return a JSON-serializable dictionary."""
        return asdict(self)


def fill(model: BERT, tokenizer: Tokenizer, text: str, count: int = 5) -> Filled:
    """Return the most likely words for each gap in a text."""
    if count < 1:
        raise UsageError("{words} is too small; use 1 or more", words=Option("words", count))
    parts = [part.strip() for part in text.split(GAP)]
    if len(parts) == 1:
        raise UsageError("the text has no gap to fill; write {gap} in place of a word", gap=GAP)
    special_ids = _special_ids(tokenizer)
    tokens = [token for ids in tokenizer.encode_batch(parts) for token in (special_ids["mask"], *ids)]
    tokens = [special_ids["cls"], *tokens[1:], special_ids["sep"]]
    gaps = [position for position, token in enumerate(tokens) if token == special_ids["mask"]]
    with torch.no_grad(), evaluating(model), overflow_as_nan(model):
        hidden = model.hidden(_row(model, tokens))[0, gaps]
        chances = check_finite(model.head(model.guess(hidden))).float().softmax(dim=-1).cpu()  # (gaps, V)
    special = sorted(set(tokenizer.special.values()))  # a token may have two roles
    chances[:, special] = -1.0
    best = chances.topk(min(count, tokenizer.vocab_size - len(special)))
    words = []
    for gap, row in enumerate(zip(best.indices.tolist(), best.values.tolist(), strict=True)):
        found = [(tokenizer.pieces[token], chance) for token, chance in zip(*row, strict=True)]
        words.append([Guess(piece, chance, _with_word(parts, gap, piece)) for piece, chance in found])
    return Filled(text, words)


def follows(model: BERT, tokenizer: Tokenizer, first: str, second: str) -> float:
    """Return the probability that the second sentence follows the first (next-sentence prediction)."""
    special_ids = _special_ids(tokenizer)
    if not first.strip() or not second.strip():
        raise UsageError("two sentences are required, but one of them is empty")
    before, after = tokenizer.encode_batch([first, second])
    tokens = [special_ids["cls"], *before, special_ids["sep"], *after, special_ids["sep"]]
    segments = [0] * (len(before) + 2) + [1] * (len(after) + 1)
    with torch.no_grad(), evaluating(model), overflow_as_nan(model):
        output = model(*(_row(model, each) for each in (tokens, segments)))
    return float(check_finite(output.pair_logits[0]).float().softmax(dim=-1)[0])


def _row(model: BERT, tokens: Sequence[int]) -> Tensor:
    longest = model.config.context_length
    if len(tokens) > longest:
        raise UsageError(
            "the text has {n:,} tokens including special tokens, but the model's context is {longest:,}; shorten it",
            n=len(tokens),
            longest=longest,
        )
    return torch.tensor([tokens], device=model.tokens.weight.device)


def _special_ids(tokenizer: Tokenizer) -> dict[str, int]:
    missing = [role for role in ("cls", "sep", "mask") if role not in tokenizer.special]
    if missing:
        raise UsageError(
            "the model's tokenizer has no {missing} token, which fill-mask requires",
            missing=" and no ".join(missing),
        )
    return tokenizer.special


def _with_word(parts: Sequence[str], gap: int, piece: str) -> str:
    """Return the text with a piece in one of its gaps.

    >>> _with_word(["ঢাকা", "একটি", "।"], 0, "##র")
    'ঢাকার একটি [MASK]।'
    """
    text = parts[0]
    for index, part in enumerate(parts[1:]):
        word = piece if index == gap else GAP
        text += word.removeprefix(_CONTINUES) if word.startswith(_CONTINUES) else f" {word}" if text else word
        text += part if not part or not part[0].isalnum() else f" {part}"
    return text
