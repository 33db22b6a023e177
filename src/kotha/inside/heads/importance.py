"""How much a head matters, asked in two ways (ablation, and a gradient by its gate), both in nats.

    with silence(model, ["blocks.0.attention.3"]):
        model(tokens)

A head's output is multiplied by a gate on its way to the output matrix. A gate of zero silences it; a gate of one
changes nothing, and the loss's slope there says how much the head matters. Hooks come and go with the ``with``: the
weights are never touched. Heads are removed for good in ``kotha.model.pruning``.

By **ablation**: the loss when the head is silent, less the loss as it is. It is what removing this head alone would
cost, and takes a pass over the text for each head. Below zero, the model does better without it.

By **gradient**: how steeply the loss falls as the head is turned up, ``|sum of output * d loss / d output|``, for each
example by itself and then on average (Michel et al. 2019, https://arxiv.org/abs/1905.10650). One pass forward and back
serves all heads; it is the slope at the whole model, so it can miss what only shows when a head is gone.

Neither says what several heads cost together: two that do the same are each worth little while the other is there.
The loss is whatever the caller measures: a function of the model and a batch that gives one for each example, (B,), or
the mean of a batch that counts as one example.

``without_heads`` lets a model read one text whole and with any heads silent together: what it then says, how it goes
on, and what it is surprised by.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from kotha.errors import UsageError, nearest
from kotha.i18n.message import Message, OnProgress
from kotha.inside.flow import FinalAnswer, final_answers
from kotha.inside.hook_points import attentions
from kotha.inside.inputs import ModelInput
from kotha.model.evaluating import evaluating
from kotha.model.family import Model
from kotha.model.gpt import GPT
from kotha.model.seq2seq import Seq2Seq

# What an attention's heads are multiplied by, from its name and its heads' outputs (B, H, T, D).
Gate = Callable[[str, Tensor], Tensor]
Loss = Callable[[Any, Any], Tensor]  # of a model and a batch


def every_head(model: nn.Module) -> list[str]:
    """The names of all heads, first to last; of a pruned model, of those that are left.

    >>> from kotha.model.family import build
    >>> from kotha.model.presets import preset
    >>> every_head(build(preset("mini")))
    ['blocks.0.attention.0', 'blocks.0.attention.1']
    """
    return [f"{name}.{number}" for name, attention in attentions(model).items() for number in attention.heads]


def places_of(model: nn.Module, heads: Iterable[str]) -> dict[str, list[int]]:
    """Where heads stand: for each attention's name, the places in its tensors' second dimension."""
    known = every_head(model)
    found: dict[str, list[int]] = {}
    for head in heads:
        if head not in known:
            close = nearest(head, known)
            raise UsageError("this model has no head {name!r}{nearest}", name=head, nearest=close)
        name, _, number = head.rpartition(".")
        found.setdefault(name, []).append(attentions(model)[name].heads.index(int(number)))
    return found


@contextmanager
def silence(model: nn.Module, heads: Iterable[str]) -> Iterator[None]:
    """Inside the ``with``, these heads add nothing."""
    silent = places_of(model, heads)

    def gate(name: str, outputs: Tensor) -> Tensor:
        open_ = torch.ones(outputs.shape[1], dtype=outputs.dtype, device=outputs.device)
        open_[silent[name]] = 0
        return open_[:, None, None]  # (H, 1, 1)

    with gated(model, silent, gate):
        yield


@contextmanager
def gated(model: nn.Module, names: Iterable[str], gate: Gate) -> Iterator[None]:
    """Inside the ``with``, the heads of some attentions are multiplied by what ``gate`` gives."""

    def hook(name: str, _module: nn.Module, _inputs: Any, outputs: Tensor) -> Tensor:
        return outputs * gate(name, outputs)

    with ExitStack() as hooks:
        for name in names:
            outputs = attentions(model)[name].head_outputs
            hooks.enter_context(outputs.register_forward_hook(partial(hook, name)))
        yield


def mean_loss(model: nn.Module, batches: Sequence[Any], loss: Loss) -> float:
    """The loss of a model that is not learning, in nats; every example counts as much."""
    if not batches:
        raise UsageError("there is no text to measure on; give one")
    with evaluating(model), torch.no_grad():
        examples = torch.cat([loss(model, batch).double().reshape(-1) for batch in batches])
    return examples.mean().item()


def by_ablation(
    model: nn.Module, batches: Sequence[Any], loss: Loss, on_progress: OnProgress | None = None
) -> dict[str, float]:
    """What the loss rises by, in nats, when each head alone is silent."""
    heads, found, whole = every_head(model), {}, mean_loss(model, batches, loss)
    for done, head in enumerate(heads):
        with silence(model, [head]):
            found[head] = mean_loss(model, batches, loss) - whole
        if on_progress is not None:
            on_progress(Message("silencing"), done + 1, len(heads))
    return found


def by_gradient(model: nn.Module, batches: Sequence[Any], loss: Loss) -> dict[str, float]:
    """How steeply the loss falls with each head, in nats: by a gate on each row's heads, (B, H, 1, 1)."""
    gates: dict[str, Tensor] = {}

    def gate(name: str, outputs: Tensor) -> Tensor:
        gates[name] = torch.ones_like(outputs[:, :, :1, :1], requires_grad=True)
        return gates[name]

    total, n_examples = torch.zeros(len(every_head(model))), 0
    with evaluating(model), gated(model, attentions(model), gate), torch.enable_grad():
        for batch in batches:
            losses = loss(model, batch)
            slopes = torch.autograd.grad(losses.sum(), [gates[name] for name in attentions(model)])
            # Of a mean, a row's own slope is as many times larger as there are rows, and the rows count as one.
            total += torch.cat([slope.float().abs().sum(dim=(0, 2, 3)).cpu() for slope in slopes])
            n_examples += losses.numel()
    return dict(zip(every_head(model), (total / n_examples).tolist(), strict=True))


def least_important(importance: dict[str, float], count: int) -> list[str]:
    """The heads to remove first, least important first; every attention keeps its most important one.

    >>> least_important({"blocks.0.attention.0": 0.1, "blocks.0.attention.1": 0.3, "blocks.1.attention.0": 0.0}, 1)
    ['blocks.0.attention.0']
    """
    kept: dict[str, str] = {}
    for head in sorted(importance, key=lambda head: importance[head]):
        kept[head.rpartition(".")[0]] = head  # the last one stands
    free = sorted(importance.keys() - set(kept.values()), key=lambda head: (importance[head], head))
    if not 1 <= count <= len(free):
        raise UsageError(
            "{n} heads cannot be removed: 1 to {free} of the {all} heads can be, since every attention keeps "
            "at least one",
            n=count,
            all=len(importance),
            free=len(free),
        )
    return free[:count]


@dataclass(frozen=True)
class Spoken:
    """What a model says of an input."""

    answers: tuple[FinalAnswer, ...]
    nats: tuple[float, ...]  # how surprised it is by each token after the first; of who foretells no tokens, none
    loss_nats: float | None  # its surprise on average
    written: str | None  # how it goes on, where that was asked for


def without_heads(
    model: Model, given: ModelInput, heads: Sequence[str], go_on: Callable[[], str] | None = None
) -> tuple[Spoken, Spoken]:
    """What a model says whole, and with some heads silent; ``go_on`` lets it write."""

    def speak() -> Spoken:
        output = given.pass_through(model)
        nats = _nats(given, output[0]) if isinstance(model, GPT | Seq2Seq) else ()
        loss = sum(nats) / len(nats) if nats else None
        return Spoken(final_answers(model, given, output), nats, loss, None if go_on is None else go_on())

    with silence(model, heads):  # refuses those that are not there
        without = speak()
    return speak(), without


def _nats(given: ModelInput, logits: Tensor) -> tuple[float, ...]:
    """The surprise at each token of the line that is foretold, but the first: (T, V) -> T - 1."""
    ids = torch.tensor([piece.id for piece in given.last_line], device=logits.device)
    return tuple(cross_entropy(logits[:-1].float(), ids[1:], reduction="none").tolist())
