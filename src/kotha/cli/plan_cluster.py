"""The part of ``kotha plan`` that is on paper: many GPUs, with everything that was assumed."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

from cyclopts import Parameter

from kotha.cli.flags import flag
from kotha.cli.spoken import said
from kotha.cli.terminal import print_json, results, table
from kotha.errors import UsageError
from kotha.i18n.message import Text

_GPU = "h200"


@Parameter(name="*")
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

    @property
    def asked(self) -> bool:
        """Is it about many GPUs?"""
        return any(getattr(self, name) not in (None, ()) for name in ("gpus", "nodes", "tokens", "network", "storage"))


def plan_on_paper(
    cluster: OfCluster,
    preset: str | None,
    recipe: str,
    gpu: str | None,
    given: Mapping[str, Any],
    other: Mapping[str, Any],
    as_json: bool,
) -> None:
    """Tell what a cluster would need and give; ``other`` flags have no place there."""
    from kotha.model.config import GPTConfig
    from kotha.training.plan.cluster import NETWORK, PER_NODE, STORAGE, Cluster, read_tokens, tell_cluster
    from kotha.training.plan.gpus import gpu_named
    from kotha.training.settings import TrainRequest, choose_settings

    if cluster.gpus is None:
        raise UsageError("--nodes, --tokens, --network and --storage are for many GPUs; say how many with --gpus")
    misplaced = next((name for name, value in other.items() if value is not None), None)
    if misplaced is not None:
        raise UsageError("{misplaced} has no place in a plan for many GPUs; leave it out", misplaced=misplaced)
    machines = Cluster(
        gpu_named(gpu or _GPU),
        cluster.gpus,
        cluster.nodes if cluster.nodes is not None else -(-cluster.gpus // PER_NODE),
        NETWORK if cluster.network is None else cluster.network * 1e9 / 8,
        STORAGE if cluster.storage is None else cluster.storage * 1e9,
    )
    # Muon's products are not counted here, so the modern recipe gives way to AdamW's.
    plain = "classic" if recipe == "modern" else recipe
    changes = {name: value for name, value in given.items() if name not in ("batch_size", "micro_batch_size")}
    choice = choose_settings(TrainRequest(preset, plain, changes={**changes, "steps": 1}))
    if not isinstance(choice.model, GPTConfig):
        raise UsageError(
            "many GPUs are planned for a gpt, and {preset} is a {family}", preset=preset, family=choice.model.family
        )
    found, tables = tell_cluster(
        None if preset is None else choice.model,
        choice.settings,
        machines,
        read_tokens(cluster.tokens),
        given.get("batch_size"),
        given.get("context_length"),
    )
    if as_json:
        print_json(found)
        return
    print_plan_tables(tables)


def print_plan_tables(tables: Sequence[tuple[Text, list[Text], list[list[Text]]]]) -> None:
    """The tables of a plan; one with sentences in it is read from its left."""
    from rich.cells import cell_len

    from kotha.training.plan.render import has_sentences, in_columns

    console = results()
    for title, header, rows in tables:
        if has_sentences(rows):
            spoken = [[said(cell) for cell in row] for row in rows]
            console.print(in_columns(said(title), spoken, cell_len), markup=False)
        else:
            console.print(table(title, header, rows, labels=True))
