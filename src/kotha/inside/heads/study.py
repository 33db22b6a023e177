"""A study of all heads: kind, importance and likeness, from one text; as JSON, and as one offline page.

Passages show where heads look; batches and a loss show what they are worth (``measuring.py``).
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from kotha.artifacts.model_folder import Bundle
from kotha.i18n.message import Message, OnProgress, Text
from kotha.inside.heads.importance import by_ablation, by_gradient
from kotha.inside.heads.kinds import (
    BROAD_THRESHOLD,
    FEWEST_PROBED,
    LEANING,
    ON_REPEATS,
    THRESHOLD,
    Evidence,
    HeadKind,
    Witness,
    look,
    probes,
)
from kotha.inside.heads.measuring import Examined, TextSource, batch_loss, gather
from kotha.inside.heads.overlap import HeadWeights, Likeness, Resemblance, SharedRank, head_weights, nearest_heads
from kotha.inside.hook_points import attentions
from kotha.inside.inputs import Spell, speller
from kotha.inside.view import View, view_of

# Where a head of each kind looks; those on repeats are measured on random tokens that come twice.
KINDS = {
    "induction": "the token after an earlier one like it (on random tokens that come twice)",
    "duplicate-token": "another token like itself (on random tokens that come twice)",
    "previous-token": "the token before",
    "current-token": "itself",
    "positional": "the place {offset:+d} tokens away",
    "first-token": "the first token",
    "rare-word": "tokens as rare as the rarest tenth",
    "punctuation": "punctuation marks",
}


@dataclass(frozen=True)
class HeadReport:
    """All that is known of one head."""

    head: str
    kind: HeadKind
    ablation: float  # what the loss rises by without it, in nats
    gradient: float  # how steeply the loss falls with it, in nats
    symmetry: float  # of W_Q W_K^T: 1 symmetric, one half by chance
    likeness: Likeness | None

    def to_dict(self, spell: Spell) -> dict[str, Any]:
        """Ready for JSON; ``spell`` turns an id into text."""
        evidence = self.kind.evidence
        return {
            "head": self.head,
            "kind": self.kind.kind,
            "score": None if evidence is None else evidence.score,
            "threshold": None if evidence is None else evidence.threshold,
            "evidence": str(evidence_text(self.kind)),
            "example": case_text(evidence, spell),
            "scores": {each.name: round(each.score, 4) for each in self.kind.scores.values()},
            "distance": self.kind.distance,
            "ablation_nats": self.ablation,
            "gradient_nats": self.gradient,
            "symmetry": self.symmetry,
            "most_similar": None if self.likeness is None else asdict(self.likeness),
        }


@dataclass(frozen=True)
class Sharing:
    """How many directions the heads of an attention need together."""

    attention: str
    queries: SharedRank
    keys: SharedRank
    values: SharedRank


@dataclass(frozen=True)
class Study:
    """What was found, and on how much."""

    text: Text
    heads: list[HeadReport]
    sharing: list[Sharing]
    loss_nats: float
    passages: int
    tokens: int

    def to_dict(self, spell: Spell) -> dict[str, Any]:
        """Ready for JSON; ``spell`` turns an id into text."""
        figures = {"loss_nats": self.loss_nats, "passages": self.passages, "tokens": self.tokens}
        heads, sharing = [each.to_dict(spell) for each in self.heads], [asdict(each) for each in self.sharing]
        return {"text": str(self.text), **figures, "heads": heads, "sharing": sharing}

    def page(self, spell: Spell) -> dict[str, Any]:
        """The same with the evidence in figures, which the page puts into words itself."""
        told = self.to_dict(spell) | {"text": self.text if isinstance(self.text, str) else None}
        for head, report in zip(told["heads"], self.heads, strict=True):
            head["found"] = _figures(report.kind)
        return {**told, "threshold": THRESHOLD, "broad_threshold": BROAD_THRESHOLD}


def study(
    examined: Examined, weights: Mapping[str, HeadWeights] | None = None, on_progress: OnProgress | None = None
) -> Study:
    """Look at every head of a model on passages of a text, and measure what it is worth.

    Who studies a model on several texts keeps its ``weights`` (``overlap.head_weights``): they tell the same each time.
    """
    model, passages, length = examined.bundle.model, examined.passages, examined.context_length
    report: OnProgress = on_progress or (lambda *_: None)
    weights = weights or head_weights(model)
    witness, resemblance = Witness(model, examined.rare, examined.punctuation), Resemblance()
    for done, passage in enumerate(passages):
        sights = look(model, passage)
        witness.read(sights)
        resemblance.read(sights)
        report(Message("looking"), done + 1, len(passages))
    if length >= FEWEST_PROBED:  # there is room for random tokens that come twice
        witness.probe(probes(examined.ordinary, length, examined.bundle.config.family == "seq2seq"))
    ablation = by_ablation(model, examined.batches, batch_loss, on_progress, examined.loss_nats)
    gradient = by_gradient(model, examined.batches, batch_loss)
    kinds = {each.head: each for each in witness.verdicts()}
    reports, sharing = [], []
    for done, (name, attention) in enumerate(attentions(model).items()):
        report(Message("comparing"), done, len(weights))
        likenesses = nearest_heads(resemblance, name, weights[name])
        for place, number in enumerate(attention.heads):
            head = f"{name}.{number}"
            figures = (ablation[head], gradient[head], weights[name].symmetries[place])
            reports.append(HeadReport(head, kinds[head], *figures, likenesses.get(head)))
        sharing.append(Sharing(name, *weights[name].shared_ranks))
    n_tokens = sum(len(passage.tokens) for passage in passages)
    return Study(examined.text, reports, sharing, examined.loss_nats, len(passages), n_tokens)


def heads_view(
    bundle: Bundle,
    source: TextSource | str,
    *,
    name: str | None = None,
    weights: Mapping[str, HeadWeights] | None = None,
    on_progress: OnProgress | None = None,
) -> View[Study]:
    """What each head does on a text, what it is worth, and which one it resembles; ``name`` is the model's."""
    examined = gather(bundle, TextSource(text=source) if isinstance(source, str) else source)
    found, spell = study(examined, weights, on_progress), speller(examined.tokenizer)
    title = Message("The model") if name is None else name
    return view_of("heads", title, found, lambda: found.to_dict(spell), lambda: found.page(spell))


def evidence_text(kind: HeadKind) -> Message:
    """The evidence for a head's kind as a sentence."""
    found = kind.evidence
    if found is None:
        return Message("too little text to say")
    if found.kind == "broad":
        return Message("{share:.0%} of the entropy of an even look", share=found.score)
    where = Message(KINDS[found.kind], **({} if found.offset is None else {"offset": found.offset}))
    what = Message(
        "{share:.0%} on {where}; {chance:.0%} by chance", share=found.share, where=where, chance=found.chance
    )
    if kind.kind != "unclear":
        return what
    return Message("leans: {what}" if found.score >= LEANING else "nothing stands out; nearest: {what}", what=what)


def case_text(found: Evidence | None, spell: Spell) -> str:
    """The clearest case of the text: who looks at whom."""
    if found is None or found.case is None:
        return ""
    case = found.case
    return f"{spell(case.asking)} → {spell(case.asked)} ({case.distance:+d}, {case.weight:.2f})"


def _figures(kind: HeadKind) -> dict[str, Any] | None:
    """The evidence that `evidence_text` says in words."""
    found = kind.evidence
    if found is None:
        return None
    leans = kind.kind == "unclear" and found.score >= LEANING
    figures = {name: getattr(found, name) for name in ("kind", "share", "chance", "offset")}
    return {**figures, "leans": leans, "on_repeats": found.kind in ON_REPEATS}
