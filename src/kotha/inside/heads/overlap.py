"""Overlap: do two heads look for the same, write the same, look at the same places?

A head meets the residual stream through two small matrices, each of which lives in a subspace of D out of C dimensions
(Elhage et al. 2021, https://transformer-circuits.pub/2021/framework). ``W_Q W_K^T`` says who looks at whom; its row
space is what the head can notice in a token that is looked at. ``W_V W_O`` says what is carried over; its row space is
where it writes. Two subspaces are compared by their principal angles: the mean squared cosine is 1 where one contains
the other and 0 where they are orthogonal; two random ones of r out of C dimensions have about r / C.

The course's insight 2 says that heads share: their matrices, side by side, have fewer directions than it seems
(Cordonnier et al. 2020, https://arxiv.org/abs/2006.16362). ``shared_rank`` counts them. Insight 0 says that attention
is not symmetric: ``symmetries`` measures it. Norms of queries and keys and rotary places come after these matrices and
are left out.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from kotha.inside.heads.kinds import FEWEST_CHOICES, Sight
from kotha.inside.hook_points import attentions
from kotha.model.attention import Attention

Array = NDArray[np.float64]
_ENERGY = 0.9  # of a matrix, to be explained


@dataclass(frozen=True)
class Overlap:
    """How much two heads of one attention have in common, each from 0 to 1."""

    qk: float  # what they notice in the tokens looked at
    ov: float  # where they write
    qk_chance: float  # of random subspaces of their sizes
    ov_chance: float


@dataclass(frozen=True)
class SharedRank:
    """Directions that hold nine tenths of a matrix's energy."""

    needed: int
    random: int  # as many in a random matrix of that size
    size: int  # as many as there could be


@dataclass(frozen=True)
class Likeness:
    """The head of the same attention that looks most alike."""

    head: str
    alike: float  # 1: they look at the very same places
    overlap: Overlap


@dataclass(frozen=True)
class Sharing:
    """How many directions the heads of an attention need together."""

    attention: str
    queries: SharedRank
    keys: SharedRank
    values: SharedRank


class HeadWeights:
    """What the weights of an attention show, whatever it reads: worked out when first asked for, kept for the next."""

    def __init__(self, name: str, attention: Attention) -> None:
        self.name, self.attention = name, attention

    @cached_property
    def _heads(self) -> list[tuple[Array, Array, Array, Array]]:
        """Each head's W_Q, W_K, W_V (C, D) and W_O (D, C), by rows of x: q = x W_Q."""
        attention, width = self.attention, self.attention.d_head
        shared = [place for place, n_heads in enumerate(attention.queries_per_kv_head) for _ in range(n_heads)]
        weights = [getattr(attention, name).weight for name in ("query", "key", "value", "output")]
        q, k, v = (_array(each).reshape(-1, width, each.shape[1]).transpose(0, 2, 1) for each in weights[:3])
        o = _array(weights[3]).T.reshape(-1, width, len(weights[3]))  # (H, D, C)
        return [(q[place], k[keys], v[keys], o[place]) for place, keys in enumerate(shared)]

    @cached_property
    def _spaces(self) -> list[tuple[Array, Array]]:
        """What each head notices, and where it writes: orthonormal bases, each (C, rank)."""
        return [(_row_space(q, k.T), _row_space(v, o)) for q, k, v, o in self._heads]

    def overlap(self, one: int, other: int) -> Overlap:
        """Two heads compared, by their places."""
        pairs = list(zip(self._spaces[one], self._spaces[other], strict=True))
        chances = (float(max(a.shape[1], b.shape[1]) / len(a)) for a, b in pairs)
        return Overlap(*(subspace_overlap(a, b) for a, b in pairs), *chances)

    @cached_property
    def symmetries(self) -> list[float]:
        """How much of each head's W_Q W_K^T is the same in both directions: 1 all, a half by chance, 0 the opposite."""
        found = []
        for q, k, _, _ in self._heads:
            # The sums over the C x C product, from products of D x D: |A|^2 and <A, A^T>.
            square, crossed = float(np.sum((q.T @ q) * (k.T @ k))), float(np.sum((k.T @ q) * (k.T @ q).T))
            found.append(0.5 * (1 + crossed / square) if square else 0.5)
        return found

    @cached_property
    def sharing(self) -> Sharing:
        """How many directions all heads need together."""
        weights = (getattr(self.attention, name).weight for name in ("query", "key", "value"))
        return Sharing(self.name, *(shared_rank(_array(weight)) for weight in weights))

    def nearest(self, alike: Tensor) -> dict[str, Likeness]:
        """For each head the one that looks most alike, by (H, H); none for a head alone."""
        if len(alike) < 2:
            return {}
        names, found = [f"{self.name}.{number}" for number in self.attention.heads], {}
        best = alike.clone().fill_diagonal_(-1.0).max(dim=-1)
        for here, (share, there) in enumerate(zip(*map(Tensor.tolist, best), strict=True)):
            found[names[here]] = Likeness(names[there], share, self.overlap(here, there))
        return found


def head_weights(model: nn.Module) -> list[HeadWeights]:
    """The weights of every attention of a model."""
    return [HeadWeights(*each) for each in attentions(model).items()]


def subspace_overlap(a: Array, b: Array) -> float:
    """The mean squared cosine of the principal angles of two subspaces, by orthonormal bases: (C, r), (C, s) -> 0 to 1.

    >>> line, plane = np.eye(3)[:, :1], np.eye(3)[:, :2]
    >>> subspace_overlap(line, plane), subspace_overlap(np.eye(3)[:, 2:], plane)
    (1.0, 0.0)
    """
    smaller: int = min(a.shape[1], b.shape[1])
    return float(np.square(a.T @ b).sum() / smaller) if smaller else 0.0


def _array(weight: Tensor) -> Array:
    return weight.detach().cpu().double().numpy()


def _row_space(left: Array, right: Array) -> Array:
    """The row space of a product without making it: (C, D), (D, C) -> (C, rank)."""
    narrow = np.linalg.qr(left)[1]  # left = Q R, and Q changes no row space
    _, sizes, rows = np.linalg.svd(narrow @ right, full_matrices=False)
    rank = int((sizes > sizes.max(initial=0.0) * max(right.shape) * np.finfo(np.float32).eps).sum())
    return rows[:rank].T


def shared_rank(matrix: Array) -> SharedRank:
    """How many directions the heads of a matrix need together, beside a random one: (H D, C) -> counts."""
    return SharedRank(_directions(matrix), _random_directions(*matrix.shape), min(matrix.shape))


@lru_cache(maxsize=256)
def _random_directions(height: int, width: int) -> int:
    return _directions(np.random.default_rng(0).standard_normal((height, width)))


def _directions(matrix: Array) -> int:
    energy = np.square(np.linalg.svd(matrix, compute_uv=False))
    return int(np.searchsorted(np.cumsum(energy), _ENERGY * energy.sum())) + 1


class Resemblance:
    """How alike the heads of each attention look: 1 less the Jensen-Shannon divergence in bits, mean over tokens."""

    def __init__(self) -> None:
        self._sums: dict[str, Tensor] = {}

    def read(self, sights: Sequence[Sight]) -> None:
        """Take in what a passage showed."""
        for sight in sights:
            weights = sight.weights[:, sight.n_allowed >= FEWEST_CHOICES]  # (H, T, S)
            alone = torch.special.entr(weights).sum(dim=-1)  # (H, T)
            both = torch.stack([torch.special.entr((weights + each) / 2).sum(dim=-1) for each in weights])  # (H, H, T)
            divergence = (both - (alone[:, None] + alone) / 2) / math.log(2)
            alike = (1 - divergence).clamp(0, 1).double().sum(dim=-1)
            self._sums[sight.attention] = self._sums.get(sight.attention, 0) + alike

    def of(self, attention: str) -> Tensor:
        """Every head beside every other: (H, H), 1 where they look alike."""
        sums = self._sums[attention]
        return sums / sums[0, 0].clamp(min=1)  # each is like itself at every token
