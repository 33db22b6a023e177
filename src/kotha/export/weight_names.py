"""Layouts: the architectures of other programs, described by their fixed settings and weight names.

The ``layouts.toml`` of a format lists for each architecture the settings that it requires, the names of its weights and
how they are stored. Settings in a config that differ from these are unsupported, and error messages list them. A bias
that a layout always has but a model lacks is supported, because it can be written as zeros.
"""

import re
import tomllib
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from kotha.artifacts.model_folder import shape_alone, unique_weights
from kotha.errors import ConfigError, KothaError
from kotha.i18n.message import Message, Text
from kotha.model.config import ModelConfig
from kotha.model.family import Model

_ANY = 1 << 30  # number of tensors: no limit, because no file is involved

Shape = tuple[int, ...]


class UnsupportedError(ConfigError):
    """A config that an export target does not support; ``because`` names the incompatible settings."""

    def __init__(self, template: str, /, because: Text) -> None:
        super().__init__(template, because=because)
        self.because = because


@dataclass(frozen=True)
class ReferenceWeight:
    """A weight in the other program that contains one or several of Kotha's weights, concatenated."""

    ours: tuple[str, ...]
    shape: Shape
    transposed: bool  # transposed: GPT-2's matrices are (in, out), nn.Linear's (out, in)


@dataclass(frozen=True)
class Layout:
    """An architecture in another program; its fields are the keys in ``layouts.toml``."""

    name: str
    title: str
    architecture: str
    family: str
    weights: str
    always: Mapping[str, Sequence[Any]]
    settings: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    fills: Sequence[str] = ()
    fixed: Mapping[str, Any] = field(default_factory=dict)
    twins: Mapping[str, str] = field(default_factory=dict)
    whole_heads: bool = True  # d_head is d_model / n_heads, and each head has its own key
    computed: str = ""
    spellings: Mapping[str, str] = field(default_factory=dict)
    copies: Mapping[str, str] = field(default_factory=dict)
    body: str = ""
    also: Sequence[str] = ()
    may_lack: Sequence[str] = ()
    classifier: Sequence[str] = ()  # the corresponding classifier architecture, and the name of its head

    def obstacles(self, config: ModelConfig) -> list[Text]:
        """Return a message for each setting that this layout does not support; empty if the config fits."""
        wanted = dict(self.always)
        if self.whole_heads:
            wanted |= {"n_kv_heads": [config.n_heads], "d_head": [config.d_model / config.n_heads]}
        found: list[Text] = [
            Message(
                "{name}={value}: {title} requires {wanted}",
                name=name,
                value=_shown(getattr(config, name)),
                title=self.title,
                wanted=" or ".join(map(_shown, allowed)),
            )
            for name, allowed in wanted.items()
            if getattr(config, name) not in allowed
        ]
        if config.removed_heads:
            found.append(
                Message(
                    "removed_heads: {title} does not support removed heads; export the model before pruning",
                    title=self.title,
                )
            )
        return found

    def full(self, config: ModelConfig) -> ModelConfig:
        """Return the config with all biases that this layout always has."""
        return config.replace(**dict.fromkeys(self.fills, True))

    def classifying(self) -> "Layout":
        """Return the layout of a classifier built on this base model, without the base model's own heads."""
        architecture, head = self.classifier
        rows = [f"body.{row}" for row in self.weights.split("\n") if row and not re.search(r" (lm_head|cls)\.", row)]
        return replace(
            self,
            architecture=architecture,
            family=f"{self.family}-classifier",
            weights="\n".join([*rows, f"head.*  {head}"]),
            always={name: allowed for name, allowed in self.always.items() if name != "head_bias"},
            copies={},
        )

    # -- weights ----------------------------------------------------------------------------------------------------

    @cached_property
    def _rows(self) -> dict[str, tuple[str, list[str], str]]:
        """Return for each Kotha name: the other name, all of Kotha's weights stored in it, and the kind of storage."""
        found: dict[str, tuple[str, list[str], str]] = {}
        rows = [(row.replace("*", kind), row) for row in self.weights.split("\n") for kind in ("weight", "bias")]
        for row in dict(rows):
            ours, theirs, how = (*row.split(), "", "", "")[:3]
            several = re.search(r"\w+(\|\w+)+", ours)
            names = [ours.replace(several[0], each) for each in several[0].split("|")] if several else [ours]
            found |= dict.fromkeys(names, (theirs, names, how))
        return found

    def _find(self, name: str) -> tuple[str, list[str], str]:
        """Return the other name of a Kotha weight, all Kotha weights stored under it, and the kind of storage."""
        number = re.search(r"(?<=\.)\d+(?=\.)", name)
        layer = number[0] if number else ""
        row = self._rows.get(name.replace(f".{layer}.", ".{n}.", 1) if number else name)
        if row is None:
            raise KothaError("unknown weight {name!r}", name=name[:200])
        theirs, ours, how = row
        return theirs.replace("{n}", layer), [each.replace("{n}", layer) for each in ours], how

    def name_of(self, ours: str) -> str:
        """Return the other program's name for one of Kotha's weights."""
        return self._find(ours)[0]

    def reference_weights(self, shapes: Mapping[str, Shape], config: Any) -> dict[str, ReferenceWeight]:
        """Return, for each of the other program's weights, the Kotha weights that it contains."""
        found = {}
        for name in shapes:
            theirs, ours, how = self._find(name)
            rows, *rest = sum(shapes[each][0] for each in ours), *shapes[name][1:]
            shape = {
                "transposed": (*rest, rows),
                "one_row": (1, rows, *rest),
                "one_token": (1, 1, rows, *rest),
            }.get(how, (rows, *rest))
            if how == "patches":  # a flat projection becomes a convolution
                shape = (rows, config.n_channels, config.patch_size, config.patch_size)
            found[theirs] = ReferenceWeight(tuple(ours), shape, how == "transposed")
        return found

    def to_reference_layout(self, ours: Mapping[str, Tensor], config: ModelConfig) -> dict[str, Tensor]:
        """Convert Kotha's weights to the other program's names and shapes."""
        found = {}
        for name, weight in self.reference_weights(shapes_of(ours.items()), config).items():
            parts = [ours[each] for each in weight.ours]
            joined = torch.cat(parts) if len(parts) > 1 else parts[0]
            found[name] = (joined.mT if weight.transposed and joined.dim() == 2 else joined).reshape(weight.shape)
        return found

    def from_reference_layout(
        self, theirs: Mapping[str, Tensor], shapes: Mapping[str, Shape], config: ModelConfig
    ) -> dict[str, Tensor]:
        """Convert the other program's weights to Kotha's names and shapes; missing weights are skipped."""
        found: dict[str, Tensor] = {}
        for name, weight in self.reference_weights(shapes, config).items():
            if name in theirs:
                joined = theirs[name].mT if weight.transposed and theirs[name].dim() == 2 else theirs[name]
                rows = [shapes[each][0] for each in weight.ours]
                parts = torch.split(joined.reshape(sum(rows), *shapes[weight.ours[0]][1:]), rows)
                found |= zip(weight.ours, parts, strict=True)
        return found

    def usual(self, written: str, known: Container[str]) -> str | None:
        """Return the canonical name for a name found in a file, or None for a weight that is not needed."""
        name = written
        for variant, usual in self.spellings.items():
            name = name.replace(variant, usual)
        if re.fullmatch(self.computed, name):
            return None
        name = self.copies.get(name, name)
        return self.body + name if name not in known and self.body + name in known else name


def load_layouts(file: Path) -> list[Layout]:
    """Return the layouts in a ``layouts.toml``, and those of their classifiers."""
    tables = tomllib.loads(file.read_text(encoding="utf-8"))
    found = [Layout(name=name, **table) for name, table in tables.items()]
    return [*found, *(each.classifying() for each in found if each.classifier)]


def fitting_layout(config: ModelConfig, layouts: Iterable[Layout], refusal: str) -> Layout:
    """Return the layout that a config fits; otherwise the error lists what the closest layout does not support."""
    obstacles = {layout.architecture: layout.obstacles(config) for layout in layouts if layout.family == config.family}
    nearest = min(obstacles, key=lambda name: len(obstacles[name]), default=None)
    if nearest is None:
        raise UnsupportedError(refusal, because=Message("family={family!r}", family=config.family))
    if obstacles[nearest]:
        raise UnsupportedError(refusal, because=Message("{obstacles}", obstacles=obstacles[nearest]))
    return next(layout for layout in layouts if layout.architecture == nearest)


def shapes_of(weights: Iterable[tuple[str, Tensor]]) -> dict[str, Shape]:
    """Return the shape of each weight, by name."""
    return {name: tuple(each.shape) for name, each in weights}


def foreign_weights(model: Model, layout: Layout, dtype: torch.dtype = torch.float32) -> dict[str, Tensor]:
    """Return the weights by a layout's names, in one type; biases that the model lacks are zeros."""
    full, ours = layout.full(model.config), dict[str, Tensor]()
    for name, tensor in unique_weights(model).items():
        ours[name] = fitting(name, tensor, dtype)
    for name, each in shape_alone(full, _ANY).named_parameters():
        ours.setdefault(name, torch.zeros(each.shape, dtype=dtype))
    return {name: tensor.contiguous() for name, tensor in layout.to_reference_layout(ours, full).items()}


def fitting(name: str, tensor: Tensor, dtype: torch.dtype) -> Tensor:
    """Convert a weight to another type; raise an error on overflow."""
    narrow = tensor.to(dtype)
    if not torch.isfinite(narrow).all() and torch.isfinite(tensor).all():
        raise KothaError(
            "{name} contains {largest:,.0f}, too large for {dtype}; choose a wider weight type",
            name=name,
            largest=float(tensor.abs().max()),
            dtype=str(dtype).removeprefix("torch."),
        )
    return narrow


def _shown(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else f"{value:g}" if isinstance(value, float) else str(value)
