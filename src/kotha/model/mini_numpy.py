"""The ``mini`` model in one page of NumPy: the course notes' block, line by line, with the weights of the torch model.

There are no batches: the input is tokens (T,), and the output has every quantity of a calculation on paper. Tests check
that the result equals ``GPT(preset("mini"))``.
"""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

Array = NDArray[np.float64]


def mini(weights: dict[str, ArrayLike], tokens: list[int], n_heads: int = 2, eps: float = 1e-5) -> dict[str, Any]:
    """Compute every step of ``mini`` for one text: weights by torch name, tokens (T,) -> quantities by name."""
    w = {name.removeprefix("stack.blocks.0."): np.asarray(tensor, np.float64) for name, tensor in weights.items()}

    x = w["tokens.weight"][tokens]  # (T, C): a row of the embedding table for each token
    q = split(x @ w["attention.query.weight"].T, n_heads)  # (H, T, D): what each token looks for
    k = split(x @ w["attention.key.weight"].T, n_heads)  # (H, T, D): what each token offers
    v = split(x @ w["attention.value.weight"].T, n_heads)  # (H, T, D): what each token gives

    scores = q @ k.transpose(0, 2, 1) / np.sqrt(q.shape[-1])  # (H, T, T)
    allowed = np.tril(np.ones(scores.shape[1:], dtype=bool))  # (T, T): no position attends to later ones
    masked = np.where(allowed, scores, -np.inf)  # (H, T, T)
    attention = softmax(masked)  # (H, T, T): each row sums to 1
    heads = attention @ v  # (H, T, D)
    joined = heads.transpose(1, 0, 2).reshape(x.shape)  # (T, C): the heads concatenated
    attended = joined @ w["attention.output.weight"].T  # (T, C)
    x1 = layer_norm(x + attended, w["attention_norm.weight"], w["attention_norm.bias"], eps)  # (T, C)

    inner = np.maximum(0, x1 @ w["feedforward.up.weight"].T + w["feedforward.up.bias"])  # (T, d_ff)
    projected = inner @ w["feedforward.down.weight"].T + w["feedforward.down.bias"]  # (T, C)
    x2 = layer_norm(x1 + projected, w["feedforward_norm.weight"], w["feedforward_norm.bias"], eps)  # (T, C)

    logits = x2 @ w["head.weight"].T + w["head.bias"]  # (T, V)
    probabilities = softmax(logits)  # (T, V)
    return {
        "embeddings": x,
        "queries": q,
        "keys": k,
        "values": v,
        "scores": scores,
        "masked_scores": masked,
        "weights": attention,
        "head_outputs": heads,
        "after_attention": x1,
        "after_feedforward": x2,
        "logits": logits,
        "probabilities": probabilities,
        "next_token": int(probabilities[-1].argmax()),
    }


def split(x: Array, n_heads: int) -> Array:
    """Split the width into heads: (T, C) -> (H, T, D)."""
    return x.reshape(len(x), n_heads, -1).transpose(1, 0, 2)


def softmax(x: Array) -> Array:
    """Softmax along the last axis.

    >>> softmax(np.array([0.0, 0.0, -np.inf])).tolist()
    [0.5, 0.5, 0.0]
    """
    powers = np.exp(x - x.max(axis=-1, keepdims=True))
    shares: Array = powers / powers.sum(axis=-1, keepdims=True)
    return shares


def layer_norm(x: Array, weight: Array, bias: Array, eps: float) -> Array:
    """Normalize each row to mean 0 and variance 1, then scale and shift: (T, C) -> (T, C)."""
    centred = x - x.mean(axis=-1, keepdims=True)
    variance = (centred**2).mean(axis=-1, keepdims=True)
    normed: Array = centred / np.sqrt(variance + eps)
    return normed * weight + bias
