"""Hook points: names for the values that can be recorded in a model, from the residual stream to the logits.

All architectures share one naming scheme. A model has one stack, ``blocks``, or two, ``encoder`` and ``decoder``. A
layer has a name such as ``blocks.0``, and a value in a layer a name such as ``blocks.0.attention.weights`` or
``decoder.2.cross.queries``. In the table, ``L`` is the name of a layer:

==========================  ===============  =====================================================================
site                        shape            value
==========================  ===============  =====================================================================
``tokens``                  (B, T, C)        embedded tokens; a Seq2Seq records source, then target
``patches``                 (B, T, C)        embedded patches of an image
``positions``               (B, T, C)        tokens plus position embeddings (for a ViT, the latter alone)
``L.residual_in``           (B, T, C)        input of a layer
``L.attention_norm``        (B, T, C)        norm before the attention (after it in post-norm models)
``L.attention.queries``     (B, H, T, D)     queries, after rotary positions if the model has them
``L.attention.keys``        (B, n_kv, S, D)  keys, likewise
``L.attention.values``      (B, n_kv, S, D)  values
``L.attention.scores``      (B, H, T, S)     queries times keys, over √D
``L.attention.masked_scores``  (B, H, T, S)  with -inf at masked positions
``L.attention.weights``     (B, H, T, S)     softmax; each row sums to 1
``L.attention.head_outputs``  (B, H, T, D)   values, mixed by the weights
``L.attention``             (B, T, C)        output of the attention
``L.residual_mid``          (B, T, C)        after self-attention
``L.cross...``              as attention     cross-attention of a decoder
``L.residual_cross``        (B, T, C)        after cross-attention
``L.feedforward_norm``      (B, T, C)        norm before the feed-forward part (or after it)
``L.feedforward``           (B, T, C)        output of the feed-forward part
``L.residual_out``          (B, T, C)        output of a layer
``norm``                    (B, T, C)        last norm; with two stacks ``encoder.norm`` and ``decoder.norm``
``logits``                  (B, T, V)        scores of all tokens (for a ViT, of all classes)
==========================  ===============  =====================================================================
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple, cast

from torch import nn

from kotha.errors import UsageError, nearest
from kotha.model.attention import Attention
from kotha.model.block import Block, Stack

# The residual site after each part of a layer, and the sites in an attention module. The last three are not computed by
# the fused implementation.
AFTER = {"attention": "residual_mid", "cross": "residual_cross", "feedforward": "residual_out"}
ATTENTION_SITES = ("queries", "keys", "values", "head_outputs", "scores", "masked_scores", "weights")


class Site(NamedTuple):
    """A hook point: the output of a module, or its input."""

    name: str
    module: nn.Module
    entering: bool = False


def sites(model: nn.Module, chosen: Iterable[str] | None = None) -> Iterator[Site]:
    """Yield every site in a model, limited to the chosen layers if given."""
    known, prefixed = layers(model), len(stacks(model)) > 1
    wanted = list(known if chosen is None else chosen)
    unknown = next((name for name in sorted(wanted) if name not in known), None)
    if unknown is not None:
        close = nearest(unknown, known)
        raise UsageError("this model has no layer {name!r}{nearest}", name=unknown, nearest=close)
    body = getattr(model, "body", model)  # a classifier wraps its base model
    ends = [(name, getattr(body, name, None)) for name in ("tokens", "patches", "positions")]
    yield from (Site(name, module) for name, module in ends if isinstance(module, nn.Module))
    for name, block in known.items():
        if name in wanted:
            yield from (site._replace(name=f"{name}.{site.name}") for site in _layer_sites(block))
    yield from (Site(f"{stack}.norm" if prefixed else "norm", each.norm) for stack, each in stacks(model).items())
    if isinstance(head := getattr(model, "head", None), nn.Module):
        yield Site("logits", head)


def _layer_sites(block: Block) -> Iterator[Site]:
    yield Site("residual_in", block, entering=True)
    parts = parts_of(block)
    for part, module in parts.items():
        yield Site(part, module)
        yield Site(f"{part}_norm", getattr(block, f"{part}_norm"))
        if isinstance(module, Attention):
            yield from (Site(f"{part}.{site}", getattr(module, site)) for site in ATTENTION_SITES)
    # The residual stream between parts: the input of the next norm (pre-norm) or the output of this one (post-norm).
    first = block.norm_order == "pre"
    for part, following in pairwise(parts):
        yield Site(AFTER[part], getattr(block, f"{following if first else part}_norm"), entering=first)
    yield Site("residual_out", block)


def parts_of(block: Block) -> dict[str, nn.Module]:
    """Return the parts of a layer in the order of computation."""
    return {part: module for part in AFTER if (module := getattr(block, part)) is not None}


def stacks(model: nn.Module) -> dict[str, Stack]:
    """Return a model's stacks by name, in the order of computation.

    >>> from kotha.model.family import build
    >>> from kotha.model.presets import preset
    >>> list(stacks(build(preset("mini"))))
    ['blocks']
    """
    found = {name.rsplit(".", 1)[-1]: module for name, module in model.named_modules() if isinstance(module, Stack)}
    return {"blocks": next(iter(found.values()))} if len(found) == 1 else found


def layers(model: nn.Module) -> dict[str, Block]:
    """Return every layer by name: ``blocks.0``, ``decoder.2``."""
    return {
        f"{stack}.{layer}": cast("Block", block)
        for stack, each in stacks(model).items()
        for layer, block in enumerate(each.blocks)
    }


def choose_layers(model: nn.Module, words: Sequence[str | int]) -> list[str] | None:
    """Resolve layer names such as ``blocks.0``, or ``0`` for that layer in every stack.

    If no names are given, return None, which means all layers.
    """
    if not words:
        return None
    known, found = list(layers(model)), list[str]()
    for word in map(str, words):
        fits = [name for name in known if word.isdecimal() and name.endswith(f".{word}")]
        found += fits or [word]  # unknown names raise later, in sites()
    return found


def attentions(model: nn.Module) -> dict[str, Attention]:
    """Return every attention module by name: ``blocks.0.attention``, ``decoder.2.cross``."""
    parts = (
        (f"{name}.{part}", module) for name, block in layers(model).items() for part, module in parts_of(block).items()
    )
    return {name: module for name, module in parts if isinstance(module, Attention)}
