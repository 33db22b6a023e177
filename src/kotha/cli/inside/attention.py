"""``kotha inside attention``: who looks at whom, in every head."""

from typing import Annotated

from kotha.cli.flags import InLanguage, Json, Run, flag
from kotha.cli.inside.opening import Generate, Html, Image, Second, Target, TextGiven, hand_over, open_model
from kotha.cli.spoken import tell
from kotha.cli.terminal import results, table
from kotha.i18n.message import Message, Plural
from kotha.storage import bundled


def attention(
    run: Run = bundled.FOLDER,
    /,
    *,
    text: TextGiven = None,
    second: Second = None,
    target: Target = None,
    image: Image = None,
    generate: Generate = None,
    temperature: Annotated[float, flag("Of what it adds: 0 takes the best token each time.")] = 0.0,
    seed: Annotated[int, flag("Of what it adds, above temperature 0.")] = 0,
    layers: Annotated[
        tuple[str, ...],
        flag("Only these: 0, or decoder.1; all if left out.", consume_multiple=True),
    ] = (),
    html: Html = None,
    language: InLanguage = "en",
    as_json: Json = False,
) -> None:
    """Show who looks at whom: a table of the strongest looks, or with --html a page of every head."""
    from kotha.api.asked import Asked, read_asked
    from kotha.inside.attention import attention_view, summarize
    from kotha.inside.hook_points import choose_layers

    asked, bundle = Asked(text, second, target, image, generate, temperature, seed), open_model(run)
    chosen = choose_layers(bundle.model, layers)
    view = attention_view(bundle, read_asked(bundle, asked), chosen)
    n_heads = sum(len(each.weights) for each in view.found.maps)
    if not hand_over(view, html, as_json, Plural("{n} head", "{n:,} heads", n=n_heads), one_line=True):
        return
    header = [Message("head"), Message("strongest looks"), Message("itself"), Message("one before"), Message("first")]
    header.append(Message("entropy, bits"))
    rows = []
    for each in view.found.maps:
        queries, keys = view.found.line(each.queries), view.found.line(each.keys)
        for head in summarize(each):
            looks = (f"{queries[query].text} → {keys[key].text} {share:.2f}" for query, key, share in head.looks)
            shares = (head.on_itself, head.on_previous, head.on_first)
            cells = ["-" if share is None else f"{share:.2f}" for share in shares]
            rows.append([f"{head.name}.{head.head}", "   ".join(looks), *cells, f"{head.entropy_bits:.2f}"])
    results().print(table(Message("who looks at whom (means over the text)"), header, rows))
    tell(Message("add --html FILE for a page of every head"))
