"""Initial weights from token counts: embeddings and a head that already predict the next token from the current one.

In its first steps, a new model learns which token follows which, but these frequencies can simply be counted. The
logarithms of the smoothed probabilities are factorized into an embedding of the current token and a row of the head.
Without its blocks, the model would be the best bigram model of this width. In a short run, this initialization saves
several hundred steps. It requires an untied head (``tied_head=False``), because a token is not its own most likely
successor.

The smoothing is interpolated Kneser-Ney with a single discount (``text/ngram.py`` has the full version).
"""

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from kotha.errors import ConfigError
from kotha.model.config import GPTConfig
from kotha.model.family import Model
from kotha.model.gpt import GPT
from kotha.text.shards import Dataset

_DISCOUNT = 0.75
_ROUNDS = 3  # rounds of subspace iteration
_RIDGE = 1e-5


def initialize_from_bigrams(model: Model, data: Dataset, seed: int) -> None:
    """Replace the embeddings and the head of a GPT."""
    config = model.config
    if not isinstance(config, GPTConfig) or config.tied_head or config.head_bias or config.norm != "rms":
        raise ConfigError("initial=bigrams requires a gpt with the modern layout and tied_head=False")
    assert isinstance(model, GPT), "the model of a GPTConfig"
    n_tokens, width = model.tokens.weight.shape
    line = np.concatenate(data["train"].shards)
    gains, shares, unigrams = _count(line, n_tokens)
    generator = torch.Generator().manual_seed(seed)
    embeddings = _embed(gains, shares, unigrams, width, generator)  # (V, C)
    weighted = (embeddings * shares[:, None]).mT  # (C, V)
    # The head that best approximates the logarithms: least squares, with each token weighted by its frequency.
    wanted = torch.sparse.mm(gains.mT, weighted.mT) + unigrams.log()[:, None] * weighted.sum(dim=1)  # (V, C)
    products = weighted @ embeddings + _RIDGE * torch.eye(width, dtype=torch.float64)
    head = torch.linalg.solve(products, wanted.mT).mT
    with torch.no_grad():
        model.tokens.weight.copy_(embeddings)
        model.head.weight.copy_(head)


def _count(line: NDArray[np.integer], n_tokens: int) -> tuple[Tensor, Tensor, Tensor]:
    """Count token pairs; return the gains (V, V), token shares (V,), and probabilities without context (V,)."""
    keys, counts = np.unique(line[:-1].astype(np.int64) * n_tokens + line[1:], return_counts=True)
    first, second = np.divmod(keys, n_tokens)
    before = np.bincount(second, minlength=n_tokens) + 1  # distinct predecessors, plus 1 so that no token is impossible
    unigrams = before / before.sum()
    totals, distinct = np.bincount(first, counts, n_tokens), np.bincount(first, minlength=n_tokens)
    backed_off = _DISCOUNT * distinct[first] * unigrams[second]
    added = np.log((counts - _DISCOUNT + backed_off) / backed_off)
    gains = _sparse(torch.from_numpy(np.stack([first, second])), torch.from_numpy(added), n_tokens)
    return gains, torch.from_numpy(totals / totals.sum()), torch.from_numpy(unigrams)


def _embed(gains: Tensor, shares: Tensor, unigrams: Tensor, width: int, generator: torch.Generator) -> Tensor:
    """Return embeddings of norm sqrt(C): a constant and the main directions in which tokens' successors differ."""
    rows, columns = shares.sqrt(), unigrams.sqrt()
    indices, values = gains.indices(), gains.values()
    scaled = _sparse(indices, values * rows[indices[0]] * columns[indices[1]], len(shares))
    n_directions = min(width - 1, len(shares))
    basis = torch.randn(len(shares), n_directions, generator=generator, dtype=torch.float64)
    for _ in range(_ROUNDS):  # a randomized SVD
        basis = torch.linalg.qr(torch.sparse.mm(scaled, torch.sparse.mm(scaled.mT, basis))).Q
    left, sizes, _ = torch.linalg.svd(torch.sparse.mm(scaled.mT, basis).mT, full_matrices=False)
    directions = (basis @ left) * sizes / rows.clamp(min=1e-12)[:, None]  # (V, C - 1)
    directions = directions / directions.square().mean(dim=1, keepdim=True).sqrt().clamp(min=1e-6)
    embeddings = torch.zeros(len(shares), width, dtype=torch.float64)
    embeddings[:, 0] = 1
    embeddings[:, 1 : 1 + n_directions] = directions
    return embeddings / embeddings.square().mean(dim=1, keepdim=True).sqrt()


def _sparse(indices: Tensor, values: Tensor, size: int) -> Tensor:
    return torch.sparse_coo_tensor(indices, values, (size, size), check_invariants=True).coalesce()
