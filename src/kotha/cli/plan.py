"""``kotha plan``: what a model is made of and what its training takes, before it starts; and a design for a budget."""

from pathlib import Path
from typing import Annotated, Any, Literal

from kotha.cli.flags import InLanguage, More, flag, from_words, page
from kotha.cli.plan_cluster import OfCluster, plan_on_paper, print_plan_tables
from kotha.cli.spoken import said
from kotha.cli.terminal import notes, print_json, results
from kotha.errors import UsageError
from kotha.i18n.message import Message

Number = Annotated[int | None, flag("Overrides the preset or the recipe.")]
_MOST_GB = 1_000_000


def plan(
    *,
    preset: Annotated[str | None, flag("Exact name of a preset, such as bangla-58m.")] = None,
    recipe: Annotated[str, flag("course, classic or modern.")] = "modern",
    set_: More = (),
    steps: Number = None,
    vocab_size: Number = None,
    context_length: Number = None,
    batch_size: Number = None,
    micro_batch_size: Number = None,
    device: Annotated[Literal["cpu", "cuda"] | None, flag("Where to train; left out: this machine's.")] = None,
    gpu: Annotated[str | None, flag("Estimate for a GPU by name: h200, a100, rtx-4090, t4, …")] = None,
    precision: Annotated[
        Literal["auto", "float32", "bfloat16", "float16"] | None, flag("Type of the products.")
    ] = None,
    data: Annotated[str | None, flag("A data folder, to count epochs; for a design, any text too.")] = None,
    memory_gb: Annotated[float | None, flag("Design a model for this much memory.")] = None,
    minutes: Annotated[float | None, flag("What `kotha train` does in this time, and why.")] = None,
    cluster: OfCluster = OfCluster(),  # noqa: B008 - frozen
    time: Annotated[bool, flag("Time a few small steps on this machine.", negative="--no-time")] = True,
    html: Annotated[Path | None, page("Also write the plan as a page, with its schedule drawn.")] = None,
    language: InLanguage = "en",
    as_json: Annotated[bool, flag("One JSON object on stdout.", name="--json")] = False,
) -> None:
    """Count a model's parameters, work, memory and time, part by part.

    Backwards, a model that fits a budget: `kotha plan --memory-gb 4 --minutes 30 --data DATA`. On paper, many GPUs, for
    a preset or for 124 million to 7 billion parameters: `kotha plan --gpus 64 --nodes 8 --tokens 100B`.
    """
    flags: dict[str, Any] = {"vocab_size": vocab_size, "context_length": context_length, "batch_size": batch_size}
    flags |= {"micro_batch_size": micro_batch_size, "precision": precision, "steps": steps}
    given = {**from_words(set_), **{name: value for name, value in flags.items() if value is not None}}
    if cluster.asked:
        other = {"--memory-gb": memory_gb, "--minutes": minutes, "--steps": steps, "--html": html, "--data": data}
        plan_on_paper(cluster, preset, recipe, gpu, given, other, as_json)
        return
    if preset is None and memory_gb is None and minutes is None:
        raise UsageError("say what to plan: --preset NAME, or for a design --memory-gb, --minutes and --data")
    for needed, value in {"--minutes": minutes, "--data": data}.items():
        if value is None and (memory_gb is not None or minutes is not None):
            raise UsageError(
                "{needed} is missing: what fits depends on text and time; --preset NAME alone needs neither",
                needed=needed,
            )
    if memory_gb is not None and not 0 < memory_gb <= _MOST_GB:
        raise UsageError("--memory-gb takes a number above 0, up to {most_gb:,}", most_gb=_MOST_GB)
    with notes().status(said(Message("reading the text and timing a few small steps …"))):
        from kotha.export.targets import supported_targets
        from kotha.training.plan.gpus import gpu_named
        from kotha.training.plan.render import tell_plan
        from kotha.training.settings import TrainRequest

        named = None if gpu is None else gpu_named(gpu)
        memory = None if memory_gb is None else int(memory_gb * 1e9)
        request = TrainRequest(preset, recipe, minutes, memory, device, named, given)
        found, text = tell_plan(request, data, supported_targets, timed=time)
    if html is not None:
        from kotha.storage.atomic import write_page
        from kotha.training.plan.render import plan_page

        write_page(html, plan_page(found, text.settings))
    if as_json:
        print_json(found)
        return
    _print(text)


def _print(text: Any) -> None:
    from rich.cells import cell_len

    from kotha.training.plan.render import schedule_lines

    console = results()
    print_plan_tables(text.tables)
    for sentence in text.words:
        console.print(said(sentence), markup=False)
    *bars, ends = schedule_lines(text.settings)
    step, at = said(Message("step")), ends.index("step") + len("step")
    ends = " " * (at - cell_len(step)) + step + ends[at:]
    console.print("\n".join([said(Message("learning rate:")), *bars, ends]), markup=False)
    if text.commands:
        lines = ["", said(Message("to run it:")), *(f"  {line}" for line in text.commands)]
        console.print("\n".join(lines), markup=False, soft_wrap=True)
