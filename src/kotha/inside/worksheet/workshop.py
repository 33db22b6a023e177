"""The workshop's sheet, questions 1 to 5: three tokens of width 4, and the first of two heads.

Only what the workshop gives is written here; the rest is worked out. To be held against torch the sheet becomes a
model: its X is the token table, its matrices are the first head, and a block whose norms come last hands its
attention the vectors as they are.
"""

from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor

from kotha.errors import UsageError
from kotha.inside.worksheet.operation import Array
from kotha.inside.worksheet.sheet import Sheet
from kotha.inside.worksheet.traced import read_head
from kotha.model.config import GPTConfig
from kotha.model.gpt import GPT

_HEADS = 2
# Sizes that one can compute by hand, and that still have something to compute.
_FEWEST, _MOST = 2, 12


@dataclass(frozen=True)
class Given:
    """What a sheet is computed from."""

    tokens: tuple[str, ...]
    x: Array
    """(T, C)."""
    w_q: Array
    """(C, D), and so are the other two."""
    w_k: Array
    w_v: Array


WORKSHOP = Given(
    tokens=("বাংলাদেশ", "ব্যাংক", "সুদ"),
    x=np.array([[1.0, 0.5, 0.2, 0.8], [0.3, 0.9, 0.4, 0.1], [0.7, 0.2, 0.6, 0.5]]),
    w_q=np.array([[0.1, 0.2], [0.3, 0.1], [0.2, 0.4], [0.1, 0.3]]),
    w_k=np.array([[0.2, 0.1], [0.1, 0.3], [0.4, 0.2], [0.3, 0.1]]),
    w_v=np.array([[0.3, 0.2], [0.2, 0.4], [0.1, 0.3], [0.4, 0.1]]),
)


def drawn(n_tokens: int, width: int, head_width: int, seed: int) -> Given:
    """A sheet of other sizes and numbers, drawn: one decimal each, as on paper.

    >>> drawn(4, 6, 3, seed=1).w_q.shape
    (6, 3)
    """
    for name, size in {"tokens": n_tokens, "width": width, "head width": head_width}.items():
        if not _FEWEST <= size <= _MOST:
            raise UsageError(f"{name} {size} makes no sheet for paper; use {_FEWEST} to {_MOST}")
    random = np.random.default_rng(seed)

    def draw(height: int, size: int) -> Array:
        numbers: Array = random.integers(1, 10, (height, size)) / 10
        return numbers

    names = tuple(f"token {number}" for number in range(1, n_tokens + 1))
    matrices = (draw(width, head_width) for _ in range(3))
    return Given(names, draw(n_tokens, width), *matrices)


def workshop_sheet(given: Given = WORKSHOP) -> Sheet:
    """The sheet of what is given, every number held against torch's.

    >>> workshop_sheet().steps["Q"].values.round(2).tolist()
    [[0.37, 0.57], [0.39, 0.34], [0.3, 0.55]]
    """
    tokens = torch.arange(len(given.tokens))[None]
    sheet = read_head(as_model(given), [tokens], "blocks.0.attention", 0, given.tokens, shifted=False)
    return replace(sheet, text=" ".join(given.tokens), place="")


def as_model(given: Given) -> GPT:
    """A model in double precision whose first head is the sheet's."""
    n_tokens, width = given.x.shape
    config = GPTConfig(
        vocab_size=n_tokens,
        context_length=n_tokens,
        n_layers=1,
        d_model=width,
        n_heads=_HEADS,
        d_head=given.w_q.shape[1],
        norm_order="post",
        positions="none",
        attention_bias=False,
    )
    model = GPT(config).double().eval()
    attention = model.get_submodule("stack.blocks.0.attention")
    matrices: dict[str, Array] = {"query": given.w_q, "key": given.w_k, "value": given.w_v}
    with torch.no_grad():
        model.tokens.weight.copy_(torch.from_numpy(given.x))
        for name, matrix in matrices.items():
            weight = attention.get_parameter(f"{name}.weight")
            weight[: matrix.shape[1]] = _turned(matrix)
    return model


def _turned(matrix: Array) -> Tensor:
    return torch.from_numpy(matrix).mT
