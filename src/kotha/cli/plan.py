"""``kotha plan``: what a model is made of and what its training takes, before it starts; and a design for a budget."""

from pathlib import Path
from typing import Annotated, Any, Literal

from cyclopts import Parameter

from kotha.cli.settings import from_words
from kotha.cli.terminal import print_json, results, table
from kotha.errors import UsageError

Number = Annotated[int | None, Parameter(help="Overrides the preset or the recipe.")]


def plan(
    *,
    preset: Annotated[str | None, Parameter(help="Exact name of a preset, such as bangla-58m.")] = None,
    recipe: Annotated[str, Parameter(help="course, classic or modern.")] = "modern",
    set_: Annotated[
        tuple[str, ...], Parameter(name="--set", negative="", help="One more setting, or a size: NAME=VALUE.")
    ] = (),
    steps: Number = None,
    vocab_size: Number = None,
    context_length: Number = None,
    batch_size: Number = None,
    micro_batch_size: Number = None,
    device: Annotated[
        Literal["cpu", "cuda"] | None, Parameter(help="Where to train; left out: this machine's.")
    ] = None,
    gpu: Annotated[str | None, Parameter(help="Estimate for a GPU by name: h200, a100, rtx-4090, t4, …")] = None,
    precision: Annotated[
        Literal["auto", "float32", "bfloat16", "float16"] | None, Parameter(help="Type of the products.")
    ] = None,
    data: Annotated[str | None, Parameter(help="A data folder, to count epochs; for a design, any text too.")] = None,
    memory_gb: Annotated[float | None, Parameter(help="Design a model for this much memory.")] = None,
    minutes: Annotated[float | None, Parameter(help="Design a model that trains in this time.")] = None,
    time: Annotated[bool, Parameter(negative="--no-time", help="Time a few small steps on this machine.")] = True,
    html: Annotated[Path | None, Parameter(help="Also write the plan as a page, with its schedule drawn.")] = None,
    as_json: Annotated[bool, Parameter(name="--json", negative="", help="One JSON object on stdout.")] = False,
) -> None:
    """Count a model's parameters, work, memory and time, part by part.

    Backwards, a model that fits a budget: `kotha plan --memory-gb 4 --minutes 30 --data DATA`.
    """
    sizes = {"vocab_size": vocab_size, "context_length": context_length, "batch_size": batch_size}
    flags = {**sizes, "micro_batch_size": micro_batch_size, "precision": precision, "steps": steps}
    given = {**from_words(set_), **{name: value for name, value in flags.items() if value is not None}}
    if preset is None:
        if memory_gb is None and minutes is None:
            raise UsageError("say what to plan: --preset NAME, or for a design --memory-gb, --minutes and --data")
        chosen = [name for name in given if name != "precision"]
        if chosen:
            raise UsageError(f"a design chooses {', '.join(chosen)} itself; or name a --preset")
        model, settings, facts, train_tokens = _designed(data, memory_gb, minutes, gpu, device, precision)
    else:
        if memory_gb is not None or minutes is not None:
            raise UsageError("--preset plans that model, --memory-gb and --minutes design another; leave out one")
        model, settings, facts, train_tokens = _preset(preset, recipe, given, data)
    found = _found(model, settings, device, gpu, train_tokens, time)
    whole = {"preset": preset, "config": model.to_dict(), **found, **({} if facts is None else {"design": facts})}
    tables, words, commands = _told(preset or "design", model.family, whole, facts, memory_gb)
    if html is not None:
        from kotha.cli.plan_page import plan_page
        from kotha.files import write_whole

        write_whole(html, plan_page(f"Plan: {preset or 'a design'}", tables, words, settings, commands))
    if as_json:
        print_json(whole)
        return
    _print(tables, words, settings, commands)


def _preset(preset: str, recipe: str, given: dict[str, Any], data: str | None) -> tuple[Any, Any, None, int | None]:
    """A preset with what was changed, its settings, and the tokens of the data folder."""
    from kotha.cli.sizes import take_sizes
    from kotha.model.presets import preset as config_of
    from kotha.text.shards import Dataset
    from kotha.train.recipes import recipe as settings_of

    config, rest = take_sizes(config_of(preset), given)
    if "vocab_size" in rest:
        config = config.replace(vocab_size=rest.pop("vocab_size"))  # a model without words says so
    train_tokens = None if data is None else Dataset(data, verify=False)["train"].info.tokens
    return config, settings_of(recipe, **rest), None, train_tokens


def _designed(data: str | None, memory_gb: float | None, minutes: float | None, *where: Any) -> tuple[Any, ...]:
    from kotha.cli.plan_design import design_facts, design_for

    material, design = design_for(data, memory_gb, minutes, *where)
    tokens = material.tokens_with(design.model.vocab_size)
    return design.model, design.settings, design_facts(material, design), tokens


def _found(
    model: Any, settings: Any, device: str | None, gpu: str | None, train_tokens: int | None, timed: bool
) -> dict[str, Any]:
    from dataclasses import asdict

    from kotha.export.targets import doors
    from kotha.model.parameters import count_parameters
    from kotha.train.plan.gpus import gpu_named
    from kotha.train.plan.planning import plan_training

    named = None if gpu is None else gpu_named(gpu)
    found = plan_training(model, settings, device, timed=timed, gpu=named, train_tokens=train_tokens)
    return {"parameters": count_parameters(model).to_dict(), **found, "doors": [asdict(door) for door in doors(model)]}


def _told(
    name: str, family: str, found: dict[str, Any], facts: dict[str, Any] | None, memory_gb: float | None
) -> tuple[list[Any], list[str], list[str]]:
    """Tables, sentences and commands."""
    from kotha.cli.plan_design import design_tables, design_words
    from kotha.cli.plan_tables import plan_tables, plan_words

    tables, words = plan_tables(f"{name}: {family}", found["parameters"], found), plan_words(found)
    if facts is None:
        return tables, words, []
    return [*design_tables(facts), *tables], [*words, *design_words(facts, found, memory_gb)], facts["commands"]


def _print(tables: list[Any], words: list[str], settings: Any, commands: list[str]) -> None:
    from kotha.cli.plan_tables import has_sentences, in_columns, schedule_lines

    console = results()
    for title, header, rows in tables:
        if has_sentences(rows):
            console.print(in_columns(title, rows), markup=False)
        else:
            console.print(table(title, header, rows))
    for sentence in words:
        console.print(sentence, markup=False)
    console.print("\n".join(["learning rate:", *schedule_lines(settings)]), markup=False)
    if commands:
        console.print("\n".join(["", "to run it:", *(f"  {line}" for line in commands)]), markup=False, soft_wrap=True)
