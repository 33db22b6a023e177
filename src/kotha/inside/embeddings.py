"""Token embeddings: the vector for a word, its nearest neighbours, a 2D map, and the rows that a training step changes.

Within a sentence a word follows a space, so its token starts with a space. A word that is split into several tokens has
no row of its own. The mean of the tokens' rows is used instead, and callers should report this to the user.

Similarity is measured by cosine. In a small model all rows share components that separate used from unused rows and
frequent from rare words. These components raise every cosine, so by default the mean is subtracted first (Mu &
Viswanath 2018, https://arxiv.org/abs/1702.01417). Subtracting the mean was tested with eight lists of related words
(kinship, months, numbers, ...) on two models with 2 layers and width 96, trained on the built-in stories. With the mean
subtracted, 56.9 % of the nearest words came from the same list in one model and 54.0 % in the other; without
subtraction, 55.4 % and 52.5 %. The cosine of two random words fell from 0.18 to 0.00, so a single cosine can be
interpreted.

The map (PCA) places words along the two principal components of the centred vectors. The result includes the share of
the variance that the two components explain. The sign of a component is arbitrary. Here it is chosen so that the word
with the largest absolute coordinate is on the positive side. As a result, the same model always gives the same map.

A lookup gives a gradient only to the rows for the tokens in the batch, and to the rows for its positions. If the head
and the embedding share weights, every row also gets a gradient from the softmax. Without weight decay, AdamW leaves
rows that never got a gradient as they are; with weight decay, it shrinks every row in every step.
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
from kotha.model.position import LearnedPositions
from kotha.report.single_file import report_page
from kotha.report.table import Table
from kotha.text.tokenizer.tokenizer import Tokenizer
from kotha.text.tokenizer.view import view_token

_LONE_BYTE = re.compile("<0x[0-9A-Fa-f]{2}>")


@dataclass(frozen=True)
class Word:
    """A word with its tokens and its vector."""

    text: str
    tokens: tuple[int, ...]
    pieces: tuple[str, ...]  # the tokens as readable text
    vector: Tensor  # the word's row, or the mean of its tokens' rows: (C,)


class Embeddings:
    """A model's token embedding, with the text for each row; tokens with lower ids are assumed to be more frequent."""

    def __init__(self, model: Model, tokenizer: Tokenizer | None) -> None:
        table = getattr(model, "tokens", None)
        if table is None or tokenizer is None:
            raise UsageError("this model has no token embeddings: it takes no text, or its folder has no tokenizer")
        self.tokenizer = tokenizer
        self.vectors: Tensor = table.weight.detach().double()[: tokenizer.vocab_size]  # (V, C)
        self.width = self.vectors.shape[1]
        special = set(tokenizer.special.values())
        self.texts = ["" if token in special else _text(tokenizer, token) for token in range(tokenizer.vocab_size)]
        """The text for each row, with its leading space; empty for special tokens and single bytes."""
        self.rows = torch.tensor([token for token, text in enumerate(self.texts) if text.strip()])
        """Rows that can be returned as neighbours: those with text."""
        self.mean = self.vectors[self.rows].mean(0)
        """Mean of these rows: (C,)."""

    def frequent_words(self, count: int) -> list[int]:
        """Return the most frequent tokens that are complete words, most frequent first and each word once."""
        order = self.rows.tolist()
        spaced = any(self.texts[token].startswith(" ") for token in order)  # otherwise words have no leading space
        found: dict[str, int] = {}
        for token in order:
            text = self.texts[token]
            if (text.startswith(" ") or not spaced) and text.strip()[0].isalpha() and len(text.strip()) > 1:
                found.setdefault(text.strip(), token)
        return list(found.values())[:count]

    def find(self, text: str) -> Word:
        """Return the row for a word, or the mean of the rows for its tokens.

        Raises ``UsageError`` if the vocabulary cannot spell the word without byte tokens.
        """
        bare = self.tokenizer.normalize(text).strip()
        if not bare:
            raise UsageError("the word is empty; give a word such as মা")
        spaced, alone = (self.tokenizer.encode(start + bare) for start in (" ", ""))
        chosen = alone if len(alone) < len(spaced) else spaced  # a leading space is preferred unless it adds tokens
        tokens = [token for token in chosen if self.texts[token] != " "]
        if not all(self.texts[token] for token in tokens):
            unknown = "the vocabulary cannot spell “{text}”; try a word in the model's language"
            raise UsageError(unknown, text=text)
        pieces = tuple(view_token(self.tokenizer, token).text for token in tokens)
        return Word(bare, tuple(tokens), pieces, self.vectors[tokens].mean(0))

    def cosines(self, vector: Tensor, centred: bool = True) -> Tensor:
        """Return the cosine between a vector and each of the ``rows``; ``centred`` subtracts the mean: (C,) -> (N,)."""
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
    """A row that is close to a word."""

    token: int
    text: str
    cosine: float


def nearest_words(table: Embeddings, word: Word, count: int = 10, centred: bool = True) -> list[Neighbour]:
    """Return the rows closest to a word by cosine, closest first, excluding the word's own pieces."""
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
    chosen: bool  # whether it was requested by name


@dataclass(frozen=True)
class WordMap:
    """Words on a two-dimensional map."""

    dots: list[Dot]  # most frequent first; the chosen ones last
    shares: tuple[float, float]  # share of the variance explained by each axis


def word_map(table: Embeddings, chosen: list[Word], count: int = 300) -> WordMap:
    """Project the most frequent words and the chosen words onto the principal plane of the frequent ones.

    The chosen words do not change the plane, so that a search moves no word of the map.
    """
    named, frequent = {word.text for word in chosen}, table.frequent_words(count)
    tokens = [token for token in frequent if table.texts[token].strip() not in named]
    if len(tokens) + len(chosen) < 3:
        n_words = len(tokens) + len(chosen)
        raise UsageError("a map needs at least three words, but only {n} are available", n=n_words)
    vectors = torch.cat([table.vectors[tokens], *(word.vector[None] for word in chosen)])  # (N, C)
    points, shares = principal_plane(vectors, table.vectors[frequent] if len(frequent) >= 3 else vectors)
    texts = [table.texts[token].strip() for token in tokens] + [word.text for word in chosen]
    rows = zip(texts, points.tolist(), strict=True)
    return WordMap([Dot(text, x, y, n >= len(tokens)) for n, (text, (x, y)) in enumerate(rows)], shares)


def principal_plane(vectors: Tensor, fixed: Tensor) -> tuple[Tensor, tuple[float, float]]:
    """Project vectors (N, C) onto the first two principal components of ``fixed`` (M, C).

    Return points (N, 2) and the share of the variance of ``fixed`` that each component explains.
    """
    middle = fixed.mean(0)
    u, s, axes = torch.linalg.svd(fixed - middle, full_matrices=False)  # (M, K), (K,), (K, C)
    largest = u[:, :2].gather(0, u[:, :2].abs().argmax(0, keepdim=True))  # (1, 2)
    points = (vectors - middle) @ axes[:2].mT  # (N, 2)
    shares = (s.square() / s.square().sum().clamp_min(1e-30)).tolist()
    return points * torch.where(largest < 0, -1.0, 1.0), (shares[0], shares[1])


@dataclass(frozen=True)
class NearWord:
    """A word and the rows closest to it."""

    word: str
    pieces: tuple[str, ...]
    neighbours: list[Neighbour]

    def table(self) -> Table:
        """Return the neighbours as a table."""
        template, pieces = "{word} is not a single token; its vector is the mean of {pieces}", " + ".join(self.pieces)
        remarks = [Message(template, word=self.word, pieces=pieces)] if len(self.pieces) > 1 else []
        rows = [[each.text, f"{each.cosine:.3f}"] for each in self.neighbours]
        return Table(self.word, [Message("nearest"), Message("cosine")], rows, remarks)


@dataclass(frozen=True)
class NearWords:
    """Words with their neighbours; the map appears only on the page."""

    model: dict[str, Any]
    words: tuple[NearWord, ...]
    make_map: Callable[[], WordMap] = field(repr=False)

    @cached_property
    def map(self) -> WordMap:
        """The most frequent words and the requested words in two dimensions."""
        return self.make_map()

    def page(self, name: str) -> dict[str, Any]:
        """Return the data for the page; ``name`` is the model's name."""
        data = to_json(self)
        words = [{**word, "text": word["word"]} for word in data["words"]]
        return {"name": name, **data["model"], **to_json(self.map), "words": words}


def embeddings_view(
    table: Embeddings,
    words: Sequence[str] = (),
    *,
    count: int = 10,
    centred: bool = True,
    map_words: int = 300,
    name: str = "a model",
) -> View[NearWords]:
    """Show the ``count`` nearest words to each word, and a map with the ``map_words`` most frequent words."""
    if count < 1 or map_words < 1:
        raise UsageError("count and map_words must be integers of at least 1")
    known = [table.find(each) for each in words]
    near = tuple(NearWord(word.text, word.pieces, nearest_words(table, word, count, centred)) for word in known)
    model = {"vocab_size": len(table.vectors), "width": table.width, "centred": centred}
    found = NearWords(model, near, lambda: word_map(table, known, map_words))
    title = Message("Words of {name}", name=name)
    page = lambda: report_page("words", title, found.page(name), made_by="kotha inside embeddings")
    return View(title, found, page, lambda: to_json(found))


# -- rows changed by a step -------------------------------------------------------------------------------------------

_WEIGHT_DECAY = 0.1  # of most recipes
_RATE = 1e-3


@dataclass(frozen=True)
class ChangedRows:
    """A table of embeddings: its rows, those with a gradient, and those that one step of AdamW changes."""

    rows: int
    gradient: int
    without_decay: int
    with_decay: int


@dataclass(frozen=True)
class TouchedRows:
    """The number of embedding rows that receive a gradient, by the source of the gradient, and that a step changes."""

    vocab_size: int
    tied: bool
    tokens: int
    distinct: int  # distinct tokens among them
    looked_up: int  # rows with a gradient from the lookup
    scored: int  # rows of the head with a gradient from the softmax
    token_table: ChangedRows
    """The token embedding: the looked-up rows and, with a tied head, all scored rows have a gradient."""
    position_table: ChangedRows | None
    """The position embedding; None if positions are not learned."""
    looked_up_share: float
    """Share of the squared gradient of the token embedding that comes from the lookup."""

    def table(self) -> Table:
        """Return the counts as a table, with explanatory remarks."""
        tokens = self.token_table
        ways = [
            (Message("looked up as input tokens"), self.looked_up, self.vocab_size),
            (Message("scored by the output softmax"), self.scored, self.vocab_size),
            (Message("rows of the token embedding in total"), tokens.gradient, self.vocab_size),
        ]
        tables = [(Message("token rows"), tokens)]
        if self.position_table is not None:
            positions = self.position_table
            ways.append((Message("rows of the position embedding"), positions.gradient, positions.rows))
            tables.append((Message("position rows"), positions))
        for name, each in tables:
            plain = Message("{table} changed by a step of AdamW without weight decay", table=name)
            decayed = Message("{table} changed by a step of AdamW with weight decay", table=name)
            ways += [(plain, each.without_decay, each.rows), (decayed, each.with_decay, each.rows)]
        rows: list[list[Text]] = [[way, f"{n:,}", f"{total:,}", f"{n / total:.2%}"] for way, n, total in ways]
        title = Message(
            "rows with a gradient: {n:,} tokens, {distinct:,} distinct",
            n=self.tokens,
            distinct=self.distinct,
        )
        why = Message("the output head has its own weights: rows of tokens not in the text get no gradient")
        if self.tied:
            why = Message(
                "the output head shares the token embedding, so every row changes; {share:.1%} of the "
                "squared gradient comes from lookups",
                share=self.looked_up_share,
            )
        decay = Message(
            "weight decay ({decay:g} here) makes every number of a table a little smaller in every step, whether or "
            "not its row has a gradient",
            decay=_WEIGHT_DECAY,
        )
        return Table(title, ["", Message("rows"), Message("of"), Message("share")], rows, [why, decay])


def touched_rows(model: Model, tokens: list[int]) -> TouchedRows:
    """Count the rows that one next-token step on a text changes; the model's weights are not updated."""
    if not isinstance(model, GPT):
        raise UsageError(
            "embedding gradients can be measured only for a model that predicts the next token, but this model is a "
            "{family}",
            family=model.config.family,
        )
    if len(tokens) < 2:
        raise UsageError(
            "the text has only {n} token(s), so there is no next token to predict; give at least two words",
            n=len(tokens),
        )
    read = torch.tensor(tokens[: model.config.context_length + 1])
    head = model.head.weight.detach().requires_grad_()  # a separate tensor, even if tied to the embedding
    positions = [model.positions.table.weight] if isinstance(model.positions, LearnedPositions) else []
    with evaluating(model), torch.enable_grad():  # dropout would zero some gradients
        logits = linear(model.hidden(read[None, :-1])[0], head, model.head.bias)  # (T, V)
        loss = cross_entropy(logits.float(), read[1:])
        by_reading, by_scoring, *by_position = torch.autograd.grad(loss, (model.tokens.weight, head, *positions))
    tied = model.head.weight is model.tokens.weight
    squares = [float(each.square().sum()) for each in (by_reading, by_scoring if tied else torch.zeros(()))]
    changed = [_changed(weights, gradient) for weights, gradient in zip(positions, by_position, strict=True)]
    return TouchedRows(
        vocab_size=model.config.vocab_size,
        tied=tied,
        tokens=len(read) - 1,
        distinct=len(set(tokens[: len(read) - 1])),
        looked_up=_rows(by_reading),
        scored=_rows(by_scoring),
        token_table=_changed(model.tokens.weight, by_reading + by_scoring if tied else by_reading),
        position_table=changed[0] if changed else None,
        looked_up_share=squares[0] / max(sum(squares), 1e-30),
    )


def _changed(weights: Tensor, gradient: Tensor) -> ChangedRows:
    """Take a step of AdamW on copies of a table, without and with weight decay: (V, C), (V, C) -> counts."""
    counts = []
    for decay in (0.0, _WEIGHT_DECAY):
        after = weights.detach().float().clone().requires_grad_()
        after.grad = gradient.float()
        torch.optim.AdamW([after], lr=_RATE, weight_decay=decay).step()
        counts.append(_rows(after.detach() - weights.detach()))
    return ChangedRows(len(weights), _rows(gradient), *counts)


def _rows(difference: Tensor) -> int:
    return int((difference != 0).any(dim=1).sum())
