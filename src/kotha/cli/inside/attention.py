"""``kotha inside attention``: who looks at whom, in every head."""

import json
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from kotha.cli.inside.opening import (
    Asked,
    Html,
    Image,
    Json,
    Run,
    Second,
    Target,
    Text,
    headline,
    open_model,
    read_asked,
)
from kotha.cli.terminal import notes, results, table

if TYPE_CHECKING:
    from kotha.inside.attention.maps import AttentionMaps, HeadSummary
    from kotha.inside.inputs import Piece
    from kotha.text.tokenizer.tokenizer import Tokenizer


def attention(
    run: Run,
    /,
    *,
    text: Text = None,
    second: Second = None,
    target: Target = None,
    image: Image = None,
    generate: Annotated[int | None, Parameter(help="Let the model add so many tokens, and see each step.")] = None,
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
    from kotha.files import write_whole
    from kotha.inside.attention.maps import attention_maps
    from kotha.inside.attention.page import attention_page
    from kotha.inside.sites import choose_layers

    wanted = Asked(
        text=text, second=second, target=target, image=image, generate=generate, temperature=temperature, seed=seed
    )
    opened = open_model(run)
    chosen = choose_layers(opened.model, layers)
    maps = attention_maps(opened.model, read_asked(opened, wanted), chosen)
    if html is not None:
        write_whole(html, attention_page(maps, headline(wanted), _names(maps, opened.tokenizer)))
    if as_json:
        print(json.dumps(maps.to_dict(), ensure_ascii=False))  # a line for each weight would be long
    elif html is not None:
        n_heads = sum(len(each.weights) for each in maps.maps)
        results().print(f"{html}: {n_heads} heads; open it in a browser", markup=False)
    else:
        _print(maps)


def _names(maps: "AttentionMaps", tokenizer: "Tokenizer | None") -> dict[int, "Piece"]:
    """How every token reads that could have been written."""
    from kotha.inside.inputs import name_piece

    ids = {chance.id for step in maps.steps for chance in step.best}
    return {} if tokenizer is None else {token: name_piece(tokenizer, token) for token in ids}


def _print(maps: "AttentionMaps") -> None:
    from kotha.inside.attention.maps import summarize

    header = ["head", "strongest looks", "itself", "one before", "first", "entropy, bits"]
    rows = [_row(maps, summary) for each in maps.maps for summary in summarize(each)]
    results().print(table("who looks at whom (means over the text)", header, rows))
    notes().print("kotha: add --html FILE for a page of every head")


def _row(maps: "AttentionMaps", summary: "HeadSummary") -> list[str]:
    found = next(each for each in maps.maps if each.name == summary.name)
    queries, keys = maps.line(found.queries), maps.line(found.keys)
    looks = "   ".join(f"{queries[query].text} → {keys[key].text} {share:.2f}" for query, key, share in summary.looks)
    shares = [summary.on_itself, summary.on_previous, summary.on_first]
    cells = ["-" if share is None else f"{share:.2f}" for share in shares]
    return [f"{summary.name}.{summary.head}", looks, *cells, f"{summary.entropy_bits:.2f}"]
