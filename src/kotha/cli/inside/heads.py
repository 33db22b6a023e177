"""``kotha inside heads``: what each head does, how much it matters, and which ones overlap."""

from typing import Annotated, Any

from kotha.cli import spoken
from kotha.cli.flags import Field, InLanguage, Json, Pair, RunName, TextItself, flag
from kotha.cli.inside.opening import Html, Tokens, hand_over, open_model
from kotha.cli.naming import model_and_file
from kotha.cli.terminal import progress, results, table
from kotha.i18n.message import Message, Plural
from kotha.storage import bundled


def heads(
    run: RunName = None,
    path: Annotated[str | None, flag("A text to look at; left out: the run's held-out documents.")] = None,
    /,
    *,
    text: TextItself = None,
    field: Field = "text",
    pair: Pair = None,
    tokens: Tokens = 2048,
    html: Html = None,
    language: InLanguage = "en",
    as_json: Json = False,
) -> None:
    """Say what each head does, with the evidence; what it is worth; and which head it resembles.

    Ablation is what the loss rises by, in nats, when the head alone is silent; gradient is the loss's slope as it is
    turned up. A kind is named when the head's weight is halfway from chance to always.
    """
    from kotha.inside.heads.measuring import TextSource
    from kotha.inside.heads.study import evidence_text, heads_view

    folder, file = model_and_file(run, path)
    source = TextSource(text=text, path=file, run=folder, field=field, pair=pair, tokens=tokens)
    with progress() as advance:
        view = heads_view(open_model(folder), source, name=bundled.title(folder), on_progress=advance)
    if not as_json:
        _print(view.to_dict(), [evidence_text(each.kind) for each in view.found.heads])
    hand_over(view, html, as_json, Message("a map of all heads"))


def _print(said: dict[str, Any], evidence: list[Message]) -> None:
    about = Message(
        "{heads} on {tokens} of {text}; loss {loss:.4f} nats",
        heads=Plural("{n} head", "{n:,} heads", n=len(said["heads"])),
        tokens=Plural("{n} token", "{n:,} tokens", n=said["tokens"]),
        text=said["text"],
        loss=said["loss_nats"],
    )
    header = [Message("head"), Message("kind"), Message("evidence"), Message("ablation"), Message("gradient")]
    header.append(Message("most similar"))
    rows = []
    for report, found in zip(said["heads"], evidence, strict=True):
        shown = spoken.said(found) + (f": {report['example']}" if report["example"] else "")
        similar, like = "-", report["most_similar"]
        if like is not None:
            name, overlap = like["head"].rpartition(".")[2], like["overlap"]
            similar = f"{name}: {like['alike']:.2f}, QK {overlap['qk']:.2f}, OV {overlap['ov']:.2f}"
        worth = [f"{report['ablation_nats']:+.4f}", f"{report['gradient_nats']:.4f}"]
        rows.append([report["head"], spoken.said(report["kind"]), shown, *worth, similar])
    results().print(table(about, header, rows))
    legend = Message(
        "ablation: nats that the loss rises by without the head; gradient: its slope as the head is turned up; most "
        "similar: how alike two heads look (1: the same places), and the overlap of what they notice (QK), write (OV)"
    )
    results().print(spoken.said(legend), markup=False)
