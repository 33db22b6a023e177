"""``kotha bench``: this machine's speed beside Hugging Face's implementation, turn by turn on the same work."""

from typing import Annotated, Literal

from cyclopts import Parameter

from kotha.cli.terminal import Output, progress

Rounds = Annotated[int, Parameter(help="Turns of each side; the median counts.")]


def train(
    *,
    preset: str = "pocket",
    batch_size: int = 8,
    precision: Literal["auto", "float32", "bfloat16"] = "auto",
    rounds: Rounds = 5,
) -> Output:
    """Tokens that are learned from in a second.

    Args:
        preset: Exact name of a preset.
        batch_size: Sequences in a step.
        precision: Type of the products.
    """
    from kotha.api.bench.sides import bench_training

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
    """Tokens that are written in a second.

    Args:
        run: A run; left out: a model of the preset's sizes.
        preset: Exact name of a preset; left out: pocket.
        batch_size: Texts written together.
        tokens: Tokens of each text.
        weights: Their type.
    """
    from kotha.api.bench.sides import bench_writing

    with progress() as advance:
        found = bench_writing(run, preset, weights, batch_size, tokens, rounds, advance)
    return Output(found, found.table())


def tokenize(source: str | None = None, /, *, tokenizer: str | None = None, rounds: Rounds = 5) -> Output:
    """Megabytes of text that become tokens in a second.

    Args:
        source: A text; left out: stories.
        tokenizer: A file, folder or hub name; left out: a new one.
    """
    from kotha.api.bench.sides import bench_tokenizing

    with progress() as advance:
        found = bench_tokenizing(source, tokenizer, rounds, advance)
    return Output(found, found.table())
