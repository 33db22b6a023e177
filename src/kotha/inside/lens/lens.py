"""The logit lens: what each layer would say, if the model ended there.

The last norm and the head are applied to what leaves each layer, so every layer answers in words (nostalgebraist 2020,
https://www.lesswrong.com/posts/AcKRB8wDpdaN6v6ru/interpreting-gpt-the-logit-lens). The last layer's answer is the
model's own. Layers before it were never asked to speak; what they say is a guess, not a claim of the model.

For bodies that give words: a GPT says what comes next, a BERT what stands here, a Seq2Seq's decoder what it would
write. A ViT gives classes and is refused.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from kotha.errors import UsageError
from kotha.inside.inputs import ModelInput
from kotha.inside.sites import stacks
from kotha.inside.trace import Trace, trace
from kotha.model.bert import BERT
from kotha.model.family import Model
from kotha.model.vit import ViT

_BEST = 5


@dataclass(frozen=True)
class Opinion:
    """What one layer would say at one position."""

    ids: tuple[int, ...]
    """The likeliest tokens, best first."""
    probabilities: tuple[float, ...]
    rank: int
    """Where the model's final answer stands in this layer's order; 1 is first."""
    answer_probability: float
    """What this layer gives the final answer."""
    kl_nats: float
    """How far the final distribution is from this one: KL(final || layer)."""
    entropy_nats: float
    """How undecided the layer is."""


@dataclass(frozen=True)
class Lens:
    """Every layer's opinion at every position."""

    family: str
    given: ModelInput
    line: str
    """The line whose positions speak."""
    layers: tuple[str, ...]
    """``embedding``, then the layers by name."""
    opinions: tuple[tuple[Opinion, ...], ...]
    """By layer, then by position."""

    @property
    def question(self) -> str:
        """What is answered at each position."""
        return "which word stands here" if self.family == "bert" else "what comes next"

    def to_dict(self, spell: Callable[[int], str]) -> dict[str, Any]:
        """All of it, ready for JSON; ``spell`` turns an id into text."""
        pieces = self.given.lines[self.line]
        return {
            "family": self.family,
            "question": self.question,
            "positions": [vars(piece) for piece in pieces],
            "layers": [
                {"layer": name, "positions": [_as_dict(opinion, spell) for opinion in row]}
                for name, row in zip(self.layers, self.opinions, strict=True)
            ],
        }


def lens(model: Model, given: ModelInput) -> Lens:
    """What each layer would say at each position of an input."""
    if isinstance(model, ViT):
        raise UsageError("the lens reads words, and a ViT has classes; look at its attention instead")
    name, stack = list(stacks(model).items())[-1]
    depth = len(stack.blocks)
    places = [f"{name}.0.residual_in", *(f"{name}.{layer}.residual_out" for layer in range(depth))]
    with trace(model, places=[*places, "logits"]) as seen:
        given.pass_through(model)
    final = seen["logits"][0].float().log_softmax(dim=-1)  # (T, V)
    rows = tuple(_opinions(_log_chances(model, seen, place), final) for place in places)
    layers = ("embedding", *(f"{name}.{layer}" for layer in range(depth)))
    return Lens(model.config.family, given, list(given.lines)[-1], layers, rows)


@torch.no_grad()
def _log_chances(model: Model, seen: Trace, place: str) -> Tensor:
    """The last norm and the head on a residual stream: -> (T, V)."""
    assert not isinstance(model, ViT), "refused before"
    stack = list(stacks(model).values())[-1]
    hidden = stack.norm(seen[place])
    hidden = model.guess(hidden) if isinstance(model, BERT) else hidden
    logits: Tensor = model.head(hidden)
    return logits[0].float().log_softmax(dim=-1)


def _opinions(said: Tensor, final: Tensor) -> tuple[Opinion, ...]:
    """One opinion for each row: (T, V), (T, V) -> T."""
    answers = final.argmax(dim=-1)
    given = said.gather(-1, answers[:, None])  # (T, 1)
    ranks = 1 + (said > given).sum(dim=-1)
    best, ids = said.exp().topk(min(_BEST, said.shape[-1]), dim=-1)
    kl = (final.exp() * (final - said)).sum(dim=-1).clamp(min=0)
    entropy = -(said.exp() * said).sum(dim=-1)
    return tuple(
        Opinion(
            tuple(ids[place].tolist()),
            tuple(best[place].tolist()),
            int(ranks[place]),
            float(given[place].exp()),
            float(kl[place]),
            float(entropy[place]),
        )
        for place in range(len(said))
    )


def _as_dict(opinion: Opinion, spell: Callable[[int], str]) -> dict[str, Any]:
    best = zip(opinion.ids, opinion.probabilities, strict=True)
    return {
        "best": [{"id": token, "text": spell(token), "probability": round(share, 6)} for token, share in best],
        "rank_of_answer": opinion.rank,
        "probability_of_answer": round(opinion.answer_probability, 6),
        "kl_nats": round(opinion.kl_nats, 6),
        "entropy_nats": round(opinion.entropy_nats, 6),
    }
