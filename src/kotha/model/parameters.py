"""Count the parameters of a config by part, with a one-layer model on the meta device.

Layers differ only in removed heads, so one layer of each stack is built and its count is multiplied.
"""

from dataclasses import dataclass

from torch import nn

from kotha.model.attention import Attention
from kotha.model.classifier import TextClassifier
from kotha.model.config import ModelConfig
from kotha.model.family import build
from kotha.model.feedforward import FeedForward, SwiGLU
from kotha.model.vit import ViT

# The first entry that a parameter's name contains determines its part; norms are counted separately.
_PARTS = {
    "tokens": "token_embedding",
    "patches": "token_embedding",
    "class_token": "token_embedding",
    "segments": "segments",
    "positions": "positions",
    "attention": "attention",
    "cross": "attention",
    "feedforward": "feedforward",
}
_NAMED = (*dict.fromkeys(_PARTS.values()), "norms", "head")


@dataclass(frozen=True)
class ParameterCount:
    """Parameters by part; a tied weight is counted once, where it is first used. ``total`` is the sum of the parts."""

    token_embedding: int  # the token table; in ViT, the patch projection and the class token
    segments: int  # BERT's segment table
    positions: int  # learned positions; other kinds have no parameters
    attention: int  # all attention matrices and biases
    feedforward: int  # all feed-forward matrices and biases
    norms: int  # all norms, including those of queries and keys
    head: int  # the output heads, without a weight tied to the embedding
    total: int  # all parameters
    attention_per_layer: int
    """One attention module (the first, if heads were removed); a decoder block with cross-attention has two."""
    attention_per_head: int
    """One head: its slices of the four matrices and of the query, key and value biases."""
    feedforward_per_layer: int  # one feed-forward part
    tied_head: bool  # whether the head uses the token embedding's table


def count_parameters(config: ModelConfig) -> ParameterCount:
    """Count a config's parameters by part.

    >>> from kotha.model.presets import preset
    >>> count_parameters(preset("bangla-58m")).total
    58139648
    """
    stacks = config.stacks()
    shallow = {name: 1 for name in ("n_layers", "n_decoder_layers") if hasattr(config, name)}
    model, parts = build(config.replace(removed_heads=(), **shallow), "meta"), dict.fromkeys(_NAMED, 0)
    for name, parameter in model.named_parameters():  # a tied weight is listed once
        path = name.split(".")
        is_norm = any(step.endswith("norm") for step in path)
        part = "norms" if is_norm else next((_PARTS[step] for step in path if step in _PARTS), "head")
        n_layers = 1
        if "blocks" in path:
            stack = path[path.index("blocks") - 1]
            n_layers, _ = stacks["blocks" if stack == "stack" else stack]
        parts[part] += n_layers * parameter.numel()
    attention = next(module for module in model.modules() if isinstance(module, Attention))
    feedforward = next(module for module in model.modules() if isinstance(module, FeedForward | SwiGLU))
    per_head = (_size(attention.query) + attention.output.weight.numel()) // config.n_heads
    per_key_head = (_size(attention.key) + _size(attention.value)) // config.n_kv_heads
    removed = [
        per_head * (config.n_heads - len(config.heads_of(name)))
        + per_key_head * (config.n_kv_heads - len(config.key_heads_of(name)))
        for name in config.attentions()
    ]
    parts["attention"] -= sum(removed)
    one_attention = _size(attention) - _size(attention.query_norm) - _size(attention.key_norm)
    return ParameterCount(
        **parts,
        total=sum(parts.values()),
        attention_per_layer=one_attention - removed[0],
        attention_per_head=per_head + per_key_head,
        feedforward_per_layer=_size(feedforward),
        tied_head=not isinstance(model, ViT | TextClassifier) and model.head.weight is model.tokens.weight,
    )


def _size(module: nn.Module) -> int:
    return sum(parameter.numel() for parameter in module.parameters())
