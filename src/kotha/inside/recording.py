"""A recording: one pass traced, each place with its shape and figures, or written out as arrays.

What a mask hides is -inf in ``masked_scores``; figures leave it out and say how much it was.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from torch import Tensor

from kotha.files import whole_file
from kotha.inside.inputs import ModelInput
from kotha.inside.trace import trace
from kotha.model.family import Model


@dataclass(frozen=True)
class Seen:
    """What one place showed; the batch of one is left out."""

    place: str
    values: Tensor

    def to_dict(self) -> dict[str, Any]:
        """Shape and figures, ready for JSON; None where nothing is finite."""
        values = self.values.double()
        finite = values[values.isfinite()]
        figures: dict[str, float | None] = dict.fromkeys(("mean", "std", "min", "max"))
        if finite.numel():
            found = (finite.mean(), finite.std(correction=0), finite.min(), finite.max())
            figures = dict(zip(figures, map(float, found), strict=True))
        hidden = values.numel() - finite.numel()
        return {"place": self.place, "shape": list(values.shape), **figures, "hidden": hidden}


def record(
    model: Model, given: ModelInput, layers: Sequence[str] | None = None, places: Sequence[str] | None = None
) -> list[Seen]:
    """Every place of one pass; where a pass goes by twice (a Seq2Seq's tokens), source and target are told apart."""
    with trace(model, layers=layers, places=places) as seen:
        given.pass_through(model)
    found = []
    for place in seen:
        passes = seen.passes(place)
        names = [place] if len(passes) == 1 else [f"{place}.{line}" for line in given.lines]
        found += [Seen(name, _alone(values)) for name, values in zip(names, passes, strict=True)]
    return found


def write_arrays(path: Path, found: Sequence[Seen]) -> None:
    """Write the arrays by place, as NumPy's .npz; whole or not at all."""
    arrays: dict[str, Any] = {each.place: each.values.float().numpy() for each in found}
    with whole_file(path) as file:
        np.savez_compressed(file.buffer, **arrays)


def _alone(values: Tensor) -> Tensor:
    """Without the batch of one; a ViT's places have none."""
    values = values.cpu()
    return values[0] if values.ndim > 2 or values.shape[0] == 1 else values
