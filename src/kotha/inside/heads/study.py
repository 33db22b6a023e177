"""A study of all heads: kind, importance and likeness, from one text; as JSON, and as one offline page.

Passages show where heads look; batches and a loss show what they are worth (``measuring.py``).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from kotha.artifacts.model_folder import Bundle
from kotha.i18n.message import Message, OnProgress, Text
from kotha.inside.heads.importance import by_ablation, by_gradient
from kotha.inside.heads.kinds import (
    BROAD_THRESHOLD,
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
from kotha.inside.heads.overlap import HeadWeights, Likeness, Resemblance, Sharing, head_weights
from kotha.inside.inputs import Spell, speller
from kotha.inside.view import View, to_json, view_of

# Where a head of each kind looks; those on repeats are measured on random tokens that come twice.
KINDS = {
    "induction": "the token after an earlier copy of the same token (measured on repeated random tokens)",
    "duplicate-token": "another copy of the same token (measured on repeated random tokens)",
    "previous-token": "the token before",
    "current-token": "itself",
    "positional": "the token at offset {offset:+d}",
    "first-token": "the first token",
    "rare-word": "rare tokens (the rarest tenth of the text)",
    "punctuation": "punctuation marks",
}


@dataclass(frozen=True)
class HeadReport:
    """All that is known of one head."""

    head: str
    kind: str
    score: float | None
    threshold: float | None  # the score from which the kind is named
    evidence: Message
    example: str  # the clearest case, of the text's own
    scores: dict[str, float]
    distance: float  # how far it looks, in tokens, on average
    ablation_nats: float  # what the loss rises by without it
    gradient_nats: float  # how steeply the loss falls with it
    symmetry: float  # of W_Q W_K^T: 1 symmetric, one half by chance
    most_similar: Likeness | None
    found: dict[str, Any] | None  # the evidence in figures, which the page puts into words itself


@dataclass(frozen=True)
class Study:
    """What was found, and on how much."""

    text: Text
    loss_nats: float
    passages: int
    tokens: int
    heads: list[HeadReport]
    sharing: list[Sharing]

    def page(self) -> dict[str, Any]:
        """The same, and from where on a kind is named."""
        text = self.text if isinstance(self.text, str) else None
        page: dict[str, Any] = to_json(self)
        return page | {"text": text, "threshold": THRESHOLD, "broad_threshold": BROAD_THRESHOLD}


def study(examined: Examined, weights: Sequence[HeadWeights] = (), on_progress: OnProgress | None = None) -> Study:
    """Look at every head of a model on passages of a text, and measure what it is worth.

    Who studies a model on several texts keeps its ``weights`` (``overlap.head_weights``): they tell the same each time.
    """
    model, passages = examined.bundle.model, examined.passages
    report: OnProgress = on_progress or (lambda *_: None)
    weights, spell = weights or head_weights(model), speller(examined.tokenizer)
    witness, resemblance = Witness(model, examined.rare, examined.punctuation), Resemblance()
    for done, passage in enumerate(passages):
        sights = look(model, passage)
        witness.read(sights)
        resemblance.read(sights)
        report(Message("looking"), done + 1, len(passages))
    translates = examined.bundle.config.family == "seq2seq"
    witness.probe(probes(examined.ordinary, examined.context_length, translates))
    ablation = by_ablation(model, examined.batches, batch_loss, on_progress)
    gradient = by_gradient(model, examined.batches, batch_loss)
    likenesses: dict[str, Likeness] = {}
    symmetries: list[float] = []
    for done, each in enumerate(weights):
        report(Message("comparing"), done, len(weights))
        likenesses |= each.nearest(resemblance.of(each.name))
        symmetries += each.symmetries
    reports = []
    for kind, symmetry in zip(witness.verdicts(), symmetries, strict=True):
        best = kind.evidence
        reports.append(
            HeadReport(
                kind.head,
                kind.kind,
                None if best is None else best.score,
                None if best is None else best.threshold,
                evidence_text(kind),
                case_text(best, spell),
                {each.name: round(each.score, 4) for each in kind.scores.values()},
                kind.distance,
                ablation[kind.head],
                gradient[kind.head],
                symmetry,
                likenesses.get(kind.head),
                None if best is None else _figures(kind.kind, best),
            )
        )
    n_tokens = sum(len(passage.tokens) for passage in passages)
    sharing = [each.sharing for each in weights]
    return Study(examined.text, examined.loss_nats, len(passages), n_tokens, reports, sharing)


def heads_view(
    bundle: Bundle,
    source: TextSource,
    *,
    name: str = "The model",
    weights: Sequence[HeadWeights] = (),
    on_progress: OnProgress | None = None,
) -> View[Study]:
    """What each head does on a text, what it is worth, and which one it resembles; ``name`` is the model's."""
    found = study(gather(bundle, source), weights, on_progress)
    return view_of("heads", name, found, found.page)


def evidence_text(kind: HeadKind) -> Message:
    """The evidence for a head's kind as a sentence."""
    found = kind.evidence
    if found is None:
        return Message("not enough text to tell")
    if found.kind == "broad":
        return Message("{share:.0%} of the entropy of uniform attention", share=found.score)
    where = Message(KINDS[found.kind], **({} if found.offset is None else {"offset": found.offset}))
    what = Message(
        "{share:.0%} on {where}; {chance:.0%} by chance", share=found.share, where=where, chance=found.chance
    )
    if kind.kind != "unclear":
        return what
    return Message("tendency: {what}" if found.score >= LEANING else "no clear pattern; nearest: {what}", what=what)


def case_text(found: Evidence | None, spell: Spell) -> str:
    """The clearest case of the text: who looks at whom."""
    if found is None or found.case is None:
        return ""
    case = found.case
    return f"{spell(case.asking)} → {spell(case.asked)} ({case.distance:+d}, {case.weight:.2f})"


def _figures(kind: str, found: Evidence) -> dict[str, Any]:
    """The evidence that ``evidence_text`` says in words."""
    figures = {name: getattr(found, name) for name in ("kind", "share", "chance", "offset")}
    leans = kind == "unclear" and found.score >= LEANING
    return {**figures, "leans": leans, "on_repeats": found.kind in ON_REPEATS}
