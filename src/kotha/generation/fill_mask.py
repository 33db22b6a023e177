"""Filling gaps (fill-mask): the words a BERT puts where a text has ``[MASK]``, and whether a sentence follows another.

Every gap is guessed by itself, in the light of all the rest; what is read is ``[CLS] text [SEP]``, as in training. The
chances are a softmax over the whole vocabulary; only ordinary pieces are offered, as nobody asked for marks.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import torch
from torch import Tensor

from kotha.errors import UsageError
from kotha.i18n.message import Option
from kotha.model.bert import BERT
from kotha.model.evaluating import evaluating
from kotha.text.tokenizer.tokenizer import Tokenizer

GAP = "[MASK]"
_CONTINUES = "##"  # so WordPiece writes a piece that goes on with a word


@dataclass(frozen=True)
class Guess:
    """One word for one gap."""

    word: str  # with ## before it where it goes on with the word before
    probability: float
    text: str  # the whole text with it, other gaps left open


@dataclass(frozen=True)
class Filled:
    """What a model puts into the gaps of a text: for each gap its likeliest words, the best first."""

    text: str
    words: list[list[Guess]]

    def to_dict(self) -> dict[str, Any]:
        """All of it, ready for JSON."""
        return asdict(self)


def fill(model: BERT, tokenizer: Tokenizer, text: str, count: int = 5) -> Filled:
    """The likeliest words for each gap of a text."""
    if count < 1:
        raise UsageError("{words} is too small; use 1 or more", words=Option("words", count))
    parts = [part.strip() for part in text.split(GAP)]
    if len(parts) == 1:
        raise UsageError("the text has no gap to fill; write {gap} in place of a word", gap=GAP)
    marks = _marks(tokenizer)
    tokens = [token for ids in tokenizer.encode_batch(parts) for token in (marks["mask"], *ids)]
    tokens = [marks["cls"], *tokens[1:], marks["sep"]]
    gaps = [place for place, token in enumerate(tokens) if token == marks["mask"]]
    with torch.no_grad(), evaluating(model):
        hidden = model.hidden(_row(model, tokens))[0, gaps]
        chances = model.head(model.guess(hidden)).float().softmax(dim=-1).cpu()  # (gaps, V)
    special = sorted(set(tokenizer.special.values()))  # a token may have two roles
    chances[:, special] = -1.0
    best = chances.topk(min(count, tokenizer.vocab_size - len(special)))
    words = []
    for place, row in enumerate(zip(best.indices.tolist(), best.values.tolist(), strict=True)):
        found = [(tokenizer.pieces[token], chance) for token, chance in zip(*row, strict=True)]
        words.append([Guess(piece, chance, _with_word(parts, place, piece)) for piece, chance in found])
    return Filled(text, words)


def follows(model: BERT, tokenizer: Tokenizer, first: str, second: str) -> float:
    """How likely the second sentence is the one that came after the first (next sentence prediction)."""
    marks = _marks(tokenizer)
    if not first.strip() or not second.strip():
        raise UsageError("two sentences are needed, but one of them is empty")
    before, after = tokenizer.encode_batch([first, second])
    tokens = [marks["cls"], *before, marks["sep"], *after, marks["sep"]]
    segments = [0] * (len(before) + 2) + [1] * (len(after) + 1)
    with torch.no_grad(), evaluating(model):
        said = model(*(_row(model, each) for each in (tokens, segments)))
    return float(said.pair_logits[0].float().softmax(dim=-1)[0])


def _row(model: BERT, tokens: Sequence[int]) -> Tensor:
    longest = model.config.context_length
    if len(tokens) > longest:
        raise UsageError(
            "the text has {n:,} tokens including special tokens, but the model's context is {longest:,}; shorten it",
            n=len(tokens),
            longest=longest,
        )
    return torch.tensor([tokens], device=model.tokens.weight.device)


def _marks(tokenizer: Tokenizer) -> dict[str, int]:
    missing = [role for role in ("cls", "sep", "mask") if role not in tokenizer.special]
    if missing:
        raise UsageError(
            "the model's tokenizer has no {missing} token, which the input needs",
            missing=" and no ".join(missing),
        )
    return tokenizer.special


def _with_word(parts: Sequence[str], place: int, piece: str) -> str:
    """The text with a piece in one of its gaps.

    >>> _with_word(["ঢাকা", "একটি", "।"], 0, "##র")
    'ঢাকার একটি [MASK]।'
    """
    text = parts[0]
    for turn, part in enumerate(parts[1:]):
        word = piece if turn == place else GAP
        text += word.removeprefix(_CONTINUES) if word.startswith(_CONTINUES) else f" {word}" if text else word
        text += part if not part or not part[0].isalnum() else f" {part}"
    return text
