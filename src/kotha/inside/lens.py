"""The logit lens: what each layer would say, if the model ended there; and its page.

The last norm and the head are applied to what leaves each layer, so every layer answers in words (nostalgebraist 2020,
https://www.lesswrong.com/posts/AcKRB8wDpdaN6v6ru/interpreting-gpt-the-logit-lens). The last layer's answer is the
model's own. Layers before it were never asked to speak; what they say is a guess, not a claim of the model.

For bodies that give words: a GPT says what comes next, a BERT what stands here, a Seq2Seq's decoder what it would
write. A ViT gives classes and is refused. On the page, positions go down and layers across.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch import Tensor

from kotha.artifacts.model_folder import Bundle
from kotha.errors import UsageError
from kotha.i18n.message import Message
from kotha.inside.hook_points import stacks
from kotha.inside.inputs import ModelInput, Spell, likely, speller
from kotha.inside.trace import trace
from kotha.inside.view import View, view_of
from kotha.model.bert import BERT
from kotha.model.family import Model
from kotha.model.vit import ViT

_BEST = 5


@dataclass(frozen=True)
class Opinion:
    """What one layer would say at one position."""

    best: tuple[tuple[int, float], ...]  # the likeliest tokens and their probabilities, best first
    rank: int  # where the model's final answer stands in this layer's order; 1 is first
    answer_probability: float  # what this layer gives the final answer
    kl_nats: float  # how far the final distribution is from this one: KL(final || layer)
    entropy_nats: float
    surprise_nats: float | None = None  # at the token that stands next, where one does and the model foretells it

    def to_dict(self, spell: Spell) -> dict[str, Any]:
        """Ready for JSON; figures to six places."""
        return {
            "best": likely(((token, round(share, 6)) for token, share in self.best), spell),
            "rank_of_answer": self.rank,
            "probability_of_answer": round(self.answer_probability, 6),
            "kl_nats": round(self.kl_nats, 6),
            "entropy_nats": round(self.entropy_nats, 6),
        }


@dataclass(frozen=True)
class Lens:
    """Every layer's opinion at every position."""

    family: str
    given: ModelInput
    line: str  # the line whose positions speak
    layers: tuple[str, ...]  # embedding, then the layers by name
    opinions: tuple[tuple[Opinion, ...], ...]  # by layer, then by position

    @property
    def question(self) -> Message:
        """What is answered at each position."""
        return Message("which word stands here") if self.family == "bert" else Message("what comes next")

    def to_dict(self, spell: Spell) -> dict[str, Any]:
        """All of it, ready for JSON; ``spell`` turns an id into text."""
        return {
            "family": self.family,
            "question": str(self.question),
            "positions": [vars(piece) for piece in self.given.lines[self.line]],
            "layers": [
                {"layer": name, "positions": [opinion.to_dict(spell) for opinion in row]}
                for name, row in zip(self.layers, self.opinions, strict=True)
            ],
        }


@torch.no_grad()
def lens(model: Model, given: ModelInput) -> Lens:
    """What each layer would say at each position of an input."""
    assert not isinstance(model, ViT), "refused by whoever has the input"
    name, stack = list(stacks(model).items())[-1]
    depth = len(stack.blocks)
    places = [f"{name}.0.residual_in", *(f"{name}.{layer}.residual_out" for layer in range(depth))]
    with trace(model, places=[*places, "logits"]) as seen:
        given.pass_through(model)
    final = seen["logits"][0].float().log_softmax(dim=-1)  # (T, V)
    following = [] if isinstance(model, BERT) else [piece.id or 0 for piece in given.last_line[1:]]
    rows = []
    for place in places:
        hidden = stack.norm(seen[place])
        logits: Tensor = model.head(model.guess(hidden) if isinstance(model, BERT) else hidden)
        rows.append(_opinions(logits[0].float().log_softmax(dim=-1), final, following))
    layers = ("embedding", *(f"{name}.{layer}" for layer in range(depth)))
    return Lens(model.config.family, given, list(given.lines)[-1], layers, tuple(rows))


def _opinions(said: Tensor, final: Tensor, following: Sequence[int]) -> tuple[Opinion, ...]:
    """One opinion for each row: (T, V), (T, V) -> T; ``following`` are the tokens that stand next, the last aside."""
    answers = final.argmax(dim=-1)
    given = said.gather(-1, answers[:, None])  # (T, 1)
    ranks = 1 + (said > given).sum(dim=-1)
    best, ids = said.exp().topk(min(_BEST, said.shape[-1]), dim=-1)
    kl = (final.exp() * (final - said)).sum(dim=-1).clamp(min=0)
    entropy = -(said.exp() * said).sum(dim=-1)
    return tuple(
        Opinion(
            tuple(zip(ids[place].tolist(), best[place].tolist(), strict=True)),
            int(ranks[place]),
            float(given[place].exp()),
            float(kl[place]),
            float(entropy[place]),
            -float(said[place, following[place]]) if place < len(following) else None,
        )
        for place in range(len(said))
    )


def refuse_classes(bundle: Bundle) -> None:
    """Refuse a model that gives no words, before it reads."""
    if isinstance(bundle.model, ViT):
        raise UsageError("the lens reads words, and a ViT has classes; look at its attention instead")


def lens_view(bundle: Bundle, given: ModelInput) -> View[Lens]:
    """What each layer would say at each position of a text, as if the model ended there."""
    refuse_classes(bundle)
    found, spell = lens(bundle.model, given), speller(bundle.tokenizer)
    told = partial(found.to_dict, spell)
    return view_of(
        "lens", given.title, found, told, lambda: {**told(), "written_from": given.written_from}, given.remarks
    )
