"""Head importance in nats, measured by ablation and by the gradient with respect to a gate.

    with silence(model, ["blocks.0.attention.3"]):
        model(tokens)

The output of a head is multiplied by a gate before the output matrix. A gate of 0 silences the head, a gate of 1
changes nothing, and the slope of the loss at 1 measures the importance of the head. Hooks are removed at the end of the
``with`` block; weights never change. ``kotha.model.pruning`` removes heads permanently.

**Ablation**: the loss with the head silenced minus the loss of the full model. The difference is the cost of removing
this head alone. It takes one pass over the text for each head. A negative value means that the model is better without
the head.

**Gradient**: the slope of the loss with respect to the gate, ``|sum of output * d loss / d output|`` for each example,
averaged over the examples (Michel et al. 2019, https://arxiv.org/abs/1905.10650). One forward and one backward pass
cover all heads. The slope is local, so it can miss effects that appear only when a head is removed completely.

Neither method measures the cost of removing several heads together: if two heads are redundant, each of them alone
seems unimportant. The caller supplies the loss function, which takes the model and a batch. The function returns the
loss for each example, (B,), or the mean over the batch, which then counts as one example.

``without_heads`` compares one text with and without some heads: predictions, loss at each token and, if requested,
generated text.
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

# Returns gate values for an attention module, given its name and its head outputs (B, H, T, D).
Gate = Callable[[str, Tensor], Tensor]
Loss = Callable[[Any, Any], Tensor]  # from a model and a batch


def every_head(model: nn.Module) -> list[str]:
    """Return the names of all heads in order, without those removed by pruning.

    >>> from kotha.model.family import build
    >>> from kotha.model.presets import preset
    >>> every_head(build(preset("mini")))
    ['blocks.0.attention.0', 'blocks.0.attention.1']
    """
    return [f"{name}.{number}" for name, attention in attentions(model).items() for number in attention.heads]


def places_of(model: nn.Module, heads: Iterable[str]) -> dict[str, list[int]]:
    """Return the indices of heads in the second dimension of their attention's tensors, by attention name."""
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
    """Silence these heads inside the ``with`` block."""
    silent = places_of(model, heads)

    def gate(name: str, outputs: Tensor) -> Tensor:
        open_ = torch.ones(outputs.shape[1], dtype=outputs.dtype, device=outputs.device)
        open_[silent[name]] = 0
        return open_[:, None, None]  # (H, 1, 1)

    with gated(model, silent, gate):
        yield


@contextmanager
def gated(model: nn.Module, names: Iterable[str], gate: Gate) -> Iterator[None]:
    """Multiply the head outputs of the named attentions by ``gate(name, outputs)`` inside the ``with`` block."""

    def hook(name: str, _module: nn.Module, _inputs: Any, outputs: Tensor) -> Tensor:
        return outputs * gate(name, outputs)

    with ExitStack() as hooks:
        for name in names:
            outputs = attentions(model)[name].head_outputs
            hooks.enter_context(outputs.register_forward_hook(partial(hook, name)))
        yield


def mean_loss(model: nn.Module, batches: Sequence[Any], loss: Loss) -> float:
    """Return the mean loss over all examples in nats, with the model in evaluation mode."""
    if not batches:
        raise UsageError("the heads cannot be measured without text; give a text")
    with evaluating(model), torch.no_grad():
        examples = torch.cat([loss(model, batch).double().reshape(-1) for batch in batches])
    return examples.mean().item()


def by_ablation(
    model: nn.Module, batches: Sequence[Any], loss: Loss, on_progress: OnProgress | None = None
) -> dict[str, float]:
    """Return, for each head, the increase in loss (in nats) when only that head is silenced."""
    heads, found, baseline = every_head(model), {}, mean_loss(model, batches, loss)
    for done, head in enumerate(heads):
        with silence(model, [head]):
            found[head] = mean_loss(model, batches, loss) - baseline
        if on_progress is not None:
            on_progress(Message("silencing"), done + 1, len(heads))
    return found


def by_kind_of_attention(model: nn.Module, batches: Sequence[Any], loss: Loss) -> dict[str, float]:
    """Return, for each kind of attention, the increase in loss when all of its heads are silenced together.

    The kinds are those of a translator: encoder.attention, decoder.attention and decoder.cross. A model with a single
    kind of attention gives an empty result.
    """
    kinds: dict[str, list[str]] = {}
    for head in every_head(model):
        kind = ".".join(part for part in head.split(".") if part != "blocks" and not part.isdecimal())
        kinds.setdefault(kind, []).append(head)
    found, baseline = {}, mean_loss(model, batches, loss) if len(kinds) > 1 else 0.0
    for kind, heads in kinds.items() if len(kinds) > 1 else ():
        with silence(model, heads):
            found[kind] = mean_loss(model, batches, loss) - baseline
    return found


def by_gradient(model: nn.Module, batches: Sequence[Any], loss: Loss) -> dict[str, float]:
    """Return the absolute slope of the loss in nats for each head's gate; every example has its own gates."""
    gates: dict[str, Tensor] = {}

    def gate(name: str, outputs: Tensor) -> Tensor:
        gates[name] = torch.ones_like(outputs[:, :, :1, :1], requires_grad=True)
        return gates[name]

    total, n_examples = torch.zeros(len(every_head(model))), 0
    with evaluating(model), gated(model, attentions(model), gate), torch.enable_grad():
        for batch in batches:
            losses = loss(model, batch)
            slopes = torch.autograd.grad(losses.sum(), [gates[name] for name in attentions(model)])
            # If the loss is a batch mean, each row's slope is divided by B, and the batch counts as one example.
            total += torch.cat([slope.float().abs().sum(dim=(0, 2, 3)).cpu() for slope in slopes])
            n_examples += losses.numel()
    return dict(zip(every_head(model), (total / n_examples).tolist(), strict=True))


def least_important(importance: dict[str, float], count: int) -> list[str]:
    """Return the ``count`` least important heads, least important first; every attention module keeps its best head.

    >>> least_important({"blocks.0.attention.0": 0.1, "blocks.0.attention.1": 0.3, "blocks.1.attention.0": 0.0}, 1)
    ['blocks.0.attention.0']
    """
    kept: dict[str, str] = {}
    for head in sorted(importance, key=lambda head: importance[head]):
        kept[head.rpartition(".")[0]] = head  # the last assignment is the most important head
    free = sorted(importance.keys() - set(kept.values()), key=lambda head: (importance[head], head))
    if not 1 <= count <= len(free):
        raise UsageError(
            "{n} heads cannot be removed: each attention module must keep at least one, so 1 to {free} of "
            "the {all} heads can be removed",
            n=count,
            all=len(importance),
            free=len(free),
        )
    return free[:count]


@dataclass(frozen=True)
class ModelAnswers:
    """A model's predictions for an input."""

    answers: tuple[FinalAnswer, ...]
    nats: tuple[float, ...]  # loss at each token after the first; empty unless the model predicts the next token
    loss_nats: float | None  # their mean
    written: str | None  # generated continuation, if requested


def without_heads(
    model: Model, given: ModelInput, heads: Sequence[str], go_on: Callable[[], str] | None = None
) -> tuple[ModelAnswers, ModelAnswers]:
    """Compare a model with all heads and with some silenced; ``go_on`` generates a continuation."""

    def speak() -> ModelAnswers:
        output = given.pass_through(model)
        nats = _nats(given, output[0]) if isinstance(model, GPT | Seq2Seq) else ()
        loss = sum(nats) / len(nats) if nats else None
        return ModelAnswers(final_answers(model, given, output), nats, loss, None if go_on is None else go_on())

    with silence(model, heads):  # raises for unknown heads
        without = speak()
    return speak(), without


def _nats(given: ModelInput, logits: Tensor) -> tuple[float, ...]:
    """Return the loss at each token of the input line except the first: (T, V) -> T - 1."""
    ids = torch.tensor([piece.id for piece in given.last_line], device=logits.device)
    return tuple(cross_entropy(logits[:-1].float(), ids[1:], reduction="none").tolist())
