"""``kotha bench``: this machine's speed beside Hugging Face's implementation."""

from typing import Literal

from kotha.cli.flags import group
from kotha.cli.terminal import Output, progress


@group
class OfWork:
    """What is measured."""

    preset: str | None = None
    """To train, and to generate without a run; left out: pocket."""
    batch_size: int | None = None
    """Sequences in a step, or texts generated together; left out: 8."""
    precision: Literal["auto", "float32", "bfloat16"] | None = None
    """To train: type of the products; left out: auto."""
    tokens: int | None = None
    """To generate: tokens of each text; left out: 64."""
    weights: Literal["float32", "bfloat16", "int8"] | None = None
    """To generate: their type; left out: float32."""
    tokenizer: str | None = None
    """To tokenize: a file, folder or hub name; left out: a new one."""
    rounds: int | None = None
    """Turns of each side; the median counts; left out: 5."""


def bench(
    what: Literal["train", "generate", "tokenize"],
    source: str | None = None,
    /,
    *,
    work: OfWork = OfWork(),  # noqa: B008 - frozen
) -> Output:
    """Measure this machine, ours and transformers turn by turn on the same work, and print the ratio.

    Args:
        what: What to measure.
        source: A run to generate with, or a text to tokenize; left out: new ones.
    """
    from kotha.api.bench.measure import bench as measure

    with progress() as advance:
        found = measure(what, source, on_progress=advance, **vars(work))
    return Output(found, found.table())
