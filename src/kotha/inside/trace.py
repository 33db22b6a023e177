"""Trace: record activations at the hook points of any model in one pass.

    with trace(model) as seen:
        model(tokens)
    seen["blocks.0.attention.weights"]          # (B, H, T, S)

Forward hooks exist only inside the ``with`` block. The hooks change neither the weights nor the outputs, not even by
rounding, and an untraced model has no overhead. A fused attention kernel does not expose its scores, so for the
requested layers the explicit implementation computes them again from the same queries and keys. ``hook_points.py``
lists the names.

``record`` traces one pass and returns the shape and statistics of each value, or the arrays. Masked positions are -inf
in ``masked_scores``; the statistics exclude them and report their number.

Values cannot be changed, and compiled models cannot be traced: trace the model that was passed to ``torch.compile``.
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

_RECOMPUTED = ("scores", "masked_scores", "weights")


class Trace:
    """The values recorded at each hook point, pass by pass."""

    def __init__(self, known: Sequence[str], hook_points: Iterable[str] | None) -> None:
        self._wanted = None if hook_points is None else tuple(hook_points)
        self._seen: dict[str, list[Tensor]] = {}
        self._known = [name for name in known if self.wants(name)]
        for pattern in self._wanted or ():
            if not any(fnmatchcase(name, pattern) for name in self._known):
                # Suggest each hook point of a layer once, as a pattern for all layers.
                endings = {f"*.{name.rpartition('.')[2]}" if "." in name else name for name in known}
                close = nearest(pattern, endings)
                raise UsageError("unknown hook point {name!r}{nearest}", name=pattern, nearest=close)

    def wants(self, name: str) -> bool:
        """Return whether a hook point is recorded."""
        return self._wanted is None or any(fnmatchcase(name, pattern) for pattern in self._wanted)

    def record(self, name: str, value: Tensor) -> None:
        """Store a copy of the value at a hook point."""
        self._seen.setdefault(name, []).append(value.detach().clone())

    def __getitem__(self, name: str) -> Tensor:
        """Return the value at a hook point in the most recent pass."""
        return self.passes(name)[-1]

    def passes(self, name: str) -> list[Tensor]:
        """Return the values at a hook point, one for each time it ran: two per pass for a Seq2Seq's token embedding."""
        if name in self._seen:
            return self._seen[name]
        if name in self._known:
            raise UsageError(
                "nothing has been recorded at {name} yet; call the model inside the `with` block", name=name
            )
        raise UsageError("{name!r} was not recorded{nearest}", name=name, nearest=nearest(name, self._known))

    def __repr__(self) -> str:
        return f"Trace({len(self._seen)} hook points recorded)"

    def __contains__(self, name: str) -> bool:
        return name in self._seen

    def __iter__(self) -> Iterator[str]:
        """Iterate over the recorded hook points, in the order in which they were first recorded."""
        return iter(self._seen)


@contextmanager
def trace(
    model: nn.Module,
    *,
    layers: Iterable[str] | None = None,
    hook_points: Iterable[str] | None = None,
    more: Iterable[Site] = (),
) -> Iterator[Trace]:
    """Record named activations for every pass inside the ``with`` block.

    ``layers`` are names such as ``blocks.0`` (default: all layers), ``hook_points`` are names or patterns such as
    ``*.attention.weights`` (default: all), and ``more`` lists additional hook points.
    """
    chosen = None if layers is None else list(layers)
    known = [*sites(model, chosen), *more]
    seen = Trace([site.name for site in known], hook_points)
    with ExitStack() as hooks:
        for site in known:
            if seen.wants(site.name):
                _watch(site, seen, hooks)
        for name, attention in attentions(model).items():
            watched = chosen is None or name.rpartition(".")[0] in chosen
            if watched and any(seen.wants(f"{name}.{place}") for place in _RECOMPUTED):
                _recompute(attention, hooks)
        yield seen


def _watch(site: Site, seen: Trace, hooks: ExitStack) -> None:
    if site.entering:
        hook = site.module.register_forward_pre_hook(lambda _, inputs: seen.record(site.name, inputs[0]))
    else:
        hook = site.module.register_forward_hook(lambda _, _inputs, output: seen.record(site.name, output))
    hooks.enter_context(hook)


def _recompute(attention: Attention, hooks: ExitStack) -> None:
    """Compute the scores and weights that a fused kernel does not expose.

    Hooks capture its queries and keys; after the kernel has run, the explicit implementation computes the rest, and the
    hooks on its modules record it.
    """
    captured: dict[str, Tensor] = {}

    def capture(place: str, _module: nn.Module, _inputs: Any, output: Tensor) -> None:
        captured[place] = output

    def recompute(_module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any], _output: Tensor) -> None:
        q, k = captured.pop("queries"), captured.pop("keys")
        if attention.implementation == "fused":
            mask = kwargs.get("mask", args[1] if len(args) > 1 else None)
            with torch.no_grad():
                attention.weigh(q, k, mask)

    for place in ("queries", "keys"):
        hooks.enter_context(getattr(attention, place).register_forward_hook(partial(capture, place)))
    hooks.enter_context(attention.register_forward_hook(recompute, with_kwargs=True))


@dataclass(frozen=True)
class Activation:
    """The value at one hook point, without the batch dimension."""

    hook_point: str
    values: Tensor

    def to_dict(self) -> dict[str, Any]:
        """Return shape and statistics for JSON; statistics are None if no value is finite."""
        values = self.values.double()
        finite = values[values.isfinite()]
        find: dict[str, Callable[[Tensor], Tensor]]
        find = {"mean": Tensor.mean, "std": partial(Tensor.std, correction=0), "min": Tensor.min, "max": Tensor.max}
        figures = {name: float(figure(finite)) if finite.numel() else None for name, figure in find.items()}
        hidden = values.numel() - finite.numel()
        return {"hook_point": self.hook_point, "shape": list(values.shape), **figures, "hidden": hidden}


def record(
    model: Model, given: ModelInput, layers: Sequence[str] | None = None, hook_points: Sequence[str] | None = None
) -> list[Activation]:
    """Record every hook point in one pass; one that runs twice (a Seq2Seq's tokens) becomes source and target."""
    with trace(model, layers=layers, hook_points=hook_points) as seen:
        given.pass_through(model)
    found = []
    for hook_point in seen:
        passes = seen.passes(hook_point)
        names = [hook_point] if len(passes) == 1 else [f"{hook_point}.{line}" for line in given.lines]
        for name, values in zip(names, passes, strict=True):
            # Drop the batch dimension, which a ViT's position embeddings do not have.
            found.append(Activation(name, values[0].cpu() if values.ndim > 2 or len(values) == 1 else values.cpu()))
    return found


def write_arrays(path: Path, found: Sequence[Activation]) -> None:
    """Write the arrays to a NumPy .npz file, atomically, under the names of their hook points."""
    arrays: dict[str, Any] = {each.hook_point: each.values.float().numpy() for each in found}
    with atomic_file(path, ".npz") as file:
        np.savez_compressed(file.buffer, **arrays)
