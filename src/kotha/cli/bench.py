"""``kotha bench``: this machine's speed beside Hugging Face's implementation, and how the cost of training grows."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

from kotha.cli.flags import Json, flag, group, page
from kotha.cli.spoken import tell
from kotha.cli.terminal import progress, show
from kotha.i18n.message import Message


@group
@dataclass(frozen=True, kw_only=True)
class OfWork:
    """What is measured: one flag for each field."""

    preset: Annotated[str | None, flag("To train, and to generate without a run; left out: pocket.")] = None
    batch_size: Annotated[int | None, flag("Sequences in a step, or texts generated together; left out: 8.")] = None
    precision: Annotated[
        Literal["auto", "float32", "bfloat16"] | None, flag("To train: type of the products; left out: auto.")
    ] = None
    tokens: Annotated[int | None, flag("To generate: tokens of each text; left out: 64.")] = None
    weights: Annotated[
        Literal["float32", "bfloat16", "int8"] | None, flag("To generate: their type; left out: float32.")
    ] = None
    tokenizer: Annotated[str | None, flag("To tokenize: a file, folder or hub name; left out: a new one.")] = None
    rounds: Annotated[int | None, flag("Turns of each side; the median counts; left out: 5.")] = None


def bench(
    what: Annotated[Literal["train", "generate", "tokenize", "growth"], flag("What to measure.")],
    source: Annotated[str | None, flag("A run to generate with, or a text to tokenize; left out: new ones.")] = None,
    /,
    *,
    work: OfWork = OfWork(),  # noqa: B008 - frozen
    html: Annotated[Path | None, page("For growth: the page to write.")] = None,
    as_json: Json = False,
) -> None:
    """Measure this machine, ours and transformers turn by turn on the same work, and print the ratio.

    `kotha bench growth` measures how speed and memory of training change with width, depth, context and vocabulary,
    beside what `kotha plan` foretells: a few minutes, each model in a process of its own.
    """
    from kotha.api.bench.measure import Growth, check_fitting
    from kotha.api.bench.measure import bench as measure

    check_fitting(what, {"html": html})
    with progress() as advance:
        found = measure(what, source, on_progress=advance, **vars(work))
    if html is not None and isinstance(found, Growth):
        found.save(html)
        tell(Message("page in {path}", path=html))
    show(found, as_json, found.table())
