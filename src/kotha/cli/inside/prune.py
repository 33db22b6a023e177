"""``kotha inside prune``: heads taken out of the weights, and what that costs and saves."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from kotha.cli.flags import Field, InLanguage, Json, Pair, RunName, TextItself, flag
from kotha.cli.inside.opening import Tokens
from kotha.cli.naming import model_and_file
from kotha.cli.spoken import said
from kotha.cli.terminal import print_json, progress, results, table
from kotha.i18n.message import Message, Text

if TYPE_CHECKING:
    from kotha.inside.heads.prune import Pruned


def prune(
    run: RunName = None,
    path: Annotated[str | None, flag("A text to measure on; left out: the run's held-out documents.")] = None,
    /,
    *,
    out: Annotated[Path, flag("Model folder to write.")],
    heads: Annotated[str | None, flag("Heads to remove: blocks.0.attention.1,blocks.1.attention.0")] = None,
    keep: Annotated[float | None, flag("Keep this share of all heads, the most important ones.")] = None,
    count: Annotated[int | None, flag("Remove so many heads, the least important ones.")] = None,
    text: TextItself = None,
    field: Field = "text",
    pair: Pair = None,
    tokens: Tokens = 2048,
    rounds: Annotated[int, flag("Rounds of the speed measurement; the median counts.")] = 5,
    overwrite: Annotated[bool, flag("Replace a model folder at --out.")] = False,
    language: InLanguage = "en",
    as_json: Json = False,
) -> None:
    """Remove heads from the weights and write a smaller model folder, measured before and after.

    Left to choose, it takes the heads whose silence costs least, each measured alone in the whole model, all at once:
    two heads that stand in for each other look cheap both. Numbers are those of the whole model, for good.
    """
    from kotha.api.asked import writing_speed
    from kotha.inside.heads.measuring import TextSource
    from kotha.inside.heads.prune import Removal
    from kotha.inside.heads.prune import prune as remove

    named = None if heads is None else [name.strip() for name in heads.split(",") if name.strip()]
    removal = Removal(heads=named, keep=keep, count=count)
    folder, file = model_and_file(run, path)
    source = TextSource(text=text, path=file, run=folder, field=field, pair=pair, tokens=tokens)
    with progress() as advance:
        how: dict[str, Any] = {"rounds": rounds, "overwrite": overwrite, "on_progress": advance}
        found = remove(folder, out, removal, source, writing_speed, **how)
    if as_json:
        print_json(found.to_dict())
    else:
        _print(found)


def _print(found: "Pruned") -> None:
    before, after = found.before, found.after
    loss = [f"{each.loss_nats:.4f}" for each in (before, after)]
    rows: list[list[Text]] = [[Message("loss, nats"), *loss, f"{after.loss_nats - before.loss_nats:+.4f}"]]
    for name, field, form in (
        (Message("heads"), "heads", "{}"),
        (Message("parameters"), "parameters", "{:,}"),
        (Message("megabytes"), "megabytes", "{:.2f}"),
        (Message("tokens/s, reading"), "reading_tokens_per_second", "{:,.0f}"),
        (Message("tokens/s, writing"), "writing_tokens_per_second", "{:,.0f}"),
    ):
        values: list[Any] = [getattr(each, field) for each in (before, after)]
        if None not in values:
            rows.append([name, *(form.format(value) for value in values), f"{values[1] / values[0] - 1:+.1%}"])
    console = results()
    title = Message("{out}, measured on {text}", out=found.out, text=found.text)
    console.print(table(title, ["", Message("before"), Message("after"), Message("change")], rows))
    console.print(said(Message("removed: {removed}", removed=found.removed)), markup=False)
