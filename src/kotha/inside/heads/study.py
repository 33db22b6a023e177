"""A study of all heads on one text: their kind, importance and similarity, as data and as a single offline page.

What a head attends to is measured on passages, and its importance by the loss on batches (``measuring.py``).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from kotha.artifacts.model_folder import Bundle
from kotha.i18n.message import Message, OnProgress, Text
from kotha.inside.heads.importance import by_ablation, by_gradient, by_kind_of_attention
from kotha.inside.heads.kinds import (
    BROAD_THRESHOLD,
    LEANING,
    ON_REPEATS,
    THRESHOLD,
    Evidence,
    HeadClassifier,
    HeadKind,
    look,
    probes,
)
from kotha.inside.heads.measuring import HeadExamination, TextSource, batch_loss, gather
from kotha.inside.heads.overlap import AttentionSimilarity, HeadSimilarity, HeadWeights, Sharing, head_weights
from kotha.inside.inputs import Spell, speller
from kotha.inside.view import View, to_json, view_of

# Where a head of each kind attends.
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
    """All results for one head."""

    head: str
    kind: str
    score: float | None
    threshold: float | None  # minimum score for a head to be of this kind
    evidence: Message
    example: str  # the clearest example in the text
    scores: dict[str, float]
    distance: float  # mean attention distance in tokens
    ablation_nats: float  # increase of the loss without it
    gradient_nats: float  # slope of the loss with respect to its gate
    symmetry: float  # of W_Q W_K^T: 1 symmetric, 0.5 by chance
    most_similar: HeadSimilarity | None
    found: dict[str, Any] | None  # the evidence as numbers, from which the page builds its own sentence


@dataclass(frozen=True)
class Study:
    """The results of a study, with the amount of text that it used."""

    text: Text
    loss_nats: float
    passages: int
    tokens: int
    heads: list[HeadReport]
    sharing: list[Sharing]
    together_nats: dict[str, float]  # increase of the loss without any head of a kind of attention; for a translator

    def page(self) -> dict[str, Any]:
        """Return the data for the page: the study and its thresholds."""
        text = self.text if isinstance(self.text, str) else None
        page: dict[str, Any] = to_json(self)
        return page | {"text": text, "threshold": THRESHOLD, "broad_threshold": BROAD_THRESHOLD}


def study(
    examined: HeadExamination, weights: Sequence[HeadWeights] = (), on_progress: OnProgress | None = None
) -> Study:
    """Study every head of a model on a text.

    To study a model on several texts, compute its ``weights`` (``overlap.head_weights``) once and pass them.
    """
    model, passages = examined.bundle.model, examined.passages
    report: OnProgress = on_progress or (lambda *_: None)
    weights, spell = weights or head_weights(model), speller(examined.tokenizer)
    witness, resemblance = HeadClassifier(model, examined.rare, examined.punctuation), AttentionSimilarity()
    for done, passage in enumerate(passages):
        observations = look(model, passage)
        witness.read(observations)
        resemblance.read(observations)
        report(Message("looking"), done + 1, len(passages))
    translates = examined.bundle.config.family == "seq2seq"
    witness.probe(probes(examined.ordinary, examined.context_length, translates))
    ablation = by_ablation(model, examined.batches, batch_loss, on_progress)
    gradient = by_gradient(model, examined.batches, batch_loss)
    similarities: dict[str, HeadSimilarity] = {}
    symmetries: list[float] = []
    for done, each in enumerate(weights):
        report(Message("comparing"), done, len(weights))
        similarities |= each.nearest(resemblance.of(each.name))
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
                similarities.get(kind.head),
                None if best is None else _figures(kind.kind, best),
            )
        )
    n_tokens = sum(len(passage.tokens) for passage in passages)
    sharing = [each.sharing for each in weights]
    together = by_kind_of_attention(model, examined.batches, batch_loss)
    return Study(examined.text, examined.loss_nats, len(passages), n_tokens, reports, sharing, together)


def heads_view(
    bundle: Bundle,
    source: TextSource,
    *,
    name: str = "The model",
    weights: Sequence[HeadWeights] = (),
    on_progress: OnProgress | None = None,
) -> View[Study]:
    """Show each head's kind and importance, and the head most similar to it; ``name`` is the model's name."""
    found = study(gather(bundle, source), weights, on_progress)
    return view_of("heads", name, found, found.page)


def evidence_text(kind: HeadKind) -> Message:
    """Describe the evidence for a head's kind in words."""
    found = kind.evidence
    if found is None:
        return Message("not enough text to decide")
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
    """Describe the clearest example: query → key (offset, weight)."""
    if found is None or found.case is None:
        return ""
    case = found.case
    return f"{spell(case.query)} → {spell(case.key)} ({case.distance:+d}, {case.weight:.2f})"


def _figures(kind: str, found: Evidence) -> dict[str, Any]:
    """Return the numbers used in ``evidence_text``."""
    figures = {name: getattr(found, name) for name in ("kind", "share", "chance", "offset")}
    leans = kind == "unclear" and found.score >= LEANING
    return {**figures, "leans": leans, "on_repeats": found.kind in ON_REPEATS}
