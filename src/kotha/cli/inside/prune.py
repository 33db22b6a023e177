"""``kotha inside prune``: heads taken out of the weights, and what that costs and saves."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from kotha.cli.inside.opening import Field, Json, Pair, Run, Tokens
from kotha.cli.terminal import print_json, progress, results, table
from kotha.errors import UsageError
from kotha.inside.heads.measuring import Material, gather

if TYPE_CHECKING:
    import torch

    from kotha.inside.heads.beside import Figures


def prune(
    run: Run,
    path: Annotated[str | None, Parameter(help="A text to measure on; left out: the run's held-out documents.")] = None,
    /,
    *,
    out: Annotated[Path, Parameter(help="Model folder to write.")],
    heads: Annotated[str | None, Parameter(help="Heads to remove: blocks.0.attention.1,blocks.1.attention.0")] = None,
    keep: Annotated[float | None, Parameter(help="Keep this share of all heads, the most important ones.")] = None,
    count: Annotated[int | None, Parameter(help="Remove so many heads, the least important ones.")] = None,
    text: Annotated[str | None, Parameter(help="The text itself, instead of a PATH.")] = None,
    field: Field = "text",
    pair: Pair = None,
    tokens: Tokens = 4096,
    rounds: Annotated[int, Parameter(help="Rounds of the speed measurement; the median counts.")] = 5,
    overwrite: Annotated[bool, Parameter(negative="", help="Replace a model folder at --out.")] = False,
    as_json: Json = False,
) -> None:
    """Remove heads from the weights and write a smaller model folder, measured before and after.

    Left to choose, it takes the heads whose silence costs least, each measured alone in the whole model, all at once:
    two heads that stand in for each other look cheap both. Numbers are those of the whole model, for good.
    """
    from kotha import bundle
    from kotha.cli.inside.opening import open_model
    from kotha.inside.heads.beside import side_by_side
    from kotha.model.pruning import remove_heads

    if sum(each is not None for each in (heads, keep, count)) != 1:
        raise UsageError("say which heads go in one way: --heads NAMES, --keep SHARE or --count N")
    if rounds < 1:
        raise UsageError(f"--rounds {rounds} measures nothing; use 1 or more")
    _refuse_out(run, out, overwrite)
    material = gather(run, path, text, field, pair, tokens)
    chosen = _named(heads, material) if heads is not None else _chosen(material, keep, count)
    pruned = remove_heads(material.opened.model, chosen).to(_stored_type(run))
    bundle.save(out, pruned, material.tokenizer, overwrite=overwrite)
    figures = side_by_side([material.opened.model, open_model(out).model], [run, out], material, rounds)
    if as_json:
        before, after = (each.to_dict() for each in figures)
        print_json({"out": str(out), "text": material.text, "removed": chosen, "before": before, "after": after})
    else:
        _print(figures, chosen, out, material)


def _refuse_out(run: Path, out: Path, overwrite: bool) -> None:
    """Say before the long wait what would stop the writing after it."""
    from kotha.bundle import find_model

    if out.exists() and out.resolve() in (run.resolve(), find_model(run).resolve()):
        raise UsageError(f"--out {out} is the model itself, and it is measured beside the smaller one; name another")
    if out.is_dir() and any(out.iterdir()) and not overwrite:
        raise UsageError(f"{out} exists; choose another --out, or replace a model folder with --overwrite")


def _stored_type(run: Path) -> "torch.dtype":
    """The type of the weights in their folder, which the smaller model keeps, whatever it was measured in."""
    import torch

    from kotha.bundle import DTYPES, WEIGHTS_FILE, find_model, read_header

    header, _ = read_header(find_model(run) / WEIGHTS_FILE)
    short = next(iter(header.values()))["dtype"]
    found = getattr(torch, next(name for name, each in DTYPES.items() if each == short))
    assert isinstance(found, torch.dtype), f"{short} is a type of weights"
    return found


def _named(heads: str, material: Material) -> list[str]:
    """The heads that a user names, every one known."""
    from kotha.inside.heads.silence import places_of

    named = [name.strip() for name in heads.split(",") if name.strip()]
    if not named:
        raise UsageError("--heads names none; write them as in blocks.0.attention.1,blocks.1.attention.0")
    places_of(material.opened.model, named)
    return named


def _chosen(material: Material, keep: float | None, count: int | None) -> list[str]:
    """The least important heads by ablation, in one go."""
    from kotha.inside.heads.importance import by_ablation, least_important
    from kotha.inside.heads.silence import every_head

    n_heads = len(every_head(material.opened.model))
    if keep is not None and not 0 < keep < 1:
        raise UsageError(f"--keep {keep} is no share of heads; use a number between 0 and 1, such as 0.75")
    n_removed = n_heads - round(keep * n_heads) if keep is not None else count
    assert n_removed is not None, "one of the two is given"
    least_important(dict.fromkeys(every_head(material.opened.model), 0.0), n_removed)  # refused before the long wait
    with progress() as advance:
        worth = by_ablation(material.opened.model, material.batches, material.loss, advance)
    return least_important(worth, n_removed)


def _print(figures: "list[Figures]", chosen: list[str], out: Path, material: Material) -> None:
    before, after = figures
    rows = [
        ["heads", f"{before.heads}", f"{after.heads}", _change(before.heads, after.heads)],
        [
            "loss, nats",
            f"{before.loss_nats:.4f}",
            f"{after.loss_nats:.4f}",
            f"{after.loss_nats - before.loss_nats:+.4f}",
        ],
        ["parameters", f"{before.parameters:,}", f"{after.parameters:,}", _change(before.parameters, after.parameters)],
        ["megabytes", f"{before.megabytes:.2f}", f"{after.megabytes:.2f}", _change(before.megabytes, after.megabytes)],
    ]
    for name, field in (("reading", "reading_tokens_per_second"), ("writing", "writing_tokens_per_second")):
        speeds: list[Any] = [getattr(each, field) for each in figures]
        if None not in speeds:
            rows.append([f"tokens/s, {name}", *(f"{speed:,.0f}" for speed in speeds), _change(*speeds)])
    console = results()
    console.print(table(f"{out}, measured on {material.text}", ["", "before", "after", "change"], rows))
    console.print(f"removed: {', '.join(chosen)}", markup=False)


def _change(before: float, after: float) -> str:
    return f"{after / before - 1:+.1%}"
