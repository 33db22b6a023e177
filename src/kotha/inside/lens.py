"""The logit lens: what each layer would predict if the model ended there.

The last norm and the head are applied to the output of each layer (nostalgebraist 2020,
https://www.lesswrong.com/posts/AcKRB8wDpdaN6v6ru/interpreting-gpt-the-logit-lens). At the last layer, the lens gives
the model's own prediction. Earlier layers were never trained to predict, so their predictions are only an
approximation.

The lens works for models that predict tokens: a GPT predicts the next token, a BERT the token at each position, and a
Seq2Seq decoder the next token in the translation. For a ViT it raises ``UsageError``. On the page, rows are positions
and columns are layers.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from kotha.artifacts.model_folder import Bundle
from kotha.errors import UsageError
from kotha.i18n.message import Message
from kotha.inside.hook_points import stacks
from kotha.inside.inputs import ModelInput, Piece, TokenPrediction
from kotha.inside.trace import trace
from kotha.inside.view import View, to_json, view_of
from kotha.model.bert import BERT
from kotha.model.family import Model
from kotha.model.vit import ViT

_BEST = 5


@dataclass(frozen=True)
class PositionPrediction:
    """One layer's prediction at one position, rounded to six decimals."""

    best: tuple[TokenPrediction, ...]  # most likely tokens, best first
    rank_of_answer: int  # rank of the model's final prediction in this layer, from 1
    probability_of_answer: float  # probability of the final prediction in this layer
    kl_nats: float  # KL(final || layer)
    entropy_nats: float
    surprise_nats: float | None = field(repr=False)  # loss at the next token, if the model predicts one


@dataclass(frozen=True)
class LayerPredictions:
    """One layer's predictions at every position; the first layer is the embedding."""

    layer: str
    positions: tuple[PositionPrediction, ...]


@dataclass(frozen=True)
class Lens:
    """Every layer's predictions at every position of the input line."""

    family: str
    question: Message
    positions: tuple[Piece, ...]
    layers: tuple[LayerPredictions, ...]


@torch.no_grad()
def lens(model: Model, given: ModelInput) -> Lens:
    """Return what each layer would predict at each position of an input."""
    refuse_classes(model)
    name, stack = list(stacks(model).items())[-1]
    places = {"embedding": f"{name}.0.residual_in"}
    places |= {f"{name}.{layer}": f"{name}.{layer}.residual_out" for layer in range(len(stack.blocks))}
    with trace(model, hook_points=[*places.values(), "logits"]) as seen:
        given.pass_through(model)
    final = seen["logits"][0].float().log_softmax(dim=-1)  # (T, V)
    following = [] if isinstance(model, BERT) else [piece.id or 0 for piece in given.last_line[1:]]
    layers = []
    body: Any = model
    for layer, place in places.items():
        hidden = stack.norm(seen[place])
        logits: Tensor = body.head(body.guess(hidden) if isinstance(model, BERT) else hidden)
        log_probs = logits[0].float().log_softmax(dim=-1)
        layers.append(LayerPredictions(layer, _predictions(given, log_probs, final, following)))
    question = Message("which word is here") if isinstance(model, BERT) else Message("what comes next")
    return Lens(model.config.family, question, given.last_line, tuple(layers))


def _predictions(
    given: ModelInput, log_probs: Tensor, final: Tensor, following: Sequence[int]
) -> tuple[PositionPrediction, ...]:
    """Compare a layer with the last one, row by row: (T, V), (T, V) -> T.

    ``following`` holds the actual next tokens.
    """
    answered = log_probs.gather(-1, final.argmax(dim=-1, keepdim=True))  # (T, 1)
    kl = (final.exp() * (final - log_probs)).sum(dim=-1).clamp(min=0)
    entropy = -(log_probs.exp() * log_probs).sum(dim=-1)
    stacked = torch.stack((answered[:, 0].exp(), kl, entropy), dim=-1).double()  # (T, 3)
    figures = stacked.mul(1e6).round().div(1e6).tolist()
    ranks = (1 + (log_probs > answered).sum(dim=-1)).tolist()
    found = []
    for t, (rank, (share, away, spread)) in enumerate(zip(ranks, figures, strict=True)):
        surprise = -float(log_probs[t, following[t]]) if t < len(following) else None
        found.append(
            PositionPrediction(given.likeliest(log_probs[t].exp(), _BEST), rank, share, away, spread, surprise)
        )
    return tuple(found)


def refuse_classes(model: Model) -> None:
    """Raise ``UsageError`` if the model does not predict tokens."""
    if isinstance(model, ViT):
        raise UsageError(
            "the logit lens needs a model that predicts tokens, but a ViT predicts classes; inspect its "
            "attention instead"
        )


def lens_view(bundle: Bundle, given: ModelInput) -> View[Lens]:
    """Show what each layer would predict at each position of a text if the model ended there."""
    found = lens(bundle.model, given)
    return view_of(
        *("lens", given.title, found), lambda: {**to_json(found), "written_from": given.written_from}, given.remarks
    )
