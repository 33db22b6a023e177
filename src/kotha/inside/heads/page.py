"""A study of heads as JSON and as one offline page, which the studio's components draw."""

from collections.abc import Callable, Mapping
from dataclasses import asdict
from typing import Any

from kotha.artifacts.model_folder import Bundle
from kotha.i18n.message import Message, OnProgress, Text
from kotha.inside.heads.attention_patterns import BROAD_THRESHOLD, FEWEST_PROBED, LEANING, THRESHOLD, Evidence, probes
from kotha.inside.heads.kinds import ON_REPEATS, HeadKind
from kotha.inside.heads.measuring import TextSource, gather
from kotha.inside.heads.overlap import HeadWeights
from kotha.inside.heads.study import HeadReport, Study, study
from kotha.inside.inputs import speller
from kotha.inside.view import View
from kotha.report.single_file import view_page

# A token's text from its id.
Show = Callable[[int], str]

KINDS = {
    "induction": "the token after an earlier one like it (on random tokens that come twice)",
    "duplicate-token": "another token like itself (on random tokens that come twice)",
    "previous-token": "the token before",
    "current-token": "itself",
    "positional": "the place {offset:+d} tokens away",
    "first-token": "the first token",
    "rare-word": "tokens as rare as the rarest tenth",
    "punctuation": "punctuation",
}


def heads_view(
    bundle: Bundle,
    source: TextSource | str,
    *,
    name: str = "The model",
    weights: Mapping[str, HeadWeights] | None = None,
    on_progress: OnProgress | None = None,
) -> View[Study]:
    """What each head does on a text, what it is worth, and which one it resembles.

    ``name`` is the model's; its ``weights`` (``overlap.head_weights``) can be kept from one text to the next.
    """
    examined = gather(bundle, TextSource(text=source) if isinstance(source, str) else source)
    length, show = examined.context_length, speller(examined.tokenizer)
    found = study(
        bundle.model,
        examined.passages,
        examined.batches,
        examined.loss,
        # Random tokens that come twice, where there is room for them.
        repeats=probes(examined.ordinary, length, bundle.config.family == "seq2seq") if length >= FEWEST_PROBED else (),
        rare=examined.rare,
        punctuation=examined.punctuation,
        weights=weights,
        on_progress=on_progress,
    )
    return View(
        Message("Heads on {text}", text=examined.text),
        found,
        lambda: heads_page(found, name, examined.text, show),
        lambda: study_dict(found, examined.text, show),
    )


def study_dict(found: Study, text: Text, show: Show) -> dict[str, Any]:
    """A study as JSON has it."""
    figures = {"loss_nats": found.loss_nats, "passages": found.passages, "tokens": found.tokens}
    sharing = [asdict(each) for each in found.sharing]
    return {"text": str(text), **figures, "heads": [_report(each, show) for each in found.heads], "sharing": sharing}


def _report(report: HeadReport, show: Show) -> dict[str, Any]:
    evidence = report.kind.evidence
    return {
        "head": report.head,
        "kind": report.kind.kind,
        "score": None if evidence is None else evidence.score,
        "threshold": None if evidence is None else evidence.threshold,
        "evidence": evidence_text(report.kind),
        "example": case_text(evidence, show),
        "scores": {each.name: round(each.score, 4) for each in report.kind.scores.values()},
        "distance": report.kind.distance,
        "ablation_nats": report.ablation,
        "gradient_nats": report.gradient,
        "symmetry": report.symmetry,
        "most_similar": None if report.likeness is None else asdict(report.likeness),
    }


def evidence_text(kind: HeadKind) -> str:
    """The evidence for a head's kind as a sentence."""
    found = kind.evidence
    if found is None:
        return "too little text to say"
    if found.kind == "broad":
        return f"{found.score:.0%} of the entropy of an even look"
    leaning = "" if kind.kind != "unclear" else "leans: " if found.score >= LEANING else "nothing stands out; nearest: "
    where = KINDS[found.kind].format(offset=found.offset)
    return f"{leaning}{found.share:.0%} on {where}; {found.chance:.0%} by chance"


def case_text(found: Evidence | None, show: Show) -> str:
    """The clearest case of the text: who looks at whom; of a kind measured on random tokens, said as such."""
    if found is None or found.case is None:
        return ""
    case, where = found.case, "in the text " if found.kind in ON_REPEATS else ""
    return f"{where}{show(case.asking)} → {show(case.asked)} ({case.distance:+d}, {case.weight:.2f})"


def heads_page(found: Study, name: str, text: Text, show: Show) -> str:
    """The page (``web/src/pages/views/Heads.svelte``); ``name`` is the model's, ``text`` says what was read."""
    return view_page("heads", name, page_data(found, text, show), made_by="kotha inside heads")


def page_data(found: Study, text: Text, show: Show) -> dict[str, Any]:
    """What the page shows, as the server says it (``/api/inside/heads``), with the evidence in figures."""
    told = study_dict(found, text, show)
    for head, report in zip(told["heads"], found.heads, strict=True):
        head["found"] = _figures(report.kind)
    return {**told, "threshold": THRESHOLD, "broad_threshold": BROAD_THRESHOLD}


def _figures(kind: HeadKind) -> dict[str, Any] | None:
    """The evidence that `evidence_text` says in words."""
    found = kind.evidence
    if found is None:
        return None
    leans = kind.kind == "unclear" and found.score >= LEANING
    figures = {name: getattr(found, name) for name in ("kind", "share", "chance", "offset")}
    return {**figures, "leans": leans, "on_repeats": found.kind in ON_REPEATS}
