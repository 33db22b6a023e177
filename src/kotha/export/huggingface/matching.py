"""Which weight of a folder is which of ours, decided before any is read.

The config says what must be there; every name, shape and type of the files is held against that. A weight that two
names share may come once or twice, but then with the same numbers.
"""

from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

from kotha.bundle import DTYPES, first_names, shape_alone
from kotha.errors import KothaError
from kotha.export.huggingface.layouts import Layout
from kotha.export.huggingface.weight_files import FoundWeight
from kotha.model.config import ModelConfig

# What a BERT for masked words alone does not have; zeros there say "no opinion".
_MAY_LACK = {"bert": ("bert.pooler.", "cls.seq_relationship.")}


@dataclass(frozen=True)
class Matched:
    """The weights of a folder by their usual names."""

    chosen: dict[str, FoundWeight]
    copies: list[tuple[str, FoundWeight]]
    """What comes twice, with the usual name of the first."""
    absent: dict[str, tuple[int, ...]]
    """What may be absent and is, with its shape."""


def match(folder: Path, layout: Layout, config: ModelConfig, found: list[FoundWeight]) -> Matched:
    """Find the place of every weight; what has none, and a place without one, is refused."""
    shapes, shared = _expected(folder, layout, config, len(found))
    chosen: dict[str, FoundWeight] = {}
    again: list[tuple[str, FoundWeight]] = []
    for weight in found:
        name = layout.weights.usual(weight.name)
        if name is None:
            continue
        _check(weight, name, shapes)
        if shared.get(name, name) in chosen:
            again.append((shared.get(name, name), weight))
        else:
            chosen[shared.get(name, name)] = weight
    absent = {name: shape for name, shape in shapes.items() if name not in chosen and name not in shared}
    for name in absent:
        if not name.startswith(_MAY_LACK.get(layout.model_type, ())):
            raise KothaError(f"{folder} lacks {name}, which its config asks for")
    return Matched(chosen, again, absent)


def read(matched: Matched) -> tuple[dict[str, Tensor], bool]:
    """The weights themselves, all of one type; and whether several had to be widened to one."""
    theirs = {name: weight.read() for name, weight in matched.chosen.items()}
    for name, weight in matched.copies:
        if not torch.equal(theirs[name], weight.read()):
            first = matched.chosen[name].name
            raise KothaError(
                f"{weight.file}: {weight.name} differs from {first}, and the config says that they are one"
            )
    dtypes = {tensor.dtype for tensor in theirs.values()}
    several = len(dtypes) > 1
    widest = torch.float64 if torch.float64 in dtypes else torch.float32
    dtype = widest if several else dtypes.pop()
    blank = {name: torch.zeros(shape, dtype=dtype) for name, shape in matched.absent.items()}
    return {**{name: tensor.to(dtype) for name, tensor in theirs.items()}, **blank}, several


def _expected(
    folder: Path, layout: Layout, config: ModelConfig, n_found: int
) -> tuple[dict[str, tuple[int, ...]], dict[str, str]]:
    """Every usual name with its shape; and names of what is stored under another, with that."""
    try:
        model = shape_alone(config, n_found)
    except KothaError as error:
        raise KothaError(f"{folder}: {error} in its files") from error
    ours = {name: tuple(each.shape) for name, each in model.named_parameters(remove_duplicate=False)}
    stored = {name: first for name, first in first_names(model).items() if name != first}
    shared = {layout.weights.name_of(name): layout.weights.name_of(first) for name, first in stored.items()}
    return layout.weights.shapes(ours, config), shared


def _check(weight: FoundWeight, name: str, shapes: dict[str, tuple[int, ...]]) -> None:
    if name not in shapes:
        raise KothaError(f"{weight.file} has {weight.name[:200]}, which its config has no place for")
    if weight.shape != shapes[name]:
        asked = list(shapes[name])
        raise KothaError(f"{weight.file}: {weight.name} has shape {list(weight.shape)}, its config asks for {asked}")
    if weight.dtype not in DTYPES:
        raise KothaError(f"{weight.file}: {weight.name} is {weight.dtype}; weights of {', '.join(DTYPES)} can be read")


def surplus(ours: dict[str, Tensor], config: ModelConfig) -> list[str]:
    """Which weights a config has no place for."""
    places = first_names(shape_alone(config, len(ours)))
    return [name for name in ours if name not in places]
