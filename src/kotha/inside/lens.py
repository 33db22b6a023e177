"""The logit lens: what each layer would say, if the model ended there; and its page.

The last norm and the head are applied to what leaves each layer, so every layer answers in words (nostalgebraist 2020,
https://www.lesswrong.com/posts/AcKRB8wDpdaN6v6ru/interpreting-gpt-the-logit-lens). The last layer's answer is the
model's own. Layers before it were never asked to speak; what they say is a guess, not a claim of the model.

For bodies that give words: a GPT says what comes next, a BERT what stands here, a Seq2Seq's decoder what it would
write. A ViT gives classes and is refused. On the page, positions go down and layers across.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from kotha.artifacts.model_folder import Bundle
from kotha.errors import UsageError
from kotha.i18n.message import Text
from kotha.inside.hook_points import stacks
from kotha.inside.inputs import ModelInput, speller
from kotha.inside.request import Asked, as_asked, read_asked
from kotha.inside.trace import trace
from kotha.inside.view import View
from kotha.model.bert import BERT
from kotha.model.family import Model
from kotha.model.vit import ViT
from kotha.report.single_file import view_page

_BEST = 5


@dataclass(frozen=True)
class Opinion:
    """What one layer would say at one position."""

    ids: tuple[int, ...]  # the likeliest tokens, best first
    probabilities: tuple[float, ...]
    rank: int  # where the model's final answer stands in this layer's order; 1 is first
    answer_probability: float  # what this layer gives the final answer
    kl_nats: float  # how far the final distribution is from this one: KL(final || layer)
    entropy_nats: float
    surprise_nats: float | None = None  # at the token that stands next, where one does and the model foretells it


@dataclass(frozen=True)
class Lens:
    """Every layer's opinion at every position."""

    family: str
    given: ModelInput
    line: str  # the line whose positions speak
    layers: tuple[str, ...]  # embedding, then the layers by name
    opinions: tuple[tuple[Opinion, ...], ...]  # by layer, then by position

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
    following = [] if isinstance(model, BERT) else [piece.id or 0 for piece in list(given.lines.values())[-1][1:]]
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
            tuple(ids[place].tolist()),
            tuple(best[place].tolist()),
            int(ranks[place]),
            float(given[place].exp()),
            float(kl[place]),
            float(entropy[place]),
            -float(said[place, following[place]]) if place < len(following) else None,
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


def lens_view(bundle: Bundle, asked: Asked | str) -> View[Lens]:
    """What each layer would say at each position of a text, as if the model ended there."""
    if isinstance(bundle.model, ViT):
        raise UsageError("the lens reads words, and a ViT has classes; look at its attention instead")
    found = lens(bundle.model, read_asked(bundle, asked))
    title, spell = as_asked(asked).headline(), speller(bundle.tokenizer)
    return View(title, found, lambda: lens_page(found, title, spell), lambda: found.to_dict(spell), found.given.remarks)


def lens_page(found: Lens, title: Text, spell: Callable[[int], str]) -> str:
    """One offline page (``web/src/pages/views/Lens.svelte``); ``spell`` says how a token reads."""
    positions = [piece.to_dict() for piece in found.given.lines[found.line]]
    data = {**found.to_dict(spell), "positions": positions, "written_from": found.given.written_from}
    return view_page("lens", title, data, found.given.remarks, made_by="kotha inside lens")
