"""Trace: record activations at named sites of any model, in one pass, by forward hooks.

    with trace(model) as seen:
        model(tokens)
    seen["blocks.0.attention.weights"]          # (B, H, T, S)

Forward hooks come and go with the ``with``; the model, its weights and its answers stay as they are, to the last bit,
and a model that is not traced pays nothing. A fused attention never builds its scores, so for the layers looked at they
are computed separately from the same queries and keys, by the code of the explicit implementation. ``hook_points.py``
lists the names.

``record`` traces one pass of an input: each place with its shape and figures, or written out as arrays. What a mask
hides is -inf in ``masked_scores``; figures leave it out and say how much it was.

What it does not do: change what flows, or look into a compiled model; trace the one that was given to
``torch.compile``.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from kotha.errors import UsageError, nearest
from kotha.inside.hook_points import Site, attentions, sites
from kotha.inside.inputs import ModelInput
from kotha.model.attention import Attention
from kotha.model.family import Model
from kotha.storage.atomic import atomic_file

_WORKED_OUT = ("scores", "masked_scores", "weights")


class Trace:
    """What was seen at each place, pass after pass."""

    def __init__(self, known: Sequence[str], places: Iterable[str] | None) -> None:
        self._wanted = None if places is None else tuple(places)
        self._seen: dict[str, list[Tensor]] = {}
        self._known = [name for name in known if self.wants(name)]
        for pattern in self._wanted or ():
            if not any(fnmatchcase(name, pattern) for name in self._known):
                # The places of a layer once, as patterns for all layers.
                endings = {f"*.{name.rpartition('.')[2]}" if "." in name else name for name in known}
                close = nearest(pattern, endings)
                raise UsageError("there is no place {name!r} to look at{nearest}", name=pattern, nearest=close)

    def wants(self, name: str) -> bool:
        """Whether a place is recorded."""
        return self._wanted is None or any(fnmatchcase(name, pattern) for pattern in self._wanted)

    def record(self, name: str, value: Tensor) -> None:
        """Keep a copy of what was seen at a place."""
        self._seen.setdefault(name, []).append(value.detach().clone())

    def __getitem__(self, name: str) -> Tensor:
        """What the last pass showed at a place."""
        return self.passes(name)[-1]

    def passes(self, name: str) -> list[Tensor]:
        """What each pass showed at a place, first to last; a Seq2Seq passes its token embedding twice."""
        if name in self._seen:
            return self._seen[name]
        if name in self._known:
            raise UsageError("nothing has passed {name} yet; call the model inside the `with`", name=name)
        raise UsageError("{name!r} was not traced{nearest}", name=name, nearest=nearest(name, self._known))

    def __repr__(self) -> str:
        return f"Trace({len(self._seen)} places seen)"

    def __contains__(self, name: str) -> bool:
        return name in self._seen

    def __iter__(self) -> Iterator[str]:
        """The places where something was seen, in the order of their first sight."""
        return iter(self._seen)


@contextmanager
def trace(
    model: nn.Module,
    *,
    layers: Iterable[str] | None = None,
    places: Iterable[str] | None = None,
    more: Iterable[Site] = (),
) -> Iterator[Trace]:
    """Record named activations of every pass inside the ``with``.

    ``layers`` are names such as ``blocks.0`` (all, if left out), ``places`` names or patterns such as
    ``*.attention.weights``; ``more`` are sites besides those that every model names.
    """
    chosen = None if layers is None else list(layers)
    known = [*sites(model, chosen), *more]
    seen = Trace([site.name for site in known], places)
    with ExitStack() as hooks:
        for site in known:
            if seen.wants(site.name):
                _watch(site, seen, hooks)
        for name, attention in attentions(model).items():
            watched = chosen is None or name.rpartition(".")[0] in chosen
            if watched and any(seen.wants(f"{name}.{place}") for place in _WORKED_OUT):
                _work_out(attention, hooks)
        yield seen


def _watch(site: Site, seen: Trace, hooks: ExitStack) -> None:
    if site.entering:
        hook = site.module.register_forward_pre_hook(lambda _, inputs: seen.record(site.name, inputs[0]))
    else:
        hook = site.module.register_forward_hook(lambda _, _inputs, output: seen.record(site.name, output))
    hooks.enter_context(hook)


def _work_out(attention: Attention, hooks: ExitStack) -> None:
    """The fused kernel says nothing on its way. Its queries and keys are caught as they pass, and when it has
    answered, the explicit lines run over them; other hooks see what they make.
    """
    caught: dict[str, Tensor] = {}

    def catch(place: str, _module: nn.Module, _inputs: Any, output: Tensor) -> None:
        caught[place] = output

    def work_out(_module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any], _output: Tensor) -> None:
        q, k = caught.pop("queries"), caught.pop("keys")
        if attention.implementation == "fused":
            mask = kwargs.get("mask", args[1] if len(args) > 1 else None)
            with torch.no_grad():
                attention.weigh(q, k, mask)

    for place in ("queries", "keys"):
        hooks.enter_context(getattr(attention, place).register_forward_hook(partial(catch, place)))
    hooks.enter_context(attention.register_forward_hook(work_out, with_kwargs=True))


@dataclass(frozen=True)
class Seen:
    """What one place showed; the batch of one is left out."""

    place: str
    values: Tensor

    def to_dict(self) -> dict[str, Any]:
        """Shape and figures, ready for JSON; None where nothing is finite."""
        values = self.values.double()
        finite = values[values.isfinite()]
        find: dict[str, Callable[[Tensor], Tensor]]
        find = {"mean": Tensor.mean, "std": partial(Tensor.std, correction=0), "min": Tensor.min, "max": Tensor.max}
        figures = {name: float(figure(finite)) if finite.numel() else None for name, figure in find.items()}
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
        for name, values in zip(names, passes, strict=True):
            # Without the batch of one; a ViT's places have none.
            found.append(Seen(name, values[0].cpu() if values.ndim > 2 or len(values) == 1 else values.cpu()))
    return found


def write_arrays(path: Path, found: Sequence[Seen]) -> None:
    """Write the arrays by place, as NumPy's .npz; whole or not at all."""
    arrays: dict[str, Any] = {each.place: each.values.float().numpy() for each in found}
    with atomic_file(path, ".npz") as file:
        np.savez_compressed(file.buffer, **arrays)
