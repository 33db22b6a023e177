"""Heads by name, and which of them a config has removed. Nothing here imports torch.

A head is named by its attention and its number there: ``blocks.0.attention.3``, ``decoder.2.cross.0``. Numbers are
those of the whole model: they stay when other heads go, so that a list of removed heads can grow and a head keeps its
name for good.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice

from kotha.errors import ConfigError, nearest

# The layers of each stack, and the attentions of each of its layers.
Stacks = Mapping[str, tuple[int, tuple[str, ...]]]
_MOST_SUGGESTED = 100
_LONGEST_NUMBER = 10


def head_number(head: str) -> tuple[str, int]:
    """The attention that a head belongs to, and its number there.

    >>> head_number("blocks.0.attention.3")
    ('blocks.0.attention', 3)
    """
    attention, _, number = head.rpartition(".")
    if not attention or not _is_number(number):
        raise ConfigError(
            "{name!r} is not a head; write its attention and its number, as in blocks.0.attention.3", name=head
        )
    return attention, int(number)


def attention_names(stacks: Stacks) -> Iterator[str]:
    """Every attention of a model, first to last.

    >>> list(attention_names({"decoder": (2, ("attention", "cross"))}))
    ['decoder.0.attention', 'decoder.0.cross', 'decoder.1.attention', 'decoder.1.cross']
    """
    return (f"{stack}.{layer}.{part}" for stack, (n, parts) in stacks.items() for layer in range(n) for part in parts)


def in_order(removed: Iterable[str], stacks: Stacks, n_heads: int) -> tuple[str, ...]:
    """Names of removed heads, checked and in the model's own order; every attention keeps at least one.

    >>> in_order(["blocks.1.attention.0", "blocks.0.attention.2"], {"blocks": (2, ("attention",))}, n_heads=4)
    ('blocks.0.attention.2', 'blocks.1.attention.0')
    """
    found: dict[tuple[int, ...], str] = {}  # each head by its place in the model
    for head in removed:
        attention, number = head_number(head)
        place = (*_place(attention, stacks), number)
        if number >= n_heads:
            raise ConfigError(
                "{name!r} cannot be removed: {attention} has heads 0 to {last}",
                name=head,
                attention=attention,
                last=n_heads - 1,
            )
        if place in found:
            raise ConfigError("{name!r} is to be removed twice; name it once", name=head)
        found[place] = f"{attention}.{number}"
    for attention, count in Counter(head.rpartition(".")[0] for head in found.values()).items():
        if count == n_heads:
            raise ConfigError(
                "all {n} heads of {attention} would be removed; leave at least one",
                n=n_heads,
                attention=attention,
            )
    return tuple(found[place] for place in sorted(found))


def _place(attention: str, stacks: Stacks) -> tuple[int, int, int]:
    """Where an attention stands: its stack, its layer there, and its part of the layer."""
    stack, layer, part = (*attention.split("."), "", "", "")[:3]
    n_layers, parts = stacks.get(stack, (0, ()))
    if _is_number(layer) and int(layer) < n_layers and part in parts:
        place = list(stacks).index(stack), int(layer), parts.index(part)
        if attention == f"{stack}.{int(layer)}.{part}":  # no other spelling, and nothing behind it
            return place
    some = islice(attention_names(stacks), _MOST_SUGGESTED)  # a config may claim any number of layers
    raise ConfigError(
        "there is no attention {name!r} in this model{nearest}",
        name=attention,
        nearest=nearest(attention, some),
    )


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) < _LONGEST_NUMBER
