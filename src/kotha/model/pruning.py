"""Pruning: heads taken out of the weights, not only silenced.

A head is its rows of the query matrix and its columns of the output matrix; its rows of keys and values go with it
once no other head looks at them (grouped-query attention shares them). What the head would have added is then simply
not there: the answers are those of the whole model with that head's output set to zero. The output's bias belongs to
no head and stays.

Michel et al. 2019, https://arxiv.org/abs/1905.10650, found that many heads can go after training; Voita et al. 2019,
https://arxiv.org/abs/1905.09418, that those which do something nameable go last. Which heads to take is chosen in
``inside/heads``; here they are removed. Names keep the numbers of the whole model, so a model that was
pruned can be pruned again.
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
    """A copy of a model without some heads, named as in ``blocks.0.attention.3``; the model itself stays whole.

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
    for module in pruned.modules():  # a classifier holds its body's config too
        if isinstance(getattr(module, "config", None), ModelConfig):
            module.config = smaller
    return pruned


@torch.no_grad()
def cut(model: nn.Module, config: ModelConfig) -> None:
    """Cut every head out of a model, in place, that its config has no more."""
    attentions = [module for module in model.modules() if isinstance(module, Attention)]
    for name, attention in zip(config.attentions(), attentions, strict=True):
        heads = config.heads_of(name)
        if list(attention.heads) != heads:
            _keep(attention, heads, config.n_heads // config.n_kv_heads)


def _keep(attention: Attention, heads: Sequence[int], n_shares: int) -> None:
    """Leave an attention some of its heads; ``n_shares`` of the whole model's look at one key head."""
    key_heads = sorted({head // n_shares for head in attention.heads})  # those that it has now
    kept_keys = sorted({head // n_shares for head in heads})
    width = attention.d_head
    queries = _places([attention.heads.index(head) for head in heads], width)
    keys = _places([key_heads.index(head) for head in kept_keys], width)
    for linear, rows in ((attention.query, queries), (attention.key, keys), (attention.value, keys)):
        linear.weight = _chosen(linear.weight, rows)
        if linear.bias is not None:
            linear.bias = _chosen(linear.bias, rows)
        linear.out_features = len(rows)
    attention.output.weight = _chosen(attention.output.weight, queries, columns=True)
    attention.output.in_features = len(queries)
    attention.heads = tuple(heads)
    attention.queries_per_kv_head = tuple(sum(head // n_shares == key for head in heads) for key in kept_keys)


def _places(heads: Sequence[int], width: int) -> list[int]:
    """The rows that heads stand in, one after the other.

    >>> _places([0, 2], width=2)
    [0, 1, 4, 5]
    """
    return [head * width + place for head in heads for place in range(width)]


def _chosen(weight: Tensor, places: Sequence[int], columns: bool = False) -> nn.Parameter:
    """Some rows; of a weight that is a shape alone, their shape, since torch would load its compiler to choose them."""
    whole = weight.mT if columns else weight
    kept = weight.new_empty((len(places), *whole.shape[1:])) if weight.is_meta else whole[list(places)]
    return nn.Parameter((kept.mT if columns else kept).contiguous(), requires_grad=weight.requires_grad)
