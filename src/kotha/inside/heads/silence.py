"""Silence (head ablation): what a model says when some heads say nothing.

    with silence(model, ["blocks.0.attention.3"]):
        model(tokens)

A head's output is multiplied by a gate on its way to the output matrix. A gate of zero silences it; a gate of one
changes nothing, and the loss's slope there says how much the head matters (``importance.py``). Hooks come and go with
the ``with``: the weights are never touched. Heads are removed for good in ``kotha.model.pruning``.
"""

from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from kotha.errors import UsageError, nearest
from kotha.inside.sites import attentions

# What an attention's heads are multiplied by, from its name and its heads' outputs (B, H, T, D).
Gate = Callable[[str, Tensor], Tensor]


def every_head(model: nn.Module) -> list[str]:
    """The names of all heads, first to last; of a pruned model, of those that are left.

    >>> from kotha.model.family import build
    >>> from kotha.model.presets import preset
    >>> every_head(build(preset("mini")))
    ['blocks.0.attention.0', 'blocks.0.attention.1']
    """
    return [f"{name}.{number}" for name, attention in attentions(model).items() for number in attention.heads]


def places_of(model: nn.Module, heads: Iterable[str]) -> dict[str, list[int]]:
    """Where heads stand: for each attention's name, the places in its tensors' second dimension."""
    known = every_head(model)
    found: dict[str, list[int]] = {}
    for head in heads:
        if head not in known:
            raise UsageError(f"there is no head {head!r} in this model{nearest(head, known)}")
        name, _, number = head.rpartition(".")
        found.setdefault(name, []).append(attentions(model)[name].heads.index(int(number)))
    return found


@contextmanager
def silence(model: nn.Module, heads: Iterable[str]) -> Iterator[None]:
    """Inside the ``with``, these heads add nothing."""
    silent = places_of(model, heads)

    def gate(name: str, outputs: Tensor) -> Tensor:
        open_ = torch.ones(outputs.shape[1], dtype=outputs.dtype, device=outputs.device)
        open_[silent[name]] = 0
        return open_[:, None, None]  # (H, 1, 1)

    with gated(model, silent, gate):
        yield


@contextmanager
def gated(model: nn.Module, names: Iterable[str], gate: Gate) -> Iterator[None]:
    """Inside the ``with``, the heads of some attentions are multiplied by what ``gate`` gives."""

    def hook(name: str) -> Callable[..., Tensor]:
        def turn(_module: nn.Module, _inputs: Any, outputs: Tensor) -> Tensor:
            return outputs * gate(name, outputs)

        return turn

    with ExitStack() as hooks:
        for name in names:
            hooks.enter_context(attentions(model)[name].head_outputs.register_forward_hook(hook(name)))
        yield
