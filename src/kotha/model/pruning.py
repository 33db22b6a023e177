"""Pruning: remove attention heads from the weights.

Removing a head deletes its rows of the query matrix and its columns of the output matrix. Its key and value rows are
deleted too, unless another head uses them (grouped-query attention). The result equals the unpruned model with that
head's output set to zero. The output bias belongs to no head and is kept.

Michel et al. 2019, https://arxiv.org/abs/1905.10650, found that many heads can be removed after training; Voita et al.
2019, https://arxiv.org/abs/1905.09418, found that interpretable heads are pruned last. ``inside/heads`` chooses which
heads to remove. Names refer to the head numbers of the unpruned model, so a pruned model can be pruned again.
"""

import copy
from collections.abc import Iterable, Sequence
from typing import TypeVar

import torch
from torch import Tensor, nn

from kotha.model.attention import Attention
from kotha.model.config import ModelConfig

Body = TypeVar("Body", bound=nn.Module)


@torch.no_grad()
def remove_heads(model: Body, heads: Iterable[str]) -> Body:
    """Return a copy of a model without some heads, with names such as ``blocks.0.attention.3``.

    >>> from kotha.model.family import build
    >>> from kotha.model.presets import preset
    >>> pruned = remove_heads(build(preset("mini")), ["blocks.0.attention.1"])
    >>> pruned.config.removed_heads, tuple(pruned.stack.blocks[0].attention.query.weight.shape)
    (('blocks.0.attention.1',), (4, 8))
    """
    config = model.config
    assert isinstance(config, ModelConfig), "a model of the family has a config"
    smaller = config.replace(removed_heads=(*config.removed_heads, *heads))
    pruned = copy.deepcopy(model)
    cut(pruned, smaller)
    for module in pruned.modules():  # a classifier also holds its body's config
        if isinstance(getattr(module, "config", None), ModelConfig):
            module.config = smaller
    return pruned


@torch.no_grad()
def cut(model: nn.Module, config: ModelConfig) -> None:
    """Remove, in place, every head that the config lists as removed."""
    attentions = [module for module in model.modules() if isinstance(module, Attention)]
    for name, attention in zip(config.attentions(), attentions, strict=True):
        heads = config.heads_of(name)
        if list(attention.heads) != heads:
            _keep(attention, heads, config.n_heads // config.n_kv_heads)


def _keep(attention: Attention, heads: Sequence[int], n_per_key: int) -> None:
    """Keep only these heads of an attention module; unpruned, ``n_per_key`` query heads share a key head."""
    key_heads = sorted({head // n_per_key for head in attention.heads})  # key heads before this call
    kept_keys = sorted({head // n_per_key for head in heads})
    width = attention.d_head
    queries = _head_rows([attention.heads.index(head) for head in heads], width)
    keys = _head_rows([key_heads.index(head) for head in kept_keys], width)
    for linear, rows in ((attention.query, queries), (attention.key, keys), (attention.value, keys)):
        linear.weight = _chosen(linear.weight, rows)
        if linear.bias is not None:
            linear.bias = _chosen(linear.bias, rows)
        linear.out_features = len(rows)
    attention.output.weight = _chosen(attention.output.weight, queries, columns=True)
    attention.output.in_features = len(queries)
    attention.heads = tuple(heads)
    attention.queries_per_kv_head = tuple(sum(head // n_per_key == key for head in heads) for key in kept_keys)


def _head_rows(heads: Sequence[int], width: int) -> list[int]:
    """Return the row indices of these heads, in order.

    >>> _head_rows([0, 2], width=2)
    [0, 1, 4, 5]
    """
    return [head * width + row for head in heads for row in range(width)]


def _chosen(weight: Tensor, rows: Sequence[int], columns: bool = False) -> nn.Parameter:
    """Select rows or columns, without indexing on the meta device, for which torch would load its compiler."""
    full = weight.mT if columns else weight
    kept = weight.new_empty((len(rows), *full.shape[1:])) if weight.is_meta else full[list(rows)]
    return nn.Parameter((kept.mT if columns else kept).contiguous(), requires_grad=weight.requires_grad)
