"""Weights under other names and back: how a table of foreign names is read.

A row joins our name to theirs; ``{n}`` stands for a layer's number and ``*`` for ``weight`` and ``bias``. Where a
weight is not kept as we keep it (turned round, three in one, with axes of length one), the row says how. The tables
themselves are in each door's room.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any

import torch
from torch import Tensor

from kotha.artifacts.model_folder import shape_alone
from kotha.errors import KothaError
from kotha.model.config import ModelConfig

_ANY = 1 << 30  # tensors; these are no file's

Shape = tuple[int, ...]


@dataclass(frozen=True)
class How:
    """How weights of ours lie in one of theirs: ``out`` (with the model's config) and ``back`` undo each other."""

    out: Callable[[Sequence[Tensor], Any], Tensor]
    back: Callable[[Tensor], Sequence[Tensor]]
    shape: Callable[[Sequence[Shape], Any], Shape]  # what out makes of shapes alone, however large


def _upright(tensor: Tensor) -> Tensor:
    """A matrix the other way round; a bias has none."""
    return tensor.mT if tensor.dim() == 2 else tensor


def _squares(config: Any) -> Shape:
    return config.n_channels, config.patch_size, config.patch_size


AS_IS = How(lambda ours, _: ours[0], lambda theirs: [theirs], lambda shapes, _: shapes[0])
# GPT-2's own matrices are (in, out), ours as nn.Linear's (out, in).
TURNED = How(lambda ours, _: _upright(ours[0]), lambda theirs: [_upright(theirs)], lambda shapes, _: shapes[0][::-1])
QUERY_KEY_VALUE = How(
    lambda ours, _: torch.cat([_upright(each) for each in ours], dim=-1),
    lambda theirs: [_upright(each) for each in theirs.chunk(3, dim=-1)],
    lambda shapes, _: (*shapes[0][:0:-1], sum(shape[0] for shape in shapes)),
)
THREE_IN_ONE = How(
    lambda ours, _: torch.cat(list(ours)),
    lambda theirs: theirs.chunk(3),
    lambda shapes, _: (sum(shape[0] for shape in shapes), *shapes[0][1:]),
)
ONE_ROW = How(lambda ours, _: ours[0][None], lambda theirs: [theirs[0]], lambda shapes, _: (1, *shapes[0]))
ONE_TOKEN = How(
    lambda ours, _: ours[0][None, None], lambda theirs: [theirs[0, 0]], lambda shapes, _: (1, 1, *shapes[0])
)
# Flat patches as a convolution's: (C, n_channels size size) -> (C, n_channels, size, size).
PATCHES = How(
    lambda ours, config: ours[0].reshape(-1, *_squares(config)),
    lambda theirs: [theirs.flatten(1)],
    lambda shapes, config: (shapes[0][0], *_squares(config)),
)


@dataclass(frozen=True)
class Renamed:
    """Our names, mostly one, and the one that holds them there."""

    ours: str | tuple[str, ...]
    theirs: str
    how: How = AS_IS

    @property
    def our_names(self) -> tuple[str, ...]:
        """Our names as a tuple."""
        return (self.ours,) if isinstance(self.ours, str) else self.ours


@dataclass(frozen=True)
class WeightMap:
    """A layout's table, usable both ways."""

    rows: tuple[Renamed, ...]
    spellings: tuple[tuple[str, str], ...] = ()
    """Other spellings of their names that are met, and the usual one; parts of a name."""
    copies: tuple[tuple[str, str], ...] = ()  # their names for what is also under another of theirs
    computed: tuple[str, ...] = ()  # what old folders hold and every model computes by itself: masks, positions, angles
    body: str = ""  # what stands before the names of the body, and is missing where a body was saved alone

    def to_theirs(self, ours: Mapping[str, Tensor], config: Any) -> dict[str, Tensor]:
        """Our weights by their names, laid out as theirs."""
        return {name: row.how.out([ours[each] for each in parts], config) for name, row, parts in self._placed(ours)}

    def shapes(self, ours: Mapping[str, Shape], config: Any) -> dict[str, Shape]:
        """The same for shapes alone."""
        return {name: row.how.shape([ours[each] for each in parts], config) for name, row, parts in self._placed(ours)}

    def name_of(self, ours: str) -> str:
        """Their name for one of our weights."""
        row, _, blanks = self._find(ours, self._by_ours)
        return _fill(row.theirs, blanks)

    def _placed(self, ours: Iterable[str]) -> Iterator[tuple[str, Renamed, list[str]]]:
        """Each of their names with its row, and with those of ours that lie there."""
        for name in ours:
            row, place, blanks = self._find(name, self._by_ours)
            if place == 0:
                yield _fill(row.theirs, blanks), row, [_fill(each, blanks) for each in row.our_names]

    def to_ours(self, theirs: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """Their weights by our names, laid out as ours."""
        ours: dict[str, Tensor] = {}
        for written, tensor in theirs.items():
            name = self.usual(written)
            if name is not None:
                row, _, blanks = self._find(name, self._by_theirs)
                parts = zip(row.our_names, row.how.back(tensor), strict=True)
                ours.update({_fill(each, blanks): part for each, part in parts})
        return ours

    def usual(self, written: str) -> str | None:
        """Their usual name for one met in a file; None for what need not be read."""
        name = written
        for met, usual in self.spellings:
            name = name.replace(met, usual)
        if self.body and not self._known(name) and self._known(self.body + name):
            name = self.body + name
        if any(_pattern(each).fullmatch(name) for each in self.computed):
            return None
        return dict(self.copies).get(name, name)

    def _known(self, name: str) -> bool:
        names = (*(row.theirs for row in self.rows), *self.computed, *dict(self.copies))
        return any(_pattern(each).fullmatch(name) for each in names)

    @cached_property
    def _by_ours(self) -> list[tuple[re.Pattern[str], Renamed, int]]:
        return [(_pattern(name), row, place) for row in self.rows for place, name in enumerate(row.our_names)]

    @cached_property
    def _by_theirs(self) -> list[tuple[re.Pattern[str], Renamed, int]]:
        return [(_pattern(row.theirs), row, 0) for row in self.rows]

    def _find(
        self, name: str, table: list[tuple[re.Pattern[str], Renamed, int]]
    ) -> tuple[Renamed, int, tuple[str, ...]]:
        for pattern, row, place in table:
            if match := pattern.fullmatch(name):
                return row, place, match.groups()
        raise KothaError("no place for a weight called {name!r}", name=name[:200])


def with_zeros(weights: dict[str, Tensor], full: ModelConfig) -> dict[str, Tensor]:
    """Our weights, with zeros where the full config has one that the model lacks: biases, which then add nothing."""
    dtype = next(iter(weights.values())).dtype
    whole = shape_alone(full, _ANY).named_parameters()
    return weights | {name: torch.zeros(each.shape, dtype=dtype) for name, each in whole if name not in weights}


@cache
def _pattern(name: str) -> re.Pattern[str]:
    """A name of a table as what it matches; a layer's number has no leading zeros."""
    layers = re.escape(name).replace(re.escape("{n}"), r"(0|[1-9][0-9]{0,9})")
    return re.compile(layers.replace(re.escape("*"), "(weight|bias)"))


def _fill(name: str, blanks: tuple[str, ...]) -> str:
    """A name of a table with its blanks filled, one after the other."""
    values = iter(blanks)
    return re.sub(r"\{n\}|\*", lambda _: next(values), name)
