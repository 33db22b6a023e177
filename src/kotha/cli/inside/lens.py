"""``kotha inside lens``: what each layer would say next."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from kotha.cli.inside.opening import Asked, Html, Json, Run, Second, Target, Text, headline, open_model, read_asked
from kotha.cli.terminal import print_json, results, table
from kotha.errors import UsageError

if TYPE_CHECKING:
    from kotha.inside.lens.lens import Lens


def lens(
    run: Run,
    /,
    *,
    text: Text = None,
    second: Second = None,
    target: Target = None,
    generate: Annotated[int | None, Parameter(help="Let the model add so many tokens, and look there too.")] = None,
    html: Html = None,
    as_json: Json = False,
) -> None:
    """Show what each layer would say at each position, as if the model ended there."""
    from kotha.files import write_whole
    from kotha.inside.inputs import name_piece
    from kotha.inside.lens.lens import lens as look
    from kotha.inside.lens.page import lens_page
    from kotha.model.vit import ViT

    opened = open_model(run)
    if isinstance(opened.model, ViT):
        raise UsageError("the lens reads words, and a ViT has classes; try `kotha inside attention --image`")
    asked = Asked(text=text, second=second, target=target, generate=generate)
    found = look(opened.model, read_asked(opened, asked))
    tokenizer = opened.tokenizer
    assert tokenizer is not None, "a text was read"
    if html is not None:
        write_whole(html, lens_page(found, headline(asked), lambda token: name_piece(tokenizer, token)))
    if as_json:
        print_json(found.to_dict(lambda token: name_piece(tokenizer, token).text))
    elif html is not None:
        sizes = f"{len(found.layers)} layers, {len(found.opinions[0])} positions"
        results().print(f"{html}: {sizes}; open it in a browser", markup=False)
    else:
        _print(found, lambda token: name_piece(tokenizer, token).text)


def _print(found: "Lens", spell: Callable[[int], str]) -> None:
    pieces = found.reading.lines[found.line]
    rows, marks = [], {}
    for place, piece in enumerate(pieces):
        cells = [row[place] for row in found.opinions]
        for column, opinion in enumerate(cells):
            if opinion.rank == 1:
                marks[place, column + 1] = "best"
        said = [f"{spell(each.ids[0])} {each.probabilities[0]:.0%} (#{each.rank})" for each in cells]
        rows.append([piece.text, *said, f"{cells[-1].entropy_nats:.2f}"])
    header = ["at" if found.family == "bert" else "after", *found.layers, "entropy, nats"]
    results().print(table(f"{found.question}? (#: the final answer's rank in that layer)", header, rows, marks))
    means = [sum(each.kl_nats for each in row) / len(row) for row in found.opinions]
    away = ", ".join(f"{name} {mean:.2f}" for name, mean in zip(found.layers, means, strict=True))
    results().print(f"nats from the final distribution, mean: {away}")
