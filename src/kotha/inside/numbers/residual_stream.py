"""The residual stream at one glance (the studio's weave): tokens by layers, a cell is one vector.

Each cell is measured: how long its vector is, how far the layer moved it (the length of the difference over that of
what came in), and, for bodies that give words, what it would say if the model ended there (the logit lens).
"""

from dataclasses import dataclass

from torch import Tensor

from kotha.inside.hook_points import stacks
from kotha.inside.lens import Opinion, lens
from kotha.inside.numbers.ledger import Ledger
from kotha.model.vit import ViT


@dataclass(frozen=True)
class WeaveColumn:
    """One line of vectors, before the first layer or after one."""

    site: str
    layer: str | None  # None before the first
    line: str
    lengths: tuple[float, ...]
    changes: tuple[float, ...] | None
    opinions: tuple[Opinion, ...] | None


def weave(ledger: Ledger) -> list[WeaveColumn]:
    """Every column, in the order in which they work; heads that the ledger has silenced are to be silent here too."""
    model, given = ledger.model, ledger.given
    read = None if isinstance(model, ViT) else lens(model, given)
    columns = []
    for order, (name, stack) in enumerate(stacks(model).items()):
        line = list(given.lines)[order]
        sites = [f"{name}.0.residual_in", *(f"{name}.{layer}.residual_out" for layer in range(len(stack.blocks)))]
        before: Tensor | None = None
        for number, site in enumerate(sites):
            vectors = ledger[site].values.double()  # (T, C)
            changes = None if before is None else (vectors - before).norm(dim=-1) / before.norm(dim=-1)
            speaks = read is not None and read.line == line
            columns.append(
                WeaveColumn(
                    site,
                    None if number == 0 else f"{name}.{number - 1}",
                    line,
                    tuple(vectors.norm(dim=-1).tolist()),
                    None if changes is None else tuple(changes.tolist()),
                    read.opinions[number] if read is not None and speaks else None,
                )
            )
            before = vectors
    return columns
