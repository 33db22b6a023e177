"""The table of embeddings: which rows stand for a word, who stands near whom, a map, and which rows a step moves.

A word inside a text has a space before it, and so has its token. A word of several pieces has no row of its own: the
mean of its pieces stands for it, and whoever shows it should say so.

Near is measured by cosine similarity: the angle between two vectors. All rows of a small model share much
(what tells a used row from an unused one, a frequent word from a rare one), which lifts every cosine alike. The mean is
taken away first, unless one asks for the plain angle. Measured on two models of 2 layers of 96 that learned the
stories, with eight lists of like words (kin, months, numbers, ...): of the nearest words 56.9 % were of the same list
without the mean and 55.4 % with it (54.0 % and 52.5 % in the other model), and the cosine of two random words fell from
0.18 to 0.00, so that a figure says something by itself. (Mu & Viswanath 2018, https://arxiv.org/abs/1702.01417)

The map (PCA) lays words into the plane in which the centred vectors spread most, their two principal components. A
table of a hundred dimensions never fits into two, so the share of the spread that the picture shows is part of the
result. The sign of a component means nothing; here its largest word lies on the positive side, so that the same model
gives the same map.

Looking up a token sends a gradient back to its row alone. Where the head has a table of its own, rows of tokens that
are not in the batch stay as they are (but for weight decay). Where head and embedding share one table, the softmax
sends a gradient to every row: up to those that should have come, down to all that got some probability.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy, linear

from kotha.errors import UsageError
from kotha.i18n.message import Message, Text
from kotha.inside.view import View, to_json
from kotha.model.evaluating import evaluating
from kotha.model.family import Model
from kotha.model.gpt import GPT
from kotha.report.single_file import report_page
from kotha.report.table import Table
from kotha.text.tokenizer.tokenizer import Tokenizer
from kotha.text.tokenizer.view import view_token

_LONE_BYTE = re.compile("<0x[0-9A-Fa-f]{2}>")


@dataclass(frozen=True)
class Word:
    """A word as a table of embeddings has it."""

    text: str
    tokens: tuple[int, ...]
    pieces: tuple[str, ...]  # the tokens, readable
    vector: Tensor  # its row, or the mean of its pieces' rows: (C,)


class Embeddings:
    """The token table of a model, with what its rows mean; order in the vocabulary stands for frequency."""

    def __init__(self, model: Model, tokenizer: Tokenizer | None) -> None:
        table = getattr(model, "tokens", None)
        if table is None or tokenizer is None:
            raise UsageError("this model has no token embeddings: it takes no text, or its folder has no tokenizer")
        self.tokenizer = tokenizer
        self.vectors: Tensor = table.weight.detach().double()[: tokenizer.vocab_size]  # (V, C)
        self.width = self.vectors.shape[1]
        special = set(tokenizer.special.values())
        self.texts = ["" if token in special else _text(tokenizer, token) for token in range(tokenizer.vocab_size)]
        """What each row stands for, a space in front included; nothing for special tokens and lone bytes."""
        self.rows = torch.tensor([token for token, text in enumerate(self.texts) if text.strip()])
        """What can be a neighbour: rows that stand for a text."""
        self.mean = self.vectors[self.rows].mean(0)
        """What they have in common: (C,)."""

    def frequent_words(self, count: int) -> list[int]:
        """The most frequent tokens that are whole words, most frequent first; each word once."""
        order = self.rows.tolist()
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
            raise UsageError("the word is empty; give one such as মা")
        spaced, alone = (self.tokenizer.encode(start + bare) for start in (" ", ""))
        chosen = alone if len(alone) < len(spaced) else spaced  # as it stands in a text, unless it is only a piece
        tokens = [token for token in chosen if self.texts[token] != " "]
        if not all(self.texts[token] for token in tokens):
            unknown = "the vocabulary cannot spell “{text}”; try a word in the model's language"
            raise UsageError(unknown, text=text)
        pieces = tuple(view_token(self.tokenizer, token).text for token in tokens)
        return Word(bare, tuple(tokens), pieces, self.vectors[tokens].mean(0))

    def cosines(self, vector: Tensor, centred: bool = True) -> Tensor:
        """How near each row that can be a neighbour is to a vector, from the mean or from zero: (C,) -> (N,)."""
        start = self.mean if centred else torch.zeros_like(self.mean)
        return torch.cosine_similarity(self.vectors[self.rows] - start, (vector - start)[None])


def _text(tokenizer: Tokenizer, token: int) -> str:
    if _LONE_BYTE.fullmatch(tokenizer.pieces[token]):
        return ""
    try:
        return tokenizer.token_bytes(token).decode()
    except UnicodeDecodeError:  # part of a character
        return ""


# -- near -------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Neighbour:
    """A row near a word."""

    token: int
    text: str
    cosine: float


def nearest_words(table: Embeddings, word: Word, count: int = 10, centred: bool = True) -> list[Neighbour]:
    """The rows nearest to a word by cosine, nearest first; its own pieces are left out."""
    own = torch.isin(table.rows, torch.tensor(word.tokens))
    same_text = torch.tensor([table.texts[token].strip() == word.text for token in table.rows.tolist()])
    cosines = table.cosines(word.vector, centred).masked_fill(own | same_text, -torch.inf)
    best = cosines.topk(min(count, int(cosines.isfinite().sum())))
    pairs = zip(table.rows[best.indices].tolist(), best.values.tolist(), strict=True)
    return [Neighbour(token, table.texts[token].strip(), cosine) for token, cosine in pairs]


# -- the map ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Dot:
    """A word on the map."""

    text: str
    x: float
    y: float
    chosen: bool  # was it asked for by name?


@dataclass(frozen=True)
class WordMap:
    """Words in a plane."""

    dots: list[Dot]  # most frequent first; the chosen ones last
    shares: tuple[float, float]  # of all spread, what each axis shows


def word_map(table: Embeddings, chosen: list[Word], count: int = 300) -> WordMap:
    """The most frequent words and the chosen ones, in two dimensions."""
    named = {word.text for word in chosen}
    tokens = [token for token in table.frequent_words(count) if table.texts[token].strip() not in named]
    if len(tokens) + len(chosen) < 3:
        n_words = len(tokens) + len(chosen)
        raise UsageError("a map of {n} words shows nothing; give at least three", n=n_words)
    vectors = torch.cat([table.vectors[tokens], *(word.vector[None] for word in chosen)])  # (N, C)
    places, shares = principal_plane(vectors)
    texts = [table.texts[token].strip() for token in tokens] + [word.text for word in chosen]
    rows = zip(texts, places.tolist(), strict=True)
    return WordMap([Dot(text, x, y, place >= len(tokens)) for place, (text, (x, y)) in enumerate(rows)], shares)


def principal_plane(vectors: Tensor) -> tuple[Tensor, tuple[float, float]]:
    """The two directions of most spread, and their shares of it: (N, C) -> (N, 2)."""
    centred = vectors - vectors.mean(0)
    u, s, _ = torch.linalg.svd(centred, full_matrices=False)  # (N, K), (K,)
    places = u[:, :2] * s[:2]  # (N, 2)
    largest = places.gather(0, places.abs().argmax(0, keepdim=True))  # (1, 2)
    shares = (s.square() / s.square().sum().clamp_min(1e-30)).tolist()
    return places * torch.where(largest < 0, -1.0, 1.0), (shares[0], shares[1])


@dataclass(frozen=True)
class NearWord:
    """A word and the rows nearest to it."""

    word: str
    pieces: tuple[str, ...]
    neighbours: list[Neighbour]

    def table(self) -> Table:
        """The neighbours, to read."""
        told, pieces = "{word} is not one token: this is the mean of {pieces}", " + ".join(self.pieces)
        remarks = [Message(told, word=self.word, pieces=pieces)] if len(self.pieces) > 1 else []
        rows = [[each.text, f"{each.cosine:.3f}"] for each in self.neighbours]
        return Table(self.word, [Message("nearest"), Message("cosine")], rows, remarks)


@dataclass(frozen=True)
class NearWords:
    """Words with their neighbours, and the table that they stand in; the map is in the page alone."""

    model: dict[str, Any]
    words: tuple[NearWord, ...]
    make_map: Callable[[], WordMap] = field(repr=False)

    @cached_property
    def map(self) -> WordMap:
        """The most frequent words and those asked for, in a plane."""
        return self.make_map()

    def page(self, name: str) -> dict[str, Any]:
        """What the page shows; ``name`` is the model's."""
        told = to_json(self)
        words = [{**word, "text": word["word"]} for word in told["words"]]
        return {"name": name, **told["model"], **to_json(self.map), "words": words}


def embeddings_view(
    table: Embeddings,
    words: Sequence[str] = (),
    *,
    count: int = 10,
    centred: bool = True,
    map_words: int = 300,
    name: str = "a model",
) -> View[NearWords]:
    """The ``count`` nearest words of each, and a map with the ``map_words`` most frequent; ``name`` is the model's."""
    if count < 1 or map_words < 1:
        raise UsageError("count and map_words must be integers of at least 1")
    known = [table.find(each) for each in words]
    near = tuple(NearWord(word.text, word.pieces, nearest_words(table, word, count, centred)) for word in known)
    model = {"vocab_size": len(table.vectors), "width": table.width, "centred": centred}
    found = NearWords(model, near, lambda: word_map(table, known, map_words))
    title = Message("Words of {name}", name=name)
    page = lambda: report_page("words", title, found.page(name), made_by="kotha inside embeddings")
    return View(title, found, page, lambda: to_json(found))


# -- what a step of training moves -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class TouchedRows:
    """Rows that got a gradient, by the way it came."""

    vocab_size: int
    tied: bool
    tokens: int
    distinct: int  # different ones among them
    looked_up: int  # rows with a gradient from being read
    scored: int  # rows of the head's table with a gradient from the softmax
    token_table: int
    """Rows of the token table with any gradient: those looked up, and all that were scored if the head is tied."""
    looked_up_share: float
    """Of the length of the token table's gradient, the part that came from being read (of squares, in a tied table)."""

    def table(self) -> Table:
        """Which rows move, and why, to read."""
        ways = {
            Message("looked up as input tokens"): self.looked_up,
            Message("scored by the output softmax"): self.scored,
            Message("rows of the token embedding in total"): self.token_table,
        }
        rows: list[list[Text]] = [[way, f"{count:,}", f"{count / self.vocab_size:.2%}"] for way, count in ways.items()]
        title = Message(
            "rows with a gradient: {n:,} tokens, {distinct:,} distinct",
            n=self.tokens,
            distinct=self.distinct,
        )
        why = Message("the output head has its own weights: rows of tokens not in the text do not change")
        if self.tied:
            why = Message(
                "the output head shares the token embedding, so every row changes; {share:.1%} of the "
                "squared gradient comes from lookups",
                share=self.looked_up_share,
            )
        return Table(title, ["", Message("rows"), Message("of {n:,}", n=self.vocab_size)], rows, [why])


def touched_rows(model: Model, tokens: list[int]) -> TouchedRows:
    """One next-token step's gradient on a text, without a step: rows of the table that it reaches."""
    if not isinstance(model, GPT):
        raise UsageError(
            "rows with a gradient are counted for next-token prediction, which a {family} does not do",
            family=model.config.family,
        )
    if len(tokens) < 2:
        raise UsageError("a text of {n} token(s) has no next token to predict; give at least two words", n=len(tokens))
    read = torch.tensor(tokens[: model.config.context_length + 1])
    head = model.head.weight.detach().requires_grad_()  # apart from the table, even where they are one
    with evaluating(model), torch.enable_grad():  # dropout would hide rows by chance
        logits = linear(model.hidden(read[None, :-1])[0], head, model.head.bias)  # (T, V)
        loss = cross_entropy(logits.float(), read[1:])
        by_reading, by_scoring = torch.autograd.grad(loss, (model.tokens.weight, head))  # each (V, C)
    tied = model.head.weight is model.tokens.weight
    squares = [float(each.square().sum()) for each in (by_reading, by_scoring if tied else torch.zeros(()))]
    return TouchedRows(
        vocab_size=model.config.vocab_size,
        tied=tied,
        tokens=len(read) - 1,
        distinct=len(set(tokens[: len(read) - 1])),
        looked_up=_rows(by_reading),
        scored=_rows(by_scoring),
        token_table=_rows(by_reading + by_scoring if tied else by_reading),
        looked_up_share=squares[0] / max(sum(squares), 1e-30),
    )


def _rows(gradient: Tensor) -> int:
    return int((gradient != 0).any(dim=1).sum())
