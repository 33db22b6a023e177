"""Lesson: the mini transformer of the course in NumPy, beside torch, with and without the causal mask.

Four tokens of width 8 go through two heads, a residual and a norm, a feed-forward part of width 16 with ReLU, another
residual and norm, and a matrix to 20 logits. The weights are random, as nothing is trained; torch's own layer gets the
same ones, so both must give the same numbers.
"""

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from kotha.course.lessons.runner import LessonPlan, MeasuredLesson

Array = NDArray[np.float64]
TOKENS, WIDTH, HEADS, HIDDEN, VOCABULARY = 4, 8, 2, 16, 20
_SHAPES = {
    **dict.fromkeys(("W_Q", "W_K", "W_V", "W_O"), (WIDTH, WIDTH)),
    **{"W_1": (WIDTH, HIDDEN), "b_1": (HIDDEN,), "W_2": (HIDDEN, WIDTH), "b_2": (WIDTH,)},
    **{"W_vocab": (WIDTH, VOCABULARY), "b_vocab": (VOCABULARY,), "x": (TOKENS, WIDTH)},
}
_MASKED = {"with_mask": True, "without_mask": False}


def numbers(seed: int) -> dict[str, Array]:
    """Draw the tokens and all weights."""
    random = np.random.default_rng(seed)
    return {name: random.normal(size=shape) / np.sqrt(shape[0]) for name, shape in _SHAPES.items()}


def softmax(scores: Array) -> Array:
    """Return weights that sum to 1 in each row."""
    powers: Array = np.exp(scores - scores.max(axis=-1, keepdims=True))
    shares: Array = powers / powers.sum(axis=-1, keepdims=True)
    return shares


def norm(x: Array) -> Array:
    """Return each row with mean 0 and variance 1."""
    normal: Array = (x - x.mean(axis=-1, keepdims=True)) / np.sqrt(x.var(axis=-1, keepdims=True) + 1e-5)
    return normal


def by_numpy(given: dict[str, Array], masked: bool) -> tuple[Array, Array]:
    """Return the attention weights (H, T, T) and the logits (T, V), line by line as in the notes."""
    x = given["x"]
    q, k, v = (  # each (H, T, C/H)
        (x @ given[name]).reshape(TOKENS, HEADS, -1).transpose(1, 0, 2) for name in ("W_Q", "W_K", "W_V")
    )
    scores = q @ k.transpose(0, 2, 1) / np.sqrt(WIDTH // HEADS)  # (H, T, T)
    if masked:
        scores = np.where(np.tri(TOKENS, dtype=bool), scores, -np.inf)
    weights = softmax(scores)
    joined = (weights @ v).transpose(1, 0, 2).reshape(TOKENS, WIDTH)
    x1 = norm(x + joined @ given["W_O"])
    hidden = np.maximum(x1 @ given["W_1"] + given["b_1"], 0)
    x2 = norm(x1 + hidden @ given["W_2"] + given["b_2"])
    return weights, x2 @ given["W_vocab"] + given["b_vocab"]


@torch.no_grad()
def by_torch(given: dict[str, Array], masked: bool) -> tuple[Array, Array]:
    """Return the same from torch's own modules."""
    of = {name: torch.from_numpy(each) for name, each in given.items()}
    layer = nn.TransformerEncoderLayer(WIDTH, HEADS, HIDDEN, dropout=0.0, batch_first=True).double()
    attention = layer.self_attn
    attention.in_proj_weight.copy_(torch.cat([of[name].T for name in ("W_Q", "W_K", "W_V")]))
    pairs: list[tuple[Any, Any]] = [(attention.out_proj.weight, of["W_O"].T)]
    pairs += [(layer.linear1.weight, of["W_1"].T), (layer.linear1.bias, of["b_1"])]
    pairs += [(layer.linear2.weight, of["W_2"].T), (layer.linear2.bias, of["b_2"])]
    for target, source in pairs:
        target.copy_(source)
    hidden = torch.triu(torch.ones(TOKENS, TOKENS, dtype=torch.bool), diagonal=1) if masked else None
    x = of["x"][None]
    _, weights = attention(x, x, x, attn_mask=hidden, average_attn_weights=False)
    return weights[0].numpy(), (layer(x, src_mask=hidden)[0] @ of["W_vocab"] + of["b_vocab"]).numpy()


def figures_of(seed: int) -> dict[str, dict[str, float]]:
    """Measure both versions with one set of weights."""
    found, given = {}, numbers(seed)
    other = {**given, "x": given["x"] + np.array([[0.0], [0.0], [0.0], [1.0]]) * numbers(seed + 1)["x"]}
    for key, masked in _MASKED.items():
        (ours, logits), (theirs, their_logits) = by_numpy(given, masked), by_torch(given, masked)
        found[key] = {
            "difference": float(max(np.abs(ours - theirs).max(), np.abs(logits - their_logits).max())),
            "later": float((ours * ~np.tri(TOKENS, dtype=bool)).sum(axis=-1).mean()),
            "moved": float(np.abs(by_numpy(other, masked)[1][:-1] - logits[:-1]).max()),
        }
    return found


def printed(seed: int, masked: bool) -> str:
    """Return the weights of the first head and the predicted tokens, NumPy's to the left and torch's to the right."""
    (ours, logits), (theirs, their_logits) = (made(numbers(seed), masked) for made in (by_numpy, by_torch))
    rows = ["NumPy" + " " * 25 + "torch"]
    for left, right in zip(ours[0], theirs[0], strict=True):
        rows.append("   ".join("  ".join(f"{each:.3f}" for each in row) for row in (left, right)))
    rows.append(f"argmax {logits.argmax(-1).tolist()!s:22} {their_logits.argmax(-1).tolist()}")
    return "\n".join(rows)


def mini(lesson: MeasuredLesson) -> LessonPlan:
    """Compute the mini transformer with each seed's weights, with and without the mask."""
    seeds = iter(lesson.seeds)
    weights = {key: by_numpy(numbers(lesson.seeds[0]), masked)[0].mean(axis=0) for key, masked in _MASKED.items()}
    lines = {
        key: [(float(place + 1), float(row[place + 1 :].sum())) for place, row in enumerate(each)]
        for key, each in weights.items()
    }
    return LessonPlan(
        figures=lambda _: figures_of(next(seeds)),
        lines=lambda _: lines,
        samples={key: printed(lesson.seeds[0], masked) for key, masked in _MASKED.items()},
    )
