"""Heads by name, and which of them a config has removed. Nothing here imports torch.

A head is named by its attention and its number there: ``blocks.0.attention.3``, ``decoder.2.cross.0``. Numbers are
those of the whole model: they stay when other heads go, so that a list of removed heads can grow and a head keeps its
name for good.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping

from kotha.errors import ConfigError, nearest

# The layers of each stack, and the attentions of each of its layers.
Stacks = Mapping[str, tuple[int, tuple[str, ...]]]


def head_number(head: str) -> tuple[str, int]:
    """The attention that a head belongs to, and its number there.

    >>> head_number("blocks.0.attention.3")
    ('blocks.0.attention', 3)
    """
    found = re.fullmatch(r"(.+)\.([0-9]{1,9})", head)
    if found is None:
        raise ConfigError(
            "{name!r} is not a head; write its attention and its number, as in blocks.0.attention.3", name=head
        )
    return found[1], int(found[2])


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
    places = {name: place for place, name in enumerate(attention_names(stacks))}
    found: set[tuple[int, int]] = set()
    for head in removed:
        attention, number = head_number(head)
        if attention not in places:
            raise ConfigError(
                "there is no attention {name!r} in this model{nearest}",
                name=attention,
                nearest=nearest(attention, places),
            )
        if number >= n_heads:
            raise ConfigError(
                "{name!r} cannot be removed: {attention} has heads 0 to {last}",
                name=head,
                attention=attention,
                last=n_heads - 1,
            )
        if (places[attention], number) in found:
            raise ConfigError("{name!r} is to be removed twice; name it once", name=head)
        found.add((places[attention], number))
    names = list(places)
    for place, count in Counter(place for place, _ in found).items():
        if count == n_heads:
            raise ConfigError(
                "all {n} heads of {attention} would be removed; leave at least one", n=n_heads, attention=names[place]
            )
    return tuple(f"{names[place]}.{number}" for place, number in sorted(found))
