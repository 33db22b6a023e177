"""``kotha inside lens``: what each layer would say next."""

from typing import Any

from kotha.cli import spoken
from kotha.cli.flags import InLanguage, Json, Run
from kotha.cli.inside.opening import Generate, Html, Second, Target, TextGiven, hand_over, open_model
from kotha.cli.terminal import results, table
from kotha.i18n.message import Message, Plural, Text
from kotha.storage import bundled


def lens(
    run: Run = bundled.FOLDER,
    /,
    *,
    text: TextGiven = None,
    second: Second = None,
    target: Target = None,
    generate: Generate = None,
    html: Html = None,
    language: InLanguage = "en",
    as_json: Json = False,
) -> None:
    """Show what each layer would say at each position, as if the model ended there."""
    from kotha.api.asked import Asked, read_asked
    from kotha.inside.lens import lens_view, refuse_classes

    bundle, asked = open_model(run), Asked(text=text, second=second, target=target, generate=generate)
    refuse_classes(bundle)
    view = lens_view(bundle, read_asked(bundle, asked))
    found = view.found
    sizes = Message(
        "{layers}, {positions}",
        layers=Plural("{n} layer", "{n:,} layers", n=len(found.layers)),
        positions=Plural("{n} position", "{n:,} positions", n=len(found.opinions[0])),
    )
    if not hand_over(view, html, as_json, sizes):
        return
    said = view.to_dict()
    rows, marks = [], {}
    for number, piece in enumerate(said["positions"]):
        opinions: list[dict[str, Any]] = [layer["positions"][number] for layer in said["layers"]]
        for column, opinion in enumerate(opinions, 1):
            if opinion["rank_of_answer"] == 1:
                marks[number, column] = "best"
        best = [(opinion["best"][0], opinion["rank_of_answer"]) for opinion in opinions]
        cells = [f"{each['text']} {each['probability']:.0%} (#{rank})" for each, rank in best]
        rows.append([piece["text"], *cells, f"{opinions[-1]['entropy_nats']:.2f}"])
    header: list[Text] = [
        Message("at") if found.family == "bert" else Message("after"),
        *found.layers,
        Message("entropy, nats"),
    ]
    results().print(
        table(
            Message("{question}? (#: the final answer's rank in that layer)", question=found.question),
            header,
            rows,
            marks,
        )
    )
    means = [sum(each.kl_nats for each in row) / len(row) for row in found.opinions]
    away = [f"{name} {mean:.2f}" for name, mean in zip(found.layers, means, strict=True)]
    results().print(spoken.said(Message("nats from the final distribution, mean: {away}", away=away)))
