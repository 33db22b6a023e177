"""``kotha plan``: what a model is made of and what its training takes, before it starts; and a design for a budget."""

from typing import Annotated, Any, Literal

from cyclopts import Parameter

from kotha.cli.flags import More, Page, Several, from_words, group
from kotha.cli.terminal import Commands, Output, status
from kotha.errors import UsageError
from kotha.i18n.message import Message, Option

Number = Annotated[int | None, Parameter(help="Overrides the preset or the recipe.")]


@group
class OfCluster:
    """Many GPUs."""

    gpus: int | None = None
    """On paper: what so many GPUs would need and give."""
    nodes: int | None = None
    """Machines that share --gpus; left out: one for each 8."""
    tokens: Several = ()
    """With --gpus: tokens to train on, as 10B or 1T; left out, 10B 100B 1T."""
    network: float | None = None
    """With --gpus: Gb/s of each GPU's network card; else 400."""
    storage: float | None = None
    """With --gpus: GB/s that a machine writes; else 2."""


@group
class OfTraining:
    """What a training changes of its preset or recipe."""

    set_: More = ()
    steps: Number = None
    vocab_size: Number = None
    context_length: Number = None
    batch_size: Number = None
    micro_batch_size: Number = None
    precision: Literal["auto", "float32", "bfloat16", "float16"] | None = None
    """Type of the products."""

    @property
    def given(self) -> dict[str, Any]:
        """Those that were given."""
        flags = {name: value for name, value in vars(self).items() if name != "set_" and value is not None}
        return {**from_words(self.set_), **flags}


def plan(
    *,
    preset: str | None = None,
    recipe: str = "modern",
    training: OfTraining = OfTraining(),  # noqa: B008 - frozen
    device: Literal["cpu", "cuda"] | None = None,
    gpu: str | None = None,
    data: str | None = None,
    memory_gb: float | None = None,
    minutes: float | None = None,
    cluster: OfCluster = OfCluster(),  # noqa: B008
    time: Annotated[bool, Parameter(negative="--no-time")] = True,
    html: Page = None,
) -> Output:
    """Count a model's parameters, work, memory and time, part by part.

    Backwards, a model that fits a budget: `kotha plan --memory-gb 4 --minutes 30 --data DATA`. On paper, many GPUs, for
    a preset or for 124 million to 7 billion parameters: `kotha plan --gpus 64 --nodes 8 --tokens 100B`.

    Args:
        preset: Exact name of a preset, such as bangla-58m.
        recipe: course, classic or modern.
        device: Where to train; left out: this machine's.
        gpu: Estimate for a GPU by name: h200, a100, rtx-4090, t4, …
        data: A data folder, to count epochs; for a design, any text too.
        memory_gb: Design a model for this much memory.
        minutes: What `kotha train` does in this time, and why.
        time: Time a few small steps on this machine.
        html: Also write the plan as a page, with its schedule drawn.
    """
    shared: dict[str, Any] = {"preset": preset, "recipe": recipe, "gpu": gpu, "settings": training.given}
    budget: dict[str, Any] = {"memory_gb": memory_gb, "minutes": minutes, "data": data}
    if cluster != OfCluster():
        if cluster.gpus is None:
            raise UsageError("--nodes, --tokens, --network and --storage are for many GPUs; say how many with --gpus")
        for name, value in {**budget, "steps": training.steps, "html": html}.items():
            if value is not None:
                told = "{misplaced} has no place in a plan for many GPUs; leave it out"
                raise UsageError(told, misplaced=Option(name))
    from kotha.api import plan as api

    if cluster.gpus is not None:
        on_paper, tables = api.plan_cluster(**vars(cluster), **shared)
        return Output(on_paper, *tables)
    with status(Message("reading the text and timing a few small steps …")):
        found = api.plan(**shared, **budget, device=device, timed=time)
    if html is not None:
        api.write_page(html, found.page())
    commands = found.found.get("design", {}).get("commands")
    return Output(
        found, *found.tables(), *found.sentences(), *([Commands(Message("to run it:"), commands)] if commands else [])
    )
