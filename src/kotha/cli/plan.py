"""``kotha plan``: what a model is made of and what its training takes, before it starts; and a design for a budget."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from kotha.cli.flags import InLanguage, More, flag, from_words, group, page
from kotha.cli.spoken import said
from kotha.cli.terminal import Table, notes, print_commands, print_json, print_parts, results
from kotha.errors import UsageError
from kotha.i18n.message import Message, Text

if TYPE_CHECKING:
    from kotha.api.plan import PlanText

Number = Annotated[int | None, flag("Overrides the preset or the recipe.")]


@group
@dataclass(frozen=True, kw_only=True)
class OfCluster:
    """Many GPUs: one flag for each field."""

    gpus: Annotated[int | None, flag("On paper: what so many GPUs would need and give.")] = None
    nodes: Annotated[int | None, flag("Machines that share --gpus; left out: one for each 8.")] = None
    tokens: Annotated[
        tuple[str, ...],
        flag("With --gpus: tokens to train on, as 10B or 1T; left out, 10B 100B 1T.", consume_multiple=True),
    ] = ()
    network: Annotated[float | None, flag("With --gpus: Gb/s of each GPU's network card; else 400.")] = None
    storage: Annotated[float | None, flag("With --gpus: GB/s that a machine writes; else 2.")] = None


@group
@dataclass(frozen=True, kw_only=True)
class OfTraining:
    """What a training changes of its preset or recipe: one flag for each field."""

    set_: More = ()
    steps: Number = None
    vocab_size: Number = None
    context_length: Number = None
    batch_size: Number = None
    micro_batch_size: Number = None
    precision: Annotated[Literal["auto", "float32", "bfloat16", "float16"] | None, flag("Type of the products.")] = None

    @property
    def given(self) -> dict[str, Any]:
        """Those that were given."""
        flags = {name: value for name, value in vars(self).items() if name != "set_" and value is not None}
        return {**from_words(self.set_), **flags}


def plan(
    *,
    preset: Annotated[str | None, flag("Exact name of a preset, such as bangla-58m.")] = None,
    recipe: Annotated[str, flag("course, classic or modern.")] = "modern",
    training: OfTraining = OfTraining(),  # noqa: B008 - frozen
    device: Annotated[Literal["cpu", "cuda"] | None, flag("Where to train; left out: this machine's.")] = None,
    gpu: Annotated[str | None, flag("Estimate for a GPU by name: h200, a100, rtx-4090, t4, …")] = None,
    data: Annotated[str | None, flag("A data folder, to count epochs; for a design, any text too.")] = None,
    memory_gb: Annotated[float | None, flag("Design a model for this much memory.")] = None,
    minutes: Annotated[float | None, flag("What `kotha train` does in this time, and why.")] = None,
    cluster: OfCluster = OfCluster(),  # noqa: B008
    time: Annotated[bool, flag("Time a few small steps on this machine.", negative="--no-time")] = True,
    html: Annotated[Path | None, page("Also write the plan as a page, with its schedule drawn.")] = None,
    language: InLanguage = "en",
    as_json: Annotated[bool, flag("One JSON object on stdout.", name="--json")] = False,
) -> None:
    """Count a model's parameters, work, memory and time, part by part.

    Backwards, a model that fits a budget: `kotha plan --memory-gb 4 --minutes 30 --data DATA`. On paper, many GPUs, for
    a preset or for 124 million to 7 billion parameters: `kotha plan --gpus 64 --nodes 8 --tokens 100B`.
    """
    shared: dict[str, Any] = {"preset": preset, "recipe": recipe, "gpu": gpu, "settings": training.given}
    budget: dict[str, Any] = {"memory_gb": memory_gb, "minutes": minutes, "data": data}
    if cluster != OfCluster():
        if cluster.gpus is None:
            raise UsageError("--nodes, --tokens, --network and --storage are for many GPUs; say how many with --gpus")
        for name, value in {**budget, "steps": training.steps, "html": html}.items():
            if value is not None:
                misplaced = f"--{name.replace('_', '-')}"
                raise UsageError("{misplaced} has no place in a plan for many GPUs; leave it out", misplaced=misplaced)
    from kotha.api import plan as api

    if cluster.gpus is not None:
        on_paper, tables = api.plan_cluster(**vars(cluster), **shared)
        if as_json:
            print_json(on_paper)
        else:
            _print_tables(tables)
        return
    with notes().status(said(Message("reading the text and timing a few small steps …"))):
        found, text = api.plan(**shared, **budget, device=device, timed=time)
    if html is not None:
        api.write_page(html, api.plan_page(found, text.settings))
    if as_json:
        print_json(found)
    else:
        _print(text)


def _print(text: "PlanText") -> None:
    """The tables of a plan, its sentences, the learning rate, and what to run."""
    from rich.cells import cell_len

    from kotha.api.plan import schedule_lines

    _print_tables(text.tables)
    print_parts(*text.words)
    *bars, ends = schedule_lines(text.settings)
    step, at = said(Message("step")), ends.index("step") + len("step")
    ends = " " * (at - cell_len(step)) + step + ends[at:]
    results().print("\n".join([said(Message("learning rate:")), *bars, ends]), markup=False)
    if text.commands:
        print_commands(Message("to run it:"), text.commands)


def _print_tables(tables: Sequence[tuple[Text, list[Text], list[list[Text]]]]) -> None:
    """The tables of a plan; one with sentences in it is read from its left."""
    from rich.cells import cell_len

    from kotha.api.plan import has_sentences, in_columns

    for title, header, rows in tables:
        if has_sentences(rows):
            spoken = [[said(cell) for cell in row] for row in rows]
            results().print(in_columns(said(title), spoken, cell_len), markup=False)
        else:
            print_parts(Table(title, header, rows, labels=range(len(header))))
