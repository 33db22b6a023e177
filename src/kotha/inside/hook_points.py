"""Hook points: names for what can be watched in a model, from the residual stream to attention weights and logits.

One scheme for the whole family. A model has one stack, ``blocks``, or two, ``encoder`` and ``decoder``; a layer is
``blocks.0``, what happens in it ``blocks.0.attention.weights`` or ``decoder.2.cross.queries``:

==========================  ===============  =====================================================================
site                        shape            what it is
==========================  ===============  =====================================================================
``tokens``                  (B, T, C)        embedded tokens; ``tokens`` of a Seq2Seq: source, then target
``patches``                 (B, T, C)        embedded patches of an image
``positions``               (B, T, C)        tokens with their places added (a ViT's: the places alone)
``L.residual_in``           (B, T, C)        what enters a layer
``L.attention_norm``        (B, T, C)        normalised, for the attention (or after it, where norms come last)
``L.attention.queries``     (B, H, T, D)     what each position asks for, turned by its place where places turn
``L.attention.keys``        (B, n_kv, S, D)  what each position offers
``L.attention.values``      (B, n_kv, S, D)  what it gives
``L.attention.scores``      (B, H, T, S)     queries times keys, over the root of D
``L.attention.masked_scores``  (B, H, T, S)  with -inf where nobody may look
``L.attention.weights``     (B, H, T, S)     each row sums to one
``L.attention.head_outputs``  (B, H, T, D)   values, mixed by the weights
``L.attention``             (B, T, C)        what the attention adds
``L.residual_mid``          (B, T, C)        after the attention (of a decoder: before it looks at the source)
``L.cross...``              as attention     a decoder's look at the source
``L.residual_cross``        (B, T, C)        after that look
``L.feedforward_norm``      (B, T, C)        normalised, for the feed-forward (or after it)
``L.feedforward``           (B, T, C)        what the feed-forward adds
``L.residual_out``          (B, T, C)        what leaves a layer
``norm``                    (B, T, C)        after the last norm; ``encoder.norm``, ``decoder.norm`` where there are two
``logits``                  (B, T, V)        scores of every token; of a ViT, of every class
==========================  ===============  =====================================================================
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple, cast

from torch import nn

from kotha.errors import UsageError, nearest
from kotha.model.attention import Attention
from kotha.model.block import Block, Stack

# The parts of a layer, with the stream behind each; and what an attention lets be watched, the last three in the
# explicit reading alone.
AFTER = {"attention": "residual_mid", "cross": "residual_cross", "feedforward": "residual_out"}
ATTENTION_SITES = ("queries", "keys", "values", "head_outputs", "scores", "masked_scores", "weights")


class Site(NamedTuple):
    """What can be watched: what a module gives, or what enters it."""

    name: str
    module: nn.Module
    entering: bool = False


def sites(model: nn.Module, chosen: Iterable[str] | None = None) -> Iterator[Site]:
    """Every site of a model and of its chosen layers, or of all."""
    known, prefixed = layers(model), len(stacks(model)) > 1
    wanted = list(known if chosen is None else chosen)
    unknown = next((name for name in sorted(wanted) if name not in known), None)
    if unknown is not None:
        close = nearest(unknown, known)
        raise UsageError("this model has no layer {name!r}{nearest}", name=unknown, nearest=close)
    body = getattr(model, "body", model)  # a classifier has one
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
    # The stream between the parts: what the next norm is given where norms come first, what the first one gives where
    # they come last.
    first = block.norm_order == "pre"
    for part, following in pairwise(parts):
        yield Site(AFTER[part], getattr(block, f"{following if first else part}_norm"), entering=first)
    yield Site("residual_out", block)


def parts_of(block: Block) -> dict[str, nn.Module]:
    """The parts that a layer has, in the order in which they work."""
    return {part: module for part in AFTER if (module := getattr(block, part)) is not None}


def stacks(model: nn.Module) -> dict[str, Stack]:
    """The stacks of a model by name, in the order in which they work.

    >>> from kotha.model.family import build
    >>> from kotha.model.presets import preset
    >>> list(stacks(build(preset("mini"))))
    ['blocks']
    """
    found = {name.rsplit(".", 1)[-1]: module for name, module in model.named_modules() if isinstance(module, Stack)}
    return {"blocks": next(iter(found.values()))} if len(found) == 1 else found


def layers(model: nn.Module) -> dict[str, Block]:
    """Every layer by its name: ``blocks.0``, ``decoder.2``."""
    return {
        f"{stack}.{layer}": cast("Block", block)
        for stack, each in stacks(model).items()
        for layer, block in enumerate(each.blocks)
    }


def choose_layers(model: nn.Module, words: Sequence[str | int]) -> list[str] | None:
    """Layers as a user names them: ``blocks.0``, or ``0`` for that layer of every stack; none named: all."""
    if not words:
        return None
    known, found = list(layers(model)), list[str]()
    for word in map(str, words):
        fits = [name for name in known if word.isdecimal() and name.endswith(f".{word}")]
        found += fits or [word]  # a name that no layer has is refused where it is looked at
    return found


def attentions(model: nn.Module) -> dict[str, Attention]:
    """Every attention by its name: ``blocks.0.attention``, ``decoder.2.cross``."""
    parts = (
        (f"{name}.{part}", module) for name, block in layers(model).items() for part, module in parts_of(block).items()
    )
    return {name: module for name, module in parts if isinstance(module, Attention)}
