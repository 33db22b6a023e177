"""``kotha bench``: measure the speed of Kotha, compared with transformers on the same work."""

from typing import Annotated, Literal

from cyclopts import Parameter

from kotha.cli.terminal import Output, progress

Rounds = Annotated[int, Parameter(help="Number of rounds per implementation; the median is reported.")]


def train(
    *,
    preset: str = "pocket",
    batch_size: int = 8,
    precision: Literal["auto", "float32", "bfloat16"] = "auto",
    rounds: Rounds = 5,
) -> Output:
    """Measure training speed in tokens per second, compared with transformers.

    Kotha and transformers train the same model on the same tokens.

    Example: `kotha bench train --preset pocket`

    Args:
        preset: Preset name.
        batch_size: Sequences per step.
        precision: Precision of the matrix products.
    """
    from kotha.api.bench.workloads import bench_training

    with progress() as advance:
        found = bench_training(preset, batch_size, precision, rounds, advance)
    return Output(found, found.table())


def generate(
    run: str | None = None,
    /,
    *,
    preset: str | None = None,
    batch_size: int = 8,
    tokens: int = 64,
    weights: Literal["float32", "bfloat16", "int8"] = "float32",
    rounds: Rounds = 5,
) -> Output:
    """Measure generation speed in tokens per second, compared with transformers.

    Kotha and transformers use the same weights.

    Example: `kotha bench generate run --batch-size 8`

    Args:
        run: Run folder (default: an untrained model with the preset's sizes).
        preset: Preset name (default: pocket).
        batch_size: Texts per batch.
        tokens: Tokens per text.
        weights: Data type of the weights.
    """
    from kotha.api.bench.workloads import bench_writing

    with progress() as advance:
        found = bench_writing(run, preset, weights, batch_size, tokens, rounds, advance)
    return Output(found, found.table())


def tokenize(source: str | None = None, /, *, tokenizer: str | None = None, rounds: Rounds = 5) -> Output:
    """Measure tokenization speed in megabytes per second, compared with transformers.

    Kotha and transformers use the same tokenizer.

    Example: `kotha bench tokenize texts --tokenizer tok`

    Args:
        source: Text file or folder (default: the built-in stories).
        tokenizer: Tokenizer file, folder or hub name (default: a newly trained one).
    """
    from kotha.api.bench.workloads import bench_tokenizing

    with progress() as advance:
        found = bench_tokenizing(source, tokenizer, rounds, advance)
    return Output(found, found.table())
