"""``kotha bench``: this machine's speed beside Hugging Face's implementation."""

from typing import Annotated, Literal

from kotha.api.options import BenchOptions
from kotha.cli.options import Flat
from kotha.cli.terminal import Output, progress


def bench(
    what: Literal["train", "generate", "tokenize"],
    source: str | None = None,
    /,
    *,
    options: Annotated[BenchOptions, Flat] = BenchOptions(),  # noqa: B008 - frozen
) -> Output:
    """Measure this machine, ours and transformers turn by turn on the same work, and print the ratio.

    Args:
        what: What to measure.
        source: A run to generate with, or a text to tokenize; left out: new ones.
    """
    from kotha.api.bench.measure import bench as measure

    with progress() as advance:
        found = measure(what, source, options, advance)
    return Output(found, found.table())
