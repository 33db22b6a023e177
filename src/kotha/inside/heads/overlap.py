"""Overlap of heads: whether two heads read the same features, write the same ones, or attend to the same positions.

A head is connected to the residual stream by two low-rank matrices, whose row spaces have D of the C dimensions (Elhage
et al. 2021, https://transformer-circuits.pub/2021/framework). ``W_Q W_K^T`` determines which token attends to which,
and its row space contains the features that the head can detect in a key token. ``W_V W_O`` determines what is copied,
and its row space contains everything that the head can write. Subspaces are compared by their principal angles: the
mean squared cosine is 1 if one contains the other, 0 if they are orthogonal, and about r / C for two random subspaces
of dimension r.

Insight 2 of the course is that heads share directions: their stacked matrices have a lower rank than their size
suggests (Cordonnier et al. 2020, https://arxiv.org/abs/2006.16362), as measured by ``shared_rank``. Insight 0 of the
course is that attention is not symmetric; ``symmetries`` measures the symmetry. Query and key norms and rotary
positions are applied after these matrices and are ignored.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from kotha.inside.heads.kinds import FEWEST_CHOICES, AttentionPattern
from kotha.inside.hook_points import attentions
from kotha.model.attention import Attention

Array = NDArray[np.float64]
_ENERGY = 0.9  # share of a matrix's energy that the counted directions must hold


@dataclass(frozen=True)
class Overlap:
    """Overlap of two heads of one attention module, each value from 0 to 1."""

    qk: float  # overlap of what they detect in key tokens
    ov: float  # overlap of what they write
    qk_chance: float  # expected for random subspaces of these sizes
    ov_chance: float


@dataclass(frozen=True)
class SharedRank:
    """Number of directions that hold nine tenths of a matrix's energy."""

    needed: int
    random: int  # the same for a random matrix of that size
    size: int  # the maximum


@dataclass(frozen=True)
class HeadSimilarity:
    """The most similar head of the same attention module."""

    head: str
    attention_similarity: float  # 1: both attend to exactly the same positions
    overlap: Overlap


@dataclass(frozen=True)
class Sharing:
    """Number of directions needed to represent all heads in an attention module together."""

    attention: str
    queries: SharedRank
    keys: SharedRank
    values: SharedRank


class HeadWeights:
    """Measures of an attention module's weights, which do not depend on a text; computed on first use and cached."""

    def __init__(self, name: str, attention: Attention) -> None:
        self.name, self.attention = name, attention

    @cached_property
    def _heads(self) -> list[tuple[Array, Array, Array, Array]]:
        """Each head's W_Q, W_K, W_V (C, D) and W_O (D, C), for row vectors: q = x W_Q."""
        attention, width = self.attention, self.attention.d_head
        shared = [kv_head for kv_head, n_heads in enumerate(attention.queries_per_kv_head) for _ in range(n_heads)]
        weights = [getattr(attention, name).weight for name in ("query", "key", "value", "output")]
        q, k, v = (_array(each).reshape(-1, width, each.shape[1]).transpose(0, 2, 1) for each in weights[:3])
        o = _array(weights[3]).T.reshape(-1, width, len(weights[3]))  # (H, D, C)
        return [(q[head], k[keys], v[keys], o[head]) for head, keys in enumerate(shared)]

    @cached_property
    def _spaces(self) -> list[tuple[Array, Array]]:
        """Orthonormal bases of the subspaces that each head reads from and writes to, each (C, rank)."""
        return [(_row_space(q, k.T), _row_space(v, o)) for q, k, v, o in self._heads]

    def overlap(self, one: int, other: int) -> Overlap:
        """Compare two heads by their indices."""
        pairs = list(zip(self._spaces[one], self._spaces[other], strict=True))
        chances = (float(max(a.shape[1], b.shape[1]) / len(a)) for a, b in pairs)
        return Overlap(*(subspace_overlap(a, b) for a, b in pairs), *chances)

    @cached_property
    def symmetries(self) -> list[float]:
        """Symmetry of each head's W_Q W_K^T: 1 symmetric, 0.5 by chance, 0 antisymmetric."""
        found = []
        for q, k, _, _ in self._heads:
            # |A|^2 and <A, A^T> of the C x C product, computed from D x D products.
            square, crossed = float(np.sum((q.T @ q) * (k.T @ k))), float(np.sum((k.T @ q) * (k.T @ q).T))
            found.append(0.5 * (1 + crossed / square) if square else 0.5)
        return found

    @cached_property
    def sharing(self) -> Sharing:
        """Number of directions needed to represent all heads together."""
        weights = (getattr(self.attention, name).weight for name in ("query", "key", "value"))
        return Sharing(self.name, *(shared_rank(_array(weight)) for weight in weights))

    def nearest(self, alike: Tensor) -> dict[str, HeadSimilarity]:
        """Return the head most similar to each head, given similarities (H, H); empty if there is only one head."""
        if len(alike) < 2:
            return {}
        names, found = [f"{self.name}.{number}" for number in self.attention.heads], {}
        best = alike.clone().fill_diagonal_(-1.0).max(dim=-1)
        for here, (share, there) in enumerate(zip(*map(Tensor.tolist, best), strict=True)):
            found[names[here]] = HeadSimilarity(names[there], share, self.overlap(here, there))
        return found


def head_weights(model: nn.Module) -> list[HeadWeights]:
    """Return the weights of every attention module of a model."""
    return [HeadWeights(*each) for each in attentions(model).items()]


def subspace_overlap(a: Array, b: Array) -> float:
    """Return the mean squared cosine of the principal angles of two orthonormal bases: (C, r), (C, s) -> 0 to 1.

    >>> line, plane = np.eye(3)[:, :1], np.eye(3)[:, :2]
    >>> subspace_overlap(line, plane), subspace_overlap(np.eye(3)[:, 2:], plane)
    (1.0, 0.0)
    """
    smaller: int = min(a.shape[1], b.shape[1])
    return float(np.square(a.T @ b).sum() / smaller) if smaller else 0.0


def _array(weight: Tensor) -> Array:
    return weight.detach().cpu().double().numpy()


def _row_space(left: Array, right: Array) -> Array:
    """Return the row space of a product without computing the product: (C, D), (D, C) -> (C, rank)."""
    narrow = np.linalg.qr(left)[1]  # left = Q R, and Q does not change the row space
    _, sizes, rows = np.linalg.svd(narrow @ right, full_matrices=False)
    rank = int((sizes > sizes.max(initial=0.0) * max(right.shape) * np.finfo(np.float32).eps).sum())
    return rows[:rank].T


def shared_rank(matrix: Array) -> SharedRank:
    """Count the directions in the heads' stacked matrices and in a random matrix of that size: (H D, C) -> counts."""
    return SharedRank(_directions(matrix), _random_directions(*matrix.shape), min(matrix.shape))


@lru_cache(maxsize=256)
def _random_directions(height: int, width: int) -> int:
    return _directions(np.random.default_rng(0).standard_normal((height, width)))


def _directions(matrix: Array) -> int:
    energy = np.square(np.linalg.svd(matrix, compute_uv=False))
    return int(np.searchsorted(np.cumsum(energy), _ENERGY * energy.sum())) + 1


class AttentionSimilarity:
    """Similarity of the heads' attention: 1 minus the Jensen-Shannon divergence in bits, averaged over tokens."""

    def __init__(self) -> None:
        self._sums: dict[str, Tensor] = {}

    def read(self, observations: Sequence[AttentionPattern]) -> None:
        """Add the weights of a passage."""
        for observed in observations:
            weights = observed.weights[:, observed.n_allowed >= FEWEST_CHOICES]  # (H, T, S)
            alone = torch.special.entr(weights).sum(dim=-1)  # (H, T)
            both = torch.stack([torch.special.entr((weights + each) / 2).sum(dim=-1) for each in weights])  # (H, H, T)
            divergence = (both - (alone[:, None] + alone) / 2) / math.log(2)
            alike = (1 - divergence).clamp(0, 1).double().sum(dim=-1)
            self._sums[observed.attention] = self._sums.get(observed.attention, 0) + alike

    def of(self, attention: str) -> Tensor:
        """Return the similarity of each pair of heads: (H, H), 1 for equal weights."""
        sums = self._sums[attention]
        return sums / sums[0, 0].clamp(min=1)  # the diagonal counts the tokens
