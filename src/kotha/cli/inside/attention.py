"""``kotha inside attention``: who looks at whom, in every head."""

from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from kotha.cli.inside.opening import Generate, Html, Image, Json, Run, Second, Target, Text, hand_over, open_model
from kotha.cli.terminal import notes, results, table

if TYPE_CHECKING:
    from kotha.inside.attention.maps import AttentionMap, AttentionMaps, HeadSummary


def attention(
    run: Run,
    /,
    *,
    text: Text = None,
    second: Second = None,
    target: Target = None,
    image: Image = None,
    generate: Generate = None,
    temperature: Annotated[float, Parameter(help="Of what it adds: 0 takes the best token each time.")] = 0.0,
    seed: Annotated[int, Parameter(help="Of what it adds, above temperature 0.")] = 0,
    layers: Annotated[
        tuple[str, ...],
        Parameter(negative="", consume_multiple=True, help="Only these: 0, or decoder.1; all if left out."),
    ] = (),
    html: Html = None,
    as_json: Json = False,
) -> None:
    """Show who looks at whom: a table of the strongest looks, or with --html a page of every head."""
    from kotha.inside.asked import Asked
    from kotha.inside.attention.page import attention_view

    asked = Asked(text, second, target, image, generate, temperature, seed)
    view = attention_view(open_model(run), asked, layers)
    n_heads = sum(len(each.weights) for each in view.found.maps)
    if hand_over(view, html, as_json, f"{n_heads} heads", one_line=True):
        _print(view.found)


def _print(maps: "AttentionMaps") -> None:
    from kotha.inside.attention.maps import summarize

    header = ["head", "strongest looks", "itself", "one before", "first", "entropy, bits"]
    rows = [_row(maps, each, summary) for each in maps.maps for summary in summarize(each)]
    results().print(table("who looks at whom (means over the text)", header, rows))
    notes().print("kotha: add --html FILE for a page of every head")


def _row(maps: "AttentionMaps", found: "AttentionMap", summary: "HeadSummary") -> list[str]:
    queries, keys = maps.line(found.queries), maps.line(found.keys)
    looks = "   ".join(f"{queries[query].text} → {keys[key].text} {share:.2f}" for query, key, share in summary.looks)
    shares = [summary.on_itself, summary.on_previous, summary.on_first]
    cells = ["-" if share is None else f"{share:.2f}" for share in shares]
    return [f"{summary.name}.{summary.head}", looks, *cells, f"{summary.entropy_bits:.2f}"]
