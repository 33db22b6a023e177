"""Wrong variants of our pieces: their source, with the edits in ``mistakes.json``."""

import inspect
import re
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor

from kotha.course.data import data_file
from kotha.course.pieces import references

ACCEPTED = {"gelu-tanh"}  # variants that pass
Build = Callable[..., Any]  # a class or a function


class Variant(NamedTuple):
    """A known mistake: its name, its English message, and our piece with this mistake."""

    name: str
    message: str
    build: Build


class PieceSpec(NamedTuple):
    """A piece: ours, the words that identify it, its tables of mistakes, the pieces inside it, and test cases.

    A case has the arguments of the constructor (none for a function) and a function that makes random inputs.
    """

    reference: Build
    words: tuple[str, ...]
    tables: tuple[str, ...]
    cases: tuple[tuple[tuple[int, ...], Callable[[], tuple[Any, ...]]], ...]
    parts: tuple[str, ...] = ()


def _vectors(*shape: int) -> Callable[[], tuple[Tensor]]:
    return lambda: (torch.randn(*shape),)


def _tokens(n_tokens: int, *shape: int) -> Callable[[], tuple[Tensor]]:
    return lambda: (torch.randint(n_tokens, shape),)


def _guesses(n_texts: int, length: int, n_tokens: int) -> Callable[[], tuple[Tensor, Tensor]]:
    return lambda: (2 * torch.randn(n_texts, length, n_tokens), torch.randint(n_tokens, (n_texts, length)))


def _scores(n_texts: int, n_tokens: int, *settings: float | None) -> Callable[[], tuple[Any, ...]]:
    return lambda: (2 * torch.randn(n_texts, n_tokens), *settings)


# The words are searched in this order.
PIECES: dict[str, PieceSpec] = {
    "multi-head attention": PieceSpec(
        references.MultiHeadPiece,
        ("multihead", "mha"),
        ("scores", "multi-head attention"),
        (((12, 3), _vectors(2, 5, 12)), ((8, 2), _vectors(3, 7, 8)), ((8, 4), _vectors(1, 1, 8))),
    ),
    "attention": PieceSpec(
        references.AttentionPiece,
        ("attention", "head"),
        ("scores", "attention"),
        (((8, 4), _vectors(2, 5, 8)), ((12, 6), _vectors(3, 7, 12)), ((6, 3), _vectors(1, 1, 6))),
    ),
    "feed-forward": PieceSpec(
        references.FeedForwardPiece,
        ("feedforward", "ffn", "mlp"),
        ("feed-forward",),
        (((6, 20), _vectors(2, 5, 6)), ((8, 12), _vectors(1, 1, 8))),
    ),
    "block": PieceSpec(
        references.BlockPiece,
        ("block", "layer"),
        ("block",),
        (((12, 3, 20), _vectors(2, 5, 12)), ((8, 2, 12), _vectors(1, 3, 8))),
        ("multi-head attention", "feed-forward"),
    ),
    "GPT": PieceSpec(
        references.GPTPiece,
        ("gpt", "model"),
        ("GPT",),
        (((11, 16, 12, 3, 20, 2), _tokens(11, 2, 5)), ((9, 12, 8, 2, 12, 3), _tokens(9, 1, 4))),
        ("block",),
    ),
    "loss": PieceSpec(
        references.loss,
        ("loss", "entropy"),
        ("loss",),
        (((), _guesses(2, 5, 7)), ((), _guesses(3, 4, 6)), ((), _guesses(1, 6, 5))),
    ),
    "sampling": PieceSpec(
        references.sampling,
        ("sampl", "prob"),
        ("sampling",),
        (
            ((), _scores(2, 11, 0.7, None, None)),
            ((), _scores(3, 9, 1.0, 3, None)),
            ((), _scores(2, 12, 1.5, None, 0.6)),
            ((), _scores(3, 12, 0.8, 6, 0.8)),
        ),
    ),
}


@cache
def variants(name: str) -> tuple[Variant, ...]:
    """Return the wrong variants of a piece, followed by those with a mistake in one of its parts."""
    piece, tables = PIECES[name], data_file(Path(__file__).with_name("mistakes.json"))
    inside = [(PIECES[part].reference.__name__, variant) for part in piece.parts for variant in variants(part)]
    # Known mistakes are also recognised around a part that is accepted but differs from ours.
    bases: list[Mapping[str, Any]] = [{}, *({part: each.build} for part, each in inside if each.name in ACCEPTED)]
    own = [
        Variant(mistake, message, _edited(piece.reference, edit, base))
        for base in bases
        for table in piece.tables
        for mistake, (message, *edits) in tables[table].items()
        for edit in edits
    ]
    parts = [
        Variant(each.name, each.message, _edited(piece.reference, {}, {part: each.build})) for part, each in inside
    ]
    return (*own, *parts)


def _edited(reference: Build, edit: Mapping[str, str], parts: Mapping[str, Any]) -> Build:
    """Build our piece from its source with some texts replaced, and other classes in place of its parts."""
    source = inspect.getsource(reference)
    assert all(old in source for old in edit), f"{reference.__name__} has changed; update {list(edit)}"
    if edit:
        source = re.sub("|".join(map(re.escape, edit)), lambda found: edit[found[0]], source)
    names = {**vars(references), **parts}
    exec(source, names)
    build: Build = names[reference.__name__]
    return build
