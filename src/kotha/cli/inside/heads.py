"""``kotha inside heads``: what each head does, how much it matters, and which ones overlap."""

from collections.abc import Callable
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from kotha.cli.inside.opening import Field, Html, Json, Pair, Run, Tokens
from kotha.cli.terminal import print_json, progress, results, table
from kotha.inside.heads.measuring import Material, gather

if TYPE_CHECKING:
    from kotha.inside.heads.study import HeadReport, Study


def heads(
    run: Run,
    path: Annotated[str | None, Parameter(help="A text to look at; left out: the run's held-out documents.")] = None,
    /,
    *,
    text: Annotated[str | None, Parameter(help="The text itself, instead of a PATH.")] = None,
    field: Field = "text",
    pair: Pair = None,
    tokens: Tokens = 4096,
    html: Html = None,
    as_json: Json = False,
) -> None:
    """Say what each head does, with the evidence; what it is worth; and which head it resembles.

    Ablation is what the loss rises by, in nats, when the head alone is silent; gradient is the loss's slope as it is
    turned up. A kind is named when the head's weight is halfway from chance to always.
    """
    from kotha.files import write_whole
    from kotha.inside.heads.page import heads_page

    material = gather(run, path, text, field, pair, tokens)
    found = _study(material)
    if html is not None:
        write_whole(html, heads_page(found, str(run), material.text, _shown(material)))
    if as_json:
        print_json(as_plain(found, material))
    else:
        _print(found, material)
        if html is not None:
            results().print(f"{html}: a map of all heads; open it in a browser", markup=False)


def _study(material: Material) -> "Study":
    from kotha.inside.heads.sight import probes
    from kotha.inside.heads.study import study
    from kotha.model.config import TextConfig

    config = material.opened.config
    assert isinstance(config, TextConfig), "what reads no text was refused"
    translates = config.family == "seq2seq"
    repeats = probes(material.ordinary, config.context_length, translates) if config.context_length >= 12 else []
    with progress() as advance:
        return study(
            material.opened.model,
            material.passages,
            material.batches,
            material.loss,
            probes=repeats,
            rare=material.rare,
            punctuation=material.punctuation,
            on_progress=advance,
        )


def _shown(material: Material) -> Callable[[int], str]:
    from kotha.inside.inputs import name_piece

    return lambda token: name_piece(material.tokenizer, token).text


def as_plain(found: "Study", material: Material) -> dict[str, Any]:
    """A study as JSON has it."""
    from kotha.inside.heads.page import evidence_text, example_text

    rows = []
    for report in found.heads:
        evidence = report.kind.evidence
        scores = {each.name: round(each.score, 4) for each in report.kind.scores.values()}
        rows.append(
            {
                "head": report.head,
                "kind": report.kind.kind,
                "score": None if evidence is None else evidence.score,
                "threshold": None if evidence is None else evidence.threshold,
                "evidence": evidence_text(report.kind),
                "example": example_text(evidence, _shown(material)),
                "scores": scores,
                "distance": report.kind.distance,
                "ablation_nats": report.ablation,
                "gradient_nats": report.gradient,
                "symmetry": report.symmetry,
                "most_similar": None if report.likeness is None else asdict(report.likeness),
            }
        )
    figures = {"loss_nats": found.loss_nats, "passages": found.passages, "tokens": found.tokens}
    sharing = [asdict(each) for each in found.sharing]
    return {"text": material.text, **figures, "heads": rows, "sharing": sharing}


def _print(found: "Study", material: Material) -> None:
    title = f"{len(found.heads)} heads on {found.tokens:,} tokens of {material.text}; loss {found.loss_nats:.4f} nats"
    header = ["head", "kind", "evidence", "ablation", "gradient", "most similar"]
    console = results()
    console.print(table(title, header, [_row(report, material) for report in found.heads]))
    console.print(
        "ablation: nats that the loss rises by without the head; gradient: its slope as the head is turned up; most "
        "similar: how alike two heads look (1: the same places), and the overlap of what they notice (QK), write (OV)",
        markup=False,
    )


def _row(report: "HeadReport", material: Material) -> list[str]:
    from kotha.inside.heads.page import evidence_text, example_text

    example = example_text(report.kind.evidence, _shown(material))
    evidence = evidence_text(report.kind) + (f": {example}" if example else "")
    similar = "-"
    if report.likeness is not None:
        overlap = report.likeness.overlap
        name = report.likeness.head.rpartition(".")[2]
        similar = f"{name}: {report.likeness.alike:.2f}, QK {overlap.qk:.2f}, OV {overlap.ov:.2f}"
    return [report.head, report.kind.kind, evidence, f"{report.ablation:+.4f}", f"{report.gradient:.4f}", similar]
