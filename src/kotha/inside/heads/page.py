"""A study of heads as one offline page: a map of what they are worth, and a table of what they do."""

from collections.abc import Callable, Mapping
from dataclasses import asdict
from typing import Any

from kotha.bundle import Bundle
from kotha.inside.heads.kinds import ON_REPEATS, HeadKind
from kotha.inside.heads.measuring import TextSource, gather
from kotha.inside.heads.overlap import HeadWeights
from kotha.inside.heads.sight import BROAD_THRESHOLD, FEWEST_PROBED, LEANING, THRESHOLD, Evidence, probes
from kotha.inside.heads.study import HeadReport, Study, study
from kotha.inside.inputs import speller
from kotha.inside.view import View, styled
from kotha.page import Page, escape
from kotha.wording import OnProgress, counted

# A token's text from its id.
Show = Callable[[int], str]

_CELL, _ROW, _TOP = 62, 34, 30
_LETTER = 7.6  # the width of a letter, about

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
        f"Heads on {examined.text}",
        found,
        lambda: heads_page(found, name, examined.text, show),
        lambda: study_dict(found, examined.text, show),
    )


def study_dict(found: Study, text: str, show: Show) -> dict[str, Any]:
    """A study as JSON has it."""
    figures = {"loss_nats": found.loss_nats, "passages": found.passages, "tokens": found.tokens}
    sharing = [asdict(each) for each in found.sharing]
    return {"text": text, **figures, "heads": [_report(each, show) for each in found.heads], "sharing": sharing}


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


def heads_page(found: Study, name: str, text: str, show: Show) -> str:
    """The page; ``name`` is the model's, ``text`` says what was read."""
    page = Page(
        "Heads", f"{name}, on {counted(found.tokens, 'token')} of {text}, passage by passage: what each head does."
    )
    page.heading("What each head is worth")
    page.figure(
        heat_map({report.head: report.ablation for report in found.heads}),
        f"Nats that the loss, {found.loss_nats:.4f}, rises by when a head alone is silent. Green: it would be missed. "
        "Brown: the model does better without it. Each colour is as strong as the figure is large beside the largest.",
    )
    page.heading("What each head does")
    header = ["head", "kind", "score", "evidence", "clearest case", "ablation", "gradient", "looks most like"]
    page.table(header, [_row(report, show) for report in found.heads], {})
    page.paragraph(
        f"A kind is named from a score of {THRESHOLD:g} on: how far the head's weight has gone from chance (0), which "
        f"is an even look, to always (1). Broad is named from {BROAD_THRESHOLD:.0%} of the greatest entropy. Distances "
        "are in tokens, -1 is the token before. Gradient is the slope of the loss as the head is turned up."
    )
    _add_sharing(page, found)
    return styled(page, footer="Made by kotha inside heads, from the model alone; nothing here asks the network.")


def _add_sharing(page: Page, found: Study) -> None:
    rows = []
    for report in found.heads:
        like, cells = report.likeness, [""] * 6
        if like is not None:
            figures = (like.alike, like.overlap.qk, like.overlap.qk_chance, like.overlap.ov, like.overlap.ov_chance)
            cells = [like.head, *(f"{figure:.2f}" for figure in figures)]
        rows.append([report.head, *cells, f"{report.symmetry:.2f}"])
    page.heading("What heads share")
    page.table(
        ["head", "most alike", "same places", "QK overlap", "by chance", "OV overlap", "by chance", "QK symmetry"],
        rows,
        {},
    )
    page.paragraph(
        "Same places: 1 less the Jensen-Shannon divergence of where two heads look. QK: what they notice, OV: where "
        "they write; mean squared cosine of the principal angles, 1 for the same subspace, 0 for orthogonal ones. "
        "Symmetry of W_Q W_K^T: 1 if A looks at B as B at A, 0.5 by chance."
    )
    rows = []
    for each in found.sharing:
        parts = (each.queries, each.keys, each.values)
        rows.append([each.attention, *(f"{part.needed} ({part.random} of {part.size})" for part in parts)])
    page.table(["attention", "queries", "keys", "values"], rows, {})
    page.paragraph(
        "Directions that hold nine tenths of the matrices of all heads together; in brackets, those of a random matrix "
        "and all that there could be. Fewer than random: the heads share subspaces."
    )


def _row(report: HeadReport, show: Show) -> list[str]:
    kind = report.kind
    score = "" if kind.evidence is None else f"{kind.evidence.score:.2f}"
    like = report.likeness
    similar = "" if like is None else f"{like.head.rpartition('.')[2]} ({like.alike:.2f})"
    worth = [f"{report.ablation:+.4f}", f"{report.gradient:.4f}"]
    return [report.head, kind.kind, score, evidence_text(kind), case_text(kind.evidence, show), *worth, similar]


def heat_map(values: dict[str, float]) -> str:
    """Figures of heads as a grid, an attention a row and a head a column: an ``<svg>``, safe to put into a page."""
    places = {head: (head.rpartition(".")[0], int(head.rpartition(".")[2])) for head in values}
    names = list(dict.fromkeys(name for name, _ in places.values()))
    n_columns = 1 + max(number for _, number in places.values())
    left = 10 + _LETTER * max(len(name) for name in names)
    largest = max((abs(value) for value in values.values()), default=0.0) or 1.0
    parts = [
        f'<text x="{left + (number + 0.5) * _CELL:g}" y="{_TOP - 10}" text-anchor="middle" class="soft">{number}</text>'
        for number in range(n_columns)
    ]
    for row, name in enumerate(names):
        y = _TOP + row * _ROW
        parts.append(f'<text x="{left - 8:g}" y="{y + _ROW / 2:g}" dy=".35em" text-anchor="end">{escape(name)}</text>')
        parts += [
            _cell(left + number * _CELL, y, values[head], largest, head)
            for head, (attention, number) in places.items()
            if attention == name
        ]
    width, height = left + n_columns * _CELL + 4, _TOP + len(names) * _ROW + 4
    style = "text{fill:var(--ink,#1c1b19)}.soft{fill:var(--soft,#6b665b)}"
    return (
        f'<svg role="img" viewBox="0 0 {width:g} {height:g}" style="max-width:{width:g}px">'
        f"<title>What each head is worth</title><style>{style}</style>"
        f'<g style="font-size:13px">{"".join(parts)}</g></svg>'
    )


def _cell(x: float, y: float, value: float, largest: float, head: str) -> str:
    colour = "var(--accent,#0b6e4f)" if value >= 0 else "var(--warm,#b3541e)"
    strength = 0.06 + 0.6 * abs(value) / largest
    return (
        f'<g><title>{escape(head)}: {value:+.5f}</title><rect x="{x + 1:g}" y="{y + 1:g}" width="{_CELL - 2}" '
        f'height="{_ROW - 2}" rx="4" style="fill:{colour};fill-opacity:{strength:.3f}"/>'
        f'<text x="{x + _CELL / 2:g}" y="{y + _ROW / 2:g}" dy=".35em" text-anchor="middle">{value:+.3f}</text></g>'
    )
