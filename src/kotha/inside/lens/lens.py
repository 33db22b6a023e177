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

from kotha.bundle import Bundle
from kotha.chart import Chart, Series
from kotha.errors import UsageError
from kotha.inside.asked import Asked, as_asked, read_asked
from kotha.inside.inputs import ModelInput, speller
from kotha.inside.sites import stacks
from kotha.inside.trace import trace
from kotha.inside.view import View, interactive
from kotha.model.bert import BERT
from kotha.model.family import Model
from kotha.model.vit import ViT
from kotha.page import Page

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


def lens_page(found: Lens, title: str, spell: Callable[[int], str]) -> str:
    """One offline page; ``spell`` says how a token reads."""
    page = Page(
        title, f"At each layer: {found.question}? The deeper the colour, the surer; the last layer is the model."
    )
    for remark in found.given.remarks:
        page.note(remark)
    data = {**found.to_dict(spell), "written_from": found.given.written_from}
    page.heading("How the layers come to agree")
    page.figures(_charts(found))
    return interactive(page, "lens", data, "Made by kotha inside lens. Probabilities are rounded to six places.")


def _charts(found: Lens) -> list[tuple[str, str]]:
    """How the layers come to agree, as means over the positions."""

    def mean(of: Callable[..., float]) -> list[tuple[float, float | None]]:
        return [(layer, sum(map(of, row)) / len(row)) for layer, row in enumerate(found.opinions)]

    def drawn(title: str, unit: str, *lines: Series) -> str:
        return Chart(title, "layers passed", unit, lines, from_zero=True).svg()

    away = Series("from the answer", mean(lambda each: each.kl_nats), dots=True)
    unsure = Series("undecided", mean(lambda each: each.entropy_nats), "warm", dots=True)
    given = Series("given", mean(lambda each: each.answer_probability), dots=True)
    return [
        (
            drawn("Distance and doubt by layer", "nats", away, unsure),
            "How far each layer is from the final distribution (KL), and how undecided it is itself (entropy).",
        ),
        (
            drawn("Probability of the answer by layer", "probability", given),
            "What each layer gives to the token that the model finds likeliest in the end.",
        ),
    ]
