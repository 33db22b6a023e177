"""How many parameters a config has, and where: counted on the built model, without its memory.

Layers are alike but for removed heads, so few of them are built: a thousand would take seconds.
"""

from dataclasses import dataclass, replace

from torch import nn

from kotha.model.attention import Attention
from kotha.model.classifier import TextClassifier
from kotha.model.config import ModelConfig
from kotha.model.family import build
from kotha.model.feedforward import FeedForward, SwiGLU
from kotha.model.norm import RMSNorm
from kotha.model.position import NoPositions
from kotha.model.vit import GridPositions, PatchEmbedding, ViT

# Which modules make which part; what else there is belongs to the part that it stands in.
_PARTS: dict[str, tuple[type[nn.Module], ...]] = {
    "token_embedding": (PatchEmbedding,),
    "positions": (NoPositions, GridPositions),
    "attention": (Attention,),
    "feedforward": (FeedForward, SwiGLU),
    "norms": (nn.LayerNorm, RMSNorm),
}
_NAMED = ("token_embedding", "segments", "positions", "attention", "feedforward", "norms", "head")
_DEPTHS = ("n_layers", "n_decoder_layers")


@dataclass(frozen=True)
class ParameterCount:
    """Parameters by part; what is tied is counted once, where it is first used. ``total`` is the sum of the parts."""

    token_embedding: int  # the table of tokens; in ViT, the projection of patches and the class token
    segments: int  # BERT's table of sentences
    positions: int  # learned positions; others have none
    attention: int  # all attention matrices and biases
    feedforward: int  # all feed-forward matrices and biases
    norms: int  # all norms, those of queries and keys included
    head: int  # what turns vectors into answers, less what is tied to the embedding
    total: int  # all of it
    attention_per_layer: int
    """One attention (the first, where heads were removed); a decoder's block that looks at an encoder has two."""
    attention_per_head: int
    """What one head works with: its slices of the four matrices and their biases, less the output's."""
    feedforward_per_layer: int  # one feed-forward
    tied_head: bool  # does the head use the token embedding's table?


def count_parameters(config: ModelConfig) -> ParameterCount:
    """Count a config's parameters by part.

    >>> from kotha.model.presets import preset
    >>> count_parameters(preset("bangla-58m")).total
    58139648
    """
    depths = {name: getattr(config, name) for name in _DEPTHS if hasattr(config, name)}
    # As few layers as show all that there are: one after the last of which heads were removed.
    enough = max((int(head.split(".")[1]) for head in config.removed_heads), default=-1) + 2
    few = {name: min(n_layers, enough) for name, n_layers in depths.items()}
    counted = first = _counted(config.replace(**few))
    for name, n_layers in few.items():
        if n_layers < depths[name]:
            another, further = _counted(config.replace(**{**few, name: n_layers + 1})), depths[name] - n_layers
            grown = {
                part: getattr(counted, part) + further * (getattr(another, part) - getattr(first, part))
                for part in (*_NAMED, "total")
            }
            counted = replace(counted, **grown)
    return counted


def _counted(config: ModelConfig) -> ParameterCount:
    model = build(config, "meta")
    parts, seen = dict.fromkeys(_NAMED, 0), set[nn.Parameter]()

    def count(module: nn.Module, name: str, part: str) -> None:
        """Add a module's own parameters to the part that it belongs to, then its children's."""
        part = {"tokens": "token_embedding", "segments": "segments"}.get(name, part)
        part = next((each for each, kinds in _PARTS.items() if isinstance(module, kinds)), part)
        for own_name, parameter in module.named_parameters(recurse=False):
            if parameter not in seen:
                parts["token_embedding" if own_name == "class_token" else part] += parameter.numel()
                seen.add(parameter)
        for child_name, child in module.named_children():
            count(child, child_name, part)

    count(model, "", "head")
    attention = next(module for module in model.modules() if isinstance(module, Attention))
    feedforward = next(module for module in model.modules() if isinstance(module, FeedForward | SwiGLU))
    query_side = _size(attention.query) + attention.output.weight.numel()
    key_side = _size(attention.key) + _size(attention.value)
    return ParameterCount(
        **parts,
        total=sum(parts.values()),
        attention_per_layer=_size(attention) - _size(attention.query_norm) - _size(attention.key_norm),
        attention_per_head=query_side // len(attention.heads) + key_side // len(attention.shares),
        feedforward_per_layer=_size(feedforward),
        tied_head=not isinstance(model, ViT | TextClassifier) and model.head.weight is model.tokens.weight,
    )


def _size(module: nn.Module) -> int:
    return sum(parameter.numel() for parameter in module.parameters())
