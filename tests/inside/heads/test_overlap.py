"""Overlap: principal angles compared with NumPy, and identical and disjoint heads."""

import math
from dataclasses import astuple

import numpy as np
import pytest
import torch
from tests.inside.conftest import with_inputs

from kotha.inside.heads.kinds import Passage, look
from kotha.inside.heads.overlap import AttentionSimilarity, HeadWeights, head_weights, shared_rank
from kotha.model.attention import Attention
from kotha.model.config import BlockConfig
from kotha.model.pruning import remove_heads


def fresh(n_kv_heads: int = 4, seed: int = 0) -> Attention:
    torch.manual_seed(seed)
    return Attention(BlockConfig(d_model=16, n_heads=4, n_kv_heads=n_kv_heads))


def by_hand(a: np.ndarray, b: np.ndarray) -> float:
    """Cosines of principal angles: singular values of the product of orthonormal bases (Björck & Golub 1973)."""
    bases = []
    for matrix in (a, b):
        _, sizes, rows = np.linalg.svd(matrix)
        bases.append(rows[: int((sizes > 1e-9 * sizes[0]).sum())])
    cosines = np.linalg.svd(bases[0] @ bases[1].T, compute_uv=False)
    return float(np.mean(cosines**2))


@pytest.mark.parametrize("n_kv_heads", [4, 2])
def test_overlap_matches_the_full_products(n_kv_heads: int) -> None:
    attention = fresh(n_kv_heads)
    q, k, v, o = (getattr(attention, name).weight.detach().double().numpy() for name in
                  ("query", "key", "value", "output"))  # fmt: skip
    qk, ov = [], []
    for head in range(4):
        mine, shared = slice(4 * head, 4 * head + 4), head * n_kv_heads // 4
        theirs = slice(4 * shared, 4 * shared + 4)
        qk.append(q[mine].T @ k[theirs])  # W_Q W_K^T: (C, C)
        ov.append(v[theirs].T @ o[:, mine].T)  # W_V W_O: (C, C)
    for a, b in ((0, 1), (1, 2), (3, 0)):
        found = HeadWeights("", attention).overlap(a, b)
        assert found.qk == pytest.approx(by_hand(qk[a], qk[b]), abs=1e-6)
        assert found.ov == pytest.approx(by_hand(ov[a], ov[b]), abs=1e-6)
        assert found.qk_chance == found.ov_chance == 4 / 16
        symmetric = np.linalg.norm((qk[a] + qk[a].T) / 2) ** 2 / np.linalg.norm(qk[a]) ** 2
        assert HeadWeights("", attention).symmetries[a] == pytest.approx(symmetric, abs=1e-6)


def test_identical_and_disjoint_heads() -> None:
    attention = fresh()
    with torch.no_grad():
        for matrix in (attention.query, attention.key, attention.value):
            matrix.weight[4:8] = matrix.weight[:4]
            matrix.weight[8:12] = torch.eye(16)[:4]
            matrix.weight[12:] = torch.eye(16)[8:12]
        attention.output.weight[:, 4:8] = attention.output.weight[:, :4]
        attention.output.weight[:, 8:12] = torch.eye(16)[:, :4]
        attention.output.weight[:, 12:] = torch.eye(16)[:, 8:12]
    same, apart = HeadWeights("", attention).overlap(0, 1), HeadWeights("", attention).overlap(2, 3)
    assert (same.qk, same.ov) == pytest.approx((1, 1))
    assert (apart.qk, apart.ov) == pytest.approx((0, 0), abs=1e-9)
    assert HeadWeights("", attention).symmetries[2] == pytest.approx(1), (
        "queries and keys alike: A looks at B as B at A"
    )


def test_heads_with_shared_keys_detect_the_same() -> None:
    attention = fresh(n_kv_heads=2)
    assert HeadWeights("", attention).overlap(0, 1).qk == pytest.approx(1)
    assert HeadWeights("", attention).overlap(1, 2).qk < 0.8


def test_random_heads_overlap_by_chance() -> None:
    found = [HeadWeights("", fresh(seed=seed)).overlap(0, 1) for seed in range(60)]
    assert np.mean([each.qk for each in found]) == pytest.approx(0.25, abs=0.03)
    assert np.mean([each.ov for each in found]) == pytest.approx(0.25, abs=0.03)
    # A random matrix agrees with its transpose on the diagonal only: one part in C.
    symmetric = np.mean([HeadWeights("", fresh(seed=seed)).symmetries[2] for seed in range(60)])
    assert symmetric == pytest.approx(0.5 * (1 + 1 / 16), abs=0.015)


def test_a_zero_head_overlaps_with_nothing() -> None:
    attention = fresh()
    with torch.no_grad():
        attention.key.weight[:4] = 0
    assert HeadWeights("", attention).overlap(0, 1).qk == 0
    assert HeadWeights("", attention).symmetries[0] == 0.5


def test_shared_directions_reduce_the_rank() -> None:
    chance = np.random.default_rng(0)
    few = chance.standard_normal((64, 5)) @ chance.standard_normal((5, 64))
    found = shared_rank(few)
    assert found.needed <= 5 < found.random <= found.size == 64
    free = shared_rank(chance.standard_normal((64, 64)))
    assert free.needed == pytest.approx(free.random, abs=3)
    assert shared_rank(np.diag([3.0, 1.0])).needed == 1  # 9 of 10
    assert shared_rank(np.diag([2.9, 1.0])).needed == 2


def test_similarity_matches_jensen_shannon() -> None:
    model, inputs = with_inputs("gpt")
    observations = look(model, Passage(inputs[0][0]))
    found = AttentionSimilarity()
    found.read(observations)
    observed = observations[0]
    a, b = observed.weights[0].double().numpy(), observed.weights[2].double().numpy()
    alike = []
    for row in range(3, len(a)):  # there are four keys from the fourth token onwards
        p, q = a[row, : row + 1], b[row, : row + 1]
        middle = (p + q) / 2
        divergence = (p @ np.log(p / middle) + q @ np.log(q / middle)) / 2
        alike.append(1 - divergence / math.log(2))
    assert found.of(observed.attention)[0, 2].item() == pytest.approx(np.mean(alike), abs=1e-5)
    torch.testing.assert_close(found.of(observed.attention).diagonal(), torch.ones(4, dtype=torch.float64))


def test_the_nearest_head_keeps_its_original_number() -> None:
    model, inputs = with_inputs("gpt")
    pruned = remove_heads(
        model, ["blocks.0.attention.1", "blocks.1.attention.0", "blocks.1.attention.1", "blocks.1.attention.2"]
    )
    seen = AttentionSimilarity()
    seen.read(look(pruned, Passage(inputs[0][0])))
    first, second = head_weights(pruned)
    names = first.nearest(seen.of(first.name))
    assert list(names) == ["blocks.0.attention.0", "blocks.0.attention.2", "blocks.0.attention.3"]
    assert all(like.head in names and like.head != head for head, like in names.items())
    attention, places = first.attention, {head: place for place, head in enumerate(names)}
    for head, like in names.items():
        by_itself = HeadWeights("", attention).overlap(places[head], places[like.head])
        assert astuple(like.overlap) == pytest.approx(astuple(by_itself))
    assert second.nearest(seen.of(second.name)) == {}, "a single head has no nearest one"
