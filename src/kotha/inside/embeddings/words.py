"""Words in a table of embeddings: which rows stand for a word, and which rows are words at all.

A word inside a text has a space before it, and so has its token. A word of several pieces has no row of its own: the
mean of its pieces stands for it, and whoever shows it should say so.
"""

import difflib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from kotha.artifacts.model_folder import Bundle
from kotha.artifacts.run_folder import find_data, run_config
from kotha.errors import KothaError, UsageError
from kotha.i18n.message import Message
from kotha.model.family import Model
from kotha.text.shards import Dataset
from kotha.text.tokenizer.tokenizer import Tokenizer
from kotha.text.tokenizer.view import view_token

# A row that training met less often than this has little but what all rows share.
_LEARNED = 20
_LONE_BYTE = re.compile("<0x[0-9A-Fa-f]{2}>")


@dataclass(frozen=True)
class Word:
    """A word as a table of embeddings has it."""

    text: str
    tokens: tuple[int, ...]
    pieces: tuple[str, ...]  # the tokens, readable
    vector: Tensor  # its row, or the mean of its pieces' rows: (C,)
    seen: int | None  # how often training met its rarest piece, where that is known

    @property
    def whole(self) -> bool:
        """Has it a row of its own?"""
        return len(self.tokens) == 1

    @property
    def learned(self) -> bool:
        """Has training met it often enough to give it a place?"""
        return self.seen is None or self.seen >= _LEARNED


class Embeddings:
    """The token table of a model, with what its rows mean."""

    def __init__(self, model: Model, tokenizer: Tokenizer | None, counts: Sequence[int] | None = None) -> None:
        """``counts`` says how often training saw each token; without it, order in the vocabulary stands for it."""
        table = getattr(model, "tokens", None)
        if table is None or tokenizer is None:
            raise UsageError("this model has no words: it reads no text, or its folder has no tokenizer")
        self.tokenizer, self.counts = tokenizer, counts
        self.vectors: Tensor = table.weight.detach().double()[: tokenizer.vocab_size]  # (V, C)
        special = set(tokenizer.special.values())
        self.texts = ["" if token in special else _text(tokenizer, token) for token in range(tokenizer.vocab_size)]
        """What each row stands for, a space in front included; nothing for special tokens and lone bytes."""
        rows = [token for token, text in enumerate(self.texts) if text.strip()]
        learned = [token for token in rows if counts is None or counts[token] >= _LEARNED]
        self.rows = torch.tensor(learned or rows, dtype=torch.long)
        """What can be a neighbour: rows that stand for a text and that training has met often."""
        self.mean = self.vectors[self.rows].mean(0)
        """What they have in common: (C,)."""

    def frequent_words(self, count: int) -> list[int]:
        """The most frequent tokens that are whole words, most frequent first; each word once."""
        order = self.rows.tolist()
        if self.counts is not None:
            order.sort(key=lambda token: -self.counts[token])  # type: ignore[index]
        spaced = any(self.texts[token].startswith(" ") for token in order)  # or words carry no space here
        found: dict[str, int] = {}
        for token in order:
            text = self.texts[token]
            if (text.startswith(" ") or not spaced) and text.strip()[0].isalpha() and len(text.strip()) > 1:
                found.setdefault(text.strip(), token)
        return list(found.values())[:count]

    def find(self, text: str) -> Word:
        """A word's row, or the mean of its pieces; one that the vocabulary cannot write in letters is refused."""
        bare = self.tokenizer.normalize(text).strip()
        if not bare:
            raise UsageError("an empty word has no neighbours; give one such as মা")
        spaced, alone = (self.tokenizer.encode(start + bare) for start in (" ", ""))
        chosen = alone if len(alone) < len(spaced) else spaced  # as it stands in a text, unless it is only a piece
        tokens = [token for token in chosen if self.texts[token] != " "]
        if not all(self.texts[token] for token in tokens):
            close = difflib.get_close_matches(bare, sorted({each.strip() for each in self.texts if len(each) > 2}))
            hint = Message("try a word of the model's language")
            if close:
                hint = Message("words that look like it: {words}", words=close)
            raise UsageError("the vocabulary has no letters for “{text}”; {hint}", text=text, hint=hint)
        pieces = tuple(view_token(self.tokenizer, token).text for token in tokens)
        seen = None if self.counts is None else min(self.counts[token] for token in tokens)
        return Word(bare, tuple(tokens), pieces, self.vectors[tokens].mean(0), seen)


def open_table(bundle: Bundle, run: str | Path | None = None) -> Embeddings:
    """A model's table; tokens are counted if the data folder of its run is still there."""
    data = None if run is None else find_data(run_config(Path(run)), Path(run))
    return Embeddings(bundle.model, bundle.tokenizer, None if data is None else token_counts(data))


def token_counts(data: str | Path) -> list[int] | None:
    """How often each token stands in the training part of a data folder; None where it cannot be read or is empty."""
    try:
        opened = Dataset(data, verify=False)
        shards = opened["train"].shards
    except KothaError:
        return None
    counts = sum(np.bincount(shard, minlength=opened.tokenizer.vocab_size) for shard in shards)
    return np.asarray(counts).tolist() if shards else None


def _text(tokenizer: Tokenizer, token: int) -> str:
    if _LONE_BYTE.fullmatch(tokenizer.pieces[token]):
        return ""
    try:
        return tokenizer.token_bytes(token).decode()
    except UnicodeDecodeError:  # part of a character
        return ""
