"""Measure what each head does, and remove heads: ``kotha inside heads`` and ``prune``.

Ablation is the increase in loss, in nats, when one head is removed; gradient is the slope of the loss as the head's
output is scaled. A head is assigned a kind if its attention share for that kind is at least halfway between chance and
1. By default, ``prune`` removes the heads with the lowest ablation values. Each head is ablated alone in the full
model, but the selected heads are all removed at once, so two heads that can replace each other both look
unimportant.
"""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from kotha.cli.inside.views import Html, viewed
from kotha.cli.options import BOX, Field, Pair, Run, TextItself, group
from kotha.cli.terminal import Output, Table, progress
from kotha.i18n.message import Message, Plural, Text

if TYPE_CHECKING:
    from kotha.api.views import Pruned, Study


@group
class HeadTextOptions:
    """The text on which heads are measured."""

    text: TextItself = None
    field: Field = "text"
    pair: Pair = None
    tokens: int = 2048
    """Maximum number of tokens to read; each head is measured on all of them."""


def heads(
    run: Run = BOX,
    path: str | None = None,
    /,
    *,
    source: HeadTextOptions = HeadTextOptions(),  # noqa: B008 - frozen
    html: Html = None,
) -> Output:
    """Show what each head does, how much it matters, and which heads overlap.

    Example: `kotha inside heads run --html heads.html`

    Args:
        path: Text to analyse (default: the run's held-out documents).
    """
    import kotha

    with progress() as advance:
        view = kotha.load(run, "cpu").heads(path=path, on_progress=advance, **vars(source))
    return viewed(view, html, _table(view.found), *_together(view.found))


def _table(found: "Study") -> Table:
    about = Message(
        "{heads} on {tokens} of {text}; loss {loss:.4f} nats",
        heads=Plural("{n} head", "{n:,} heads", n=len(found.heads)),
        tokens=Plural("{n} token", "{n:,} tokens", n=found.tokens),
        text=found.text,
        loss=found.loss_nats,
    )
    header = [Message("head"), Message("kind"), Message("evidence"), Message("ablation"), Message("gradient")]
    header.append(Message("most similar"))
    rows: list[list[Text]] = []
    for each in found.heads:
        similar, like, shown = "-", each.most_similar, each.evidence
        if each.example:  # the example is always from the text, even if the share is measured on random tokens
            shown = Message("{evidence}; in the text: {case}", evidence=shown, case=each.example)
        if like is not None:
            name = like.head.rpartition(".")[2]
            similar = f"{name}: {like.attention_similarity:.2f}, QK {like.overlap.qk:.2f}, OV {like.overlap.ov:.2f}"
        worth = [f"{each.ablation_nats:+.4f}", f"{each.gradient_nats:.4f}"]
        rows.append([each.head, each.kind, shown, *worth, similar])
    legend = Message(
        "ablation: increase of the loss in nats without the head; gradient: slope of the loss as the head is "
        "scaled up; most similar: similarity of two heads' attention (1: identical), and the overlap between "
        "their QK (read) and OV (write) matrices"
    )
    return Table(about, header, rows, [legend], labels=[1])


def _together(found: "Study") -> list[Table]:
    """Return a table of a translator's kinds of attention, each without all of its heads."""
    header = [Message("attention"), Message("heads"), Message("loss, nats"), Message("change")]
    rows: list[list[Text]] = []
    for kind, nats in found.together_nats.items():
        stack, _, part = kind.partition(".")
        n_heads = sum(each.head.startswith(f"{stack}.") and f".{part}." in each.head for each in found.heads)
        rows.append([kind, str(n_heads), f"{found.loss_nats + nats:.4f}", f"{nats:+.4f}"])
    return [Table(Message("without all heads of one kind of attention"), header, rows)] if rows else []


def prune(
    run: Run = BOX,
    path: str | None = None,
    /,
    *,
    out: Path,
    heads: str | None = None,
    count: int | None = None,
    source: HeadTextOptions = HeadTextOptions(),  # noqa: B008 - frozen
    overwrite: bool = False,
) -> Output:
    """Remove heads from the weights, and measure the cost and the savings.

    The result is a new model folder.

    Example: `kotha inside prune run --count 2 --out smaller`

    Args:
        path: Text to measure on (default: the run's held-out documents).
        out: Model folder to write.
        heads: Heads to remove, such as blocks.0.attention.1,blocks.1.attention.0
        count: Number of least important heads to remove.
        overwrite: Replace an existing model folder at --out.
    """
    from kotha.api.views import prune_heads

    names = None if heads is None else [name.strip() for name in heads.split(",") if name.strip()]
    options: dict[str, Any] = {"heads": names, "count": count, "overwrite": overwrite}
    with progress() as advance:
        found = prune_heads(run, out, **options, path=path, on_progress=advance, **vars(source))
    return Output(found, _pruned_table(found))


def _pruned_table(found: "Pruned") -> Table:
    before, after = found.before, found.after
    loss = [f"{each.loss_nats:.4f}" for each in (before, after)]
    rows: list[list[Text]] = [[Message("loss, nats"), *loss, f"{after.loss_nats - before.loss_nats:+.4f}"]]
    for name, field, form in (
        (Message("heads"), "heads", "{}"),
        (Message("parameters"), "parameters", "{:,}"),
        (Message("megabytes"), "megabytes", "{:.2f}"),
    ):
        values = [getattr(each, field) for each in (before, after)]
        rows.append([name, *(form.format(value) for value in values), f"{values[1] / values[0] - 1:+.1%}"])
    title = Message("{out}, measured on {text}", out=found.out, text=found.text)
    header: list[Text] = ["", Message("before"), Message("after"), Message("change")]
    return Table(title, header, rows, [Message("removed: {removed}", removed=found.removed)])
