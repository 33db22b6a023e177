"""Layouts: another program's architectures as data, what each has that cannot be chosen, and its names of weights.

A format's ``layouts.toml`` says for each architecture which of our settings it always has, what its weights are called
and how they lie there. What a config has that a layout does not is an obstacle, and named. A bias that a layout always
has and a model lacks is none: zeros in its place say the same.
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

_ANY = 1 << 30  # tensors; these are no file's

Shape = tuple[int, ...]


class UnsupportedError(ConfigError):
    """A config that an export target has no place for; ``because`` names the settings that are in the way."""

    def __init__(self, template: str, /, because: Text) -> None:
        super().__init__(template, because=because)
        self.because = because


@dataclass(frozen=True)
class Place:
    """Where some weights of ours lie: one after the other in one of theirs, which has this shape."""

    ours: tuple[str, ...]
    shape: Shape
    turned: bool  # GPT-2's own matrices are (in, out), ours as nn.Linear's (out, in)


@dataclass(frozen=True)
class Layout:
    """One architecture of another program; the fields are those of a ``layouts.toml``."""

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
    whole_heads: bool = True  # heads share the model's width evenly, and each has its own key
    computed: str = ""
    spellings: Mapping[str, str] = field(default_factory=dict)
    copies: Mapping[str, str] = field(default_factory=dict)
    body: str = ""
    also: Sequence[str] = ()
    may_lack: Sequence[str] = ()
    classifier: Sequence[str] = ()  # the architecture that has a head for classes instead, and that head's name

    def obstacles(self, config: ModelConfig) -> list[Text]:
        """What a config has that this layout does not, each in words; empty where it fits."""
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
        """The config with every bias that this layout always has."""
        return config.replace(**dict.fromkeys(self.fills, True))

    def classifying(self) -> "Layout":
        """The same body with a head for classes beside it; its own heads for words are not there."""
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
        """By each of our names: theirs, all of ours that lie there, and how."""
        found: dict[str, tuple[str, list[str], str]] = {}
        rows = [(row.replace("*", kind), row) for row in self.weights.split("\n") for kind in ("weight", "bias")]
        for row in dict(rows):
            ours, theirs, how = (*row.split(), "", "", "")[:3]
            several = re.search(r"\w+(\|\w+)+", ours)
            names = [ours.replace(several[0], each) for each in several[0].split("|")] if several else [ours]
            found |= dict.fromkeys(names, (theirs, names, how))
        return found

    def _find(self, name: str) -> tuple[str, list[str], str]:
        """Their name for one of our weights, all of ours that lie there, and how."""
        number = re.search(r"(?<=\.)\d+(?=\.)", name)
        layer = number[0] if number else ""
        row = self._rows.get(name.replace(f".{layer}.", ".{n}.", 1) if number else name)
        if row is None:
            raise KothaError("unknown weight {name!r}", name=name[:200])
        theirs, ours, how = row
        return theirs.replace("{n}", layer), [each.replace("{n}", layer) for each in ours], how

    def name_of(self, ours: str) -> str:
        """Their name for one of our weights."""
        return self._find(ours)[0]

    def places(self, shapes: Mapping[str, Shape], config: Any) -> dict[str, Place]:
        """Each of their names, and what of ours lies there."""
        found = {}
        for name in shapes:
            theirs, ours, how = self._find(name)
            rows, *rest = sum(shapes[each][0] for each in ours), *shapes[name][1:]
            shape = {
                "turned": (*rest, rows),
                "one_row": (1, rows, *rest),
                "one_token": (1, 1, rows, *rest),
            }.get(how, (rows, *rest))
            if how == "patches":  # flat ones as a convolution's
                shape = (rows, config.n_channels, config.patch_size, config.patch_size)
            found[theirs] = Place(tuple(ours), shape, how == "turned")
        return found

    def to_theirs(self, ours: Mapping[str, Tensor], config: ModelConfig) -> dict[str, Tensor]:
        """Our weights by their names, laid out as theirs."""
        found = {}
        for name, place in self.places(shapes_of(ours.items()), config).items():
            parts = [ours[each] for each in place.ours]
            whole = torch.cat(parts) if len(parts) > 1 else parts[0]
            found[name] = (whole.mT if place.turned and whole.dim() == 2 else whole).reshape(place.shape)
        return found

    def to_ours(
        self, theirs: Mapping[str, Tensor], shapes: Mapping[str, Shape], config: ModelConfig
    ) -> dict[str, Tensor]:
        """Their weights by our names, of the shapes that ours have; those that are not there are left out."""
        found: dict[str, Tensor] = {}
        for name, place in self.places(shapes, config).items():
            if name in theirs:
                whole = theirs[name].mT if place.turned and theirs[name].dim() == 2 else theirs[name]
                rows = [shapes[each][0] for each in place.ours]
                parts = torch.split(whole.reshape(sum(rows), *shapes[place.ours[0]][1:]), rows)
                found |= zip(place.ours, parts, strict=True)
        return found

    def usual(self, written: str, known: Container[str]) -> str | None:
        """Their usual name, one of those that are known, for one met in a file; None for what need not be read."""
        name = written
        for met, usual in self.spellings.items():
            name = name.replace(met, usual)
        if re.fullmatch(self.computed, name):
            return None
        name = self.copies.get(name, name)
        return self.body + name if name not in known and self.body + name in known else name


def load_layouts(file: Path) -> list[Layout]:
    """The layouts of a ``layouts.toml``, each that can classify once more as that."""
    tables = tomllib.loads(file.read_text(encoding="utf-8"))
    found = [Layout(name=name, **table) for name, table in tables.items()]
    return [*found, *(each.classifying() for each in found if each.classifier)]


def fitting_layout(config: ModelConfig, layouts: Iterable[Layout], refusal: str) -> Layout:
    """The layout that a config fits; refused with the settings in the way of the nearest."""
    obstacles = {layout.architecture: layout.obstacles(config) for layout in layouts if layout.family == config.family}
    nearest = min(obstacles, key=lambda name: len(obstacles[name]), default=None)
    if nearest is None:
        raise UnsupportedError(refusal, because=Message("family={family!r}", family=config.family))
    if obstacles[nearest]:
        raise UnsupportedError(refusal, because=Message("{obstacles}", obstacles=obstacles[nearest]))
    return next(layout for layout in layouts if layout.architecture == nearest)


def shapes_of(weights: Iterable[tuple[str, Tensor]]) -> dict[str, Shape]:
    """The shape of each weight, by name."""
    return {name: tuple(each.shape) for name, each in weights}


def foreign_weights(model: Model, layout: Layout, dtype: torch.dtype = torch.float32) -> dict[str, Tensor]:
    """The weights by a layout's names, of one type; zeros for biases that it always has and the model lacks."""
    full, ours = layout.full(model.config), dict[str, Tensor]()
    for name, tensor in unique_weights(model).items():
        ours[name] = fitting(name, tensor, dtype)
    for name, each in shape_alone(full, _ANY).named_parameters():
        ours.setdefault(name, torch.zeros(each.shape, dtype=dtype))
    return {name: tensor.contiguous() for name, tensor in layout.to_theirs(ours, full).items()}


def fitting(name: str, tensor: Tensor, dtype: torch.dtype) -> Tensor:
    """A weight in another type; one that holds more than the type can is refused."""
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
