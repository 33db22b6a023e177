"""``kotha plan``: what a model is made of and what its training takes, before it starts."""

from typing import Annotated, Any, Literal

from cyclopts import Parameter

from kotha.cli.settings import from_words
from kotha.cli.terminal import print_json, results, table

Number = Annotated[int | None, Parameter(help="Overrides the preset or the recipe.")]
_PARTS = ("token_embedding", "segments", "positions", "attention", "feedforward", "norms", "head")
_MEMORY = ("weights", "gradients", "optimizer", "average", "activations", "loss", "base")


def plan(
    *,
    preset: Annotated[str, Parameter(help="Exact name of a preset, such as bangla-58m.")],
    recipe: Annotated[str, Parameter(help="course, classic or modern.")] = "modern",
    set_: Annotated[tuple[str, ...], Parameter(name="--set", negative="", help="One more setting: NAME=VALUE.")] = (),
    vocab_size: Number = None,
    context_length: Number = None,
    batch_size: Number = None,
    micro_batch_size: Number = None,
    device: Annotated[
        Literal["cpu", "cuda"] | None, Parameter(help="Where to train; left out: this machine's.")
    ] = None,
    precision: Annotated[
        Literal["auto", "float32", "bfloat16", "float16"] | None, Parameter(help="Type of the products.")
    ] = None,
    time: Annotated[bool, Parameter(negative="--no-time", help="Time a few small steps on this machine.")] = True,
    as_json: Annotated[bool, Parameter(name="--json", negative="", help="One JSON object on stdout.")] = False,
) -> None:
    """Count a model's parameters, the memory of its training and its time, part by part."""
    from kotha.model.parameters import count_parameters
    from kotha.model.presets import preset as config_of
    from kotha.train.machine.planning import plan_training
    from kotha.train.recipes import recipe as settings_of

    flags = {
        "context_length": context_length,
        "batch_size": batch_size,
        "micro_batch_size": micro_batch_size,
        "precision": precision,
    }
    given = {name: value for name, value in flags.items() if value is not None}
    settings = settings_of(recipe, **{**from_words(set_), **given})
    config = config_of(preset)
    if vocab_size is not None:
        config = config.replace(vocab_size=vocab_size)
    count = count_parameters(config)
    found = plan_training(config, settings, device, timed=time)
    if as_json:
        print_json({"preset": preset, "config": config.to_dict(), "parameters": count.to_dict(), **found})
        return
    console = results()
    console.print(
        table(f"{preset}: {config.family}", ["part", "parameters", "share"], _parameter_rows(count.to_dict()))
    )
    console.print(table(_title(found), ["part", "bytes", "share"], _memory_rows(found["memory_bytes"])))
    console.print(f"the parts are not all there at once; the fullest moment is {found['memory_bytes']['moment']}")
    console.print(f"{found['flops_per_token']:,.0f} operations a token, {found['tokens_per_step']:,} tokens a step")
    if found["seconds_per_step"] is not None:
        hours = found["seconds"] / 3600
        console.print(f"{found['seconds_per_step']:,.2f} s a step here, {hours:,.1f} h for {settings.steps:,} steps")


def _parameter_rows(parts: dict[str, Any]) -> list[list[str]]:
    total = parts["total"]
    rows = [[name.replace("_", " "), f"{parts[name]:,}", f"{parts[name] / total:.1%}"] for name in _PARTS]
    rows.append(["total", f"{total:,}", "100.0%"])
    inside = {
        "one attention": "attention_per_layer",
        "one head": "attention_per_head",
        "one feed-forward": "feedforward_per_layer",
    }
    return rows + [[f"in {what}", f"{parts[name]:,}", ""] for what, name in inside.items()]


def _memory_rows(memory: dict[str, Any]) -> list[list[str]]:
    rows = [[name, f"{memory[name]:,}", f"{memory[name] / memory['total']:.1%}"] for name in _MEMORY]
    return [*rows, ["total", f"{memory['total']:,}", ""]]


def _title(found: dict[str, Any]) -> str:
    shape = f"{found['micro_batch_size']} x {found['context_length']}"
    return f"memory to train in {found['precision']} on {found['device']}, {shape} at once"
