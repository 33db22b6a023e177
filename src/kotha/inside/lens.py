"""The logit lens: what each layer would say, if the model ended there; and its page.

The last norm and the head are applied to what leaves each layer, so every layer answers in words (nostalgebraist 2020,
https://www.lesswrong.com/posts/AcKRB8wDpdaN6v6ru/interpreting-gpt-the-logit-lens). The last layer's answer is the
model's own. Layers before it were never asked to speak; what they say is a guess, not a claim of the model.

For bodies that give words: a GPT says what comes next, a BERT what stands here, a Seq2Seq's decoder what it would
write. A ViT gives classes and is refused. On the page, positions go down and layers across.
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
from kotha.inside.inputs import Likely, ModelInput, Piece
from kotha.inside.trace import trace
from kotha.inside.view import View, to_json, view_of
from kotha.model.bert import BERT
from kotha.model.family import Model
from kotha.model.vit import ViT

_BEST = 5


@dataclass(frozen=True)
class Opinion:
    """What one layer would say at one position; figures to six places."""

    best: tuple[Likely, ...]  # the likeliest tokens, best first
    rank_of_answer: int  # where the model's final answer stands in this layer's order; 1 is first
    probability_of_answer: float  # what this layer gives the final answer
    kl_nats: float  # how far the final distribution is from this one: KL(final || layer)
    entropy_nats: float
    surprise_nats: float | None = field(repr=False)  # at the token that stands next, where the model foretells one


@dataclass(frozen=True)
class LayerOpinions:
    """A layer's opinion at every position; the first one is the embedding."""

    layer: str
    positions: tuple[Opinion, ...]


@dataclass(frozen=True)
class Lens:
    """Every layer's opinion at every position of the line that speaks."""

    family: str
    question: Message
    positions: tuple[Piece, ...]
    layers: tuple[LayerOpinions, ...]


@torch.no_grad()
def lens(model: Model, given: ModelInput) -> Lens:
    """What each layer would say at each position of an input."""
    refuse_classes(model)
    name, stack = list(stacks(model).items())[-1]
    places = {"embedding": f"{name}.0.residual_in"}
    places |= {f"{name}.{layer}": f"{name}.{layer}.residual_out" for layer in range(len(stack.blocks))}
    with trace(model, places=[*places.values(), "logits"]) as seen:
        given.pass_through(model)
    final = seen["logits"][0].float().log_softmax(dim=-1)  # (T, V)
    following = [] if isinstance(model, BERT) else [piece.id or 0 for piece in given.last_line[1:]]
    layers = []
    body: Any = model
    for layer, place in places.items():
        hidden = stack.norm(seen[place])
        logits: Tensor = body.head(body.guess(hidden) if isinstance(model, BERT) else hidden)
        said = logits[0].float().log_softmax(dim=-1)
        layers.append(LayerOpinions(layer, _opinions(given, said, final, following)))
    question = Message("which word is here") if isinstance(model, BERT) else Message("what comes next")
    return Lens(model.config.family, question, given.last_line, tuple(layers))


def _opinions(given: ModelInput, said: Tensor, final: Tensor, following: Sequence[int]) -> tuple[Opinion, ...]:
    """One opinion for each row: (T, V), (T, V) -> T; ``following`` are the tokens that stand next, the last aside."""
    answered = said.gather(-1, final.argmax(dim=-1, keepdim=True))  # (T, 1)
    kl = (final.exp() * (final - said)).sum(dim=-1).clamp(min=0)
    entropy = -(said.exp() * said).sum(dim=-1)
    stacked = torch.stack((answered[:, 0].exp(), kl, entropy), dim=-1).double()  # (T, 3)
    figures = stacked.mul(1e6).round().div(1e6).tolist()
    ranks = (1 + (said > answered).sum(dim=-1)).tolist()
    found = []
    for place, (rank, (share, away, spread)) in enumerate(zip(ranks, figures, strict=True)):
        surprise = -float(said[place, following[place]]) if place < len(following) else None
        found.append(Opinion(given.likeliest(said[place].exp(), _BEST), rank, share, away, spread, surprise))
    return tuple(found)


def refuse_classes(model: Model) -> None:
    """Refuse a model that gives no words, before it reads."""
    if isinstance(model, ViT):
        raise UsageError(
            "the logit lens needs a model that predicts tokens, and a ViT predicts classes; "
            "look at its attention instead"
        )


def lens_view(bundle: Bundle, given: ModelInput) -> View[Lens]:
    """What each layer would say at each position of a text, as if the model ended there."""
    found = lens(bundle.model, given)
    return view_of(
        *("lens", given.title, found), lambda: {**to_json(found), "written_from": given.written_from}, given.remarks
    )
