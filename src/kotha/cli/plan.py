"""``kotha plan``: what a model is made of and what its training takes, before it starts; and a design for a budget."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

from kotha.api.options import ClusterOptions, PlanOptions
from kotha.cli.flags import Flat, FlatMany, More, Page, from_words
from kotha.cli.spoken import said
from kotha.cli.terminal import Commands, Output, Table, status
from kotha.i18n.message import Message, Text

if TYPE_CHECKING:
    from kotha.api.plan import PlanText


def plan(
    *,
    options: Annotated[PlanOptions, Flat] = PlanOptions(),  # noqa: B008 - frozen
    set_: More = (),
    cluster: Annotated[ClusterOptions, FlatMany] = ClusterOptions(),  # noqa: B008
    html: Page = None,
) -> Output:
    """Count a model's parameters, work, memory and time, part by part.

    Backwards, a model that fits a budget: `kotha plan --memory-gb 4 --minutes 30 --data DATA`. On paper, many GPUs, for
    a preset or for 124 million to 7 billion parameters: `kotha plan --gpus 64 --nodes 8 --tokens 100B`.

    Args:
        html: Also write the plan as a page, with its schedule drawn.
    """
    from kotha.api import plan as api

    settings = from_words(set_)
    if cluster != ClusterOptions():
        on_paper, tables = api.plan_cluster(cluster, options, settings)
        return Output(on_paper, *_readable(tables))
    with status(Message("reading the text and timing a few small steps …")):
        found, text = api.plan(options, settings)
    if html is not None:
        api.write_page(html, api.plan_page(found, text.settings))
    commands = [Commands(Message("to run it:"), text.commands)] if text.commands else []
    return Output(found, *_readable(text.tables), *text.words, _schedule(text), *commands)


def _schedule(text: "PlanText") -> str:
    """The learning rate over the steps, drawn."""
    from rich.cells import cell_len

    from kotha.api.plan import schedule_lines

    *bars, ends = schedule_lines(text.settings)
    step, at = said(Message("step")), ends.index("step") + len("step")
    ends = " " * (at - cell_len(step)) + step + ends[at:]
    return "\n".join([said(Message("learning rate:")), *bars, ends])


def _readable(tables: Sequence[tuple[Text, list[Text], list[list[Text]]]]) -> list[Table | str]:
    """The tables of a plan; one with sentences in it is read from its left."""
    from rich.cells import cell_len

    from kotha.api.plan import has_sentences, in_columns

    return [
        in_columns(said(title), [[said(cell) for cell in row] for row in rows], cell_len)
        if has_sentences(rows)
        else Table(title, header, rows, labels=range(len(header)))
        for title, header, rows in tables
    ]
