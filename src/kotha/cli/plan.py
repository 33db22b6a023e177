"""``kotha plan``: estimate a model and its training run before it starts, or design a model for a budget."""

from typing import Annotated

from kotha.api.options import ClusterOptions, PlanOptions
from kotha.cli.options import Flat, FlatMany, More, Page, from_words
from kotha.cli.terminal import Commands, Output, status
from kotha.i18n.message import Message


def plan(
    *,
    options: Annotated[PlanOptions, Flat] = PlanOptions(),  # noqa: B008 - frozen
    set_: More = (),
    cluster: Annotated[ClusterOptions, FlatMany] = ClusterOptions(),  # noqa: B008
    html: Page = None,
) -> Output:
    """Estimate a model's parameters, compute, memory and time, part by part.

    With a preset, estimate a training run: `kotha plan --preset bangla-58m --gpu h200`.

    With a budget, design a model that fits it: `kotha plan --memory-gb 4 --minutes 30 --data data`.

    With --gpus, estimate training on a cluster, for a preset or for models with 124 million to 7 billion parameters:
    `kotha plan --gpus 64 --nodes 8 --tokens 100B`.

    Args:
        html: Output file for the plan as an HTML page, with a chart of the schedule.
    """
    from kotha.api import plan as api

    settings = from_words(set_)
    if cluster != ClusterOptions():
        estimate, tables = api.plan_cluster(cluster, options, settings)
        return Output(estimate, *tables)
    with status(Message("reading the text and timing a few small steps …")):
        found = api.plan(options, settings)
    if html is not None:
        api.write_page(html, found.page())
    lines = found.found.get("design", {}).get("commands")
    commands = [Commands(Message("to run it:"), lines)] if lines else []
    return Output(found, *found.tables(), *found.sentences(), *commands)
