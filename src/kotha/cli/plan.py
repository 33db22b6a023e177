"""``kotha plan``: what a model is made of, before it is trained."""

from typing import Annotated, Any

from cyclopts import Parameter

from kotha.cli.terminal import print_json, results, table


def plan(
    *,
    preset: Annotated[str, Parameter(help="Exact name of a preset, such as bangla-58m.")],
    as_json: Annotated[bool, Parameter(name="--json", negative="", help="One JSON object on stdout.")] = False,
) -> None:
    """Count a model's parameters, part by part: token embedding, positions, attention, feed-forward, norms, head."""
    from kotha.model.parameters import count_parameters
    from kotha.model.presets import preset as config_of

    config = config_of(preset)
    count = count_parameters(config)
    if as_json:
        print_json({"preset": preset, "config": config.to_dict(), "parameters": count.to_dict()})
        return
    parts: dict[str, Any] = count.to_dict()
    shown = ("token_embedding", "segments", "positions", "attention", "feedforward", "norms", "head")
    rows = [[name.replace("_", " "), f"{parts[name]:,}", f"{parts[name] / count.total:.1%}"] for name in shown]
    rows.append(["total", f"{count.total:,}", "100.0%"])
    rows += [
        [f"in {what}", f"{parts[name]:,}", ""]
        for what, name in {
            "one attention": "attention_per_layer",
            "one head": "attention_per_head",
            "one feed-forward": "feedforward_per_layer",
        }.items()
    ]
    console = results()
    console.print(table(f"{preset}: {config.family}", ["part", "parameters", "share"], rows))
    console.print(f"{4 * count.total:,} bytes in float32, {2 * count.total:,} in bfloat16")
