"""A model before and after, side by side on the same text: loss, size and speed.

Speeds are medians of a few rounds, and the two take turns in each, so that a machine with other work slows both.
"""

import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from kotha.inside.heads.measuring import Material

_WRITTEN = 96


@dataclass(frozen=True)
class Figures:
    """What a model needs, and what it gives for that."""

    heads: int
    loss_nats: float
    parameters: int
    megabytes: float
    reading_tokens_per_second: float
    """Through the whole model, a passage at a time."""
    writing_tokens_per_second: float | None
    """One text at a time; only a GPT writes on."""

    def to_dict(self) -> dict[str, Any]:
        """Ready for JSON."""
        return asdict(self)


def side_by_side(models: Sequence[Any], folders: Sequence[Path], material: Material, rounds: int) -> list[Figures]:
    """Measure models, each with the folder that it is stored in."""
    from kotha.bundle import WEIGHTS_FILE, find_model
    from kotha.inside.heads.importance import mean_loss
    from kotha.inside.heads.silence import every_head

    reading = _in_turns([_reader(model, material) for model in models], rounds)
    writing: Sequence[float | None] = [None] * len(models)
    if material.opened.config.family == "gpt":
        writing = _in_turns([_writer(model, material) for model in models], rounds)
    return [
        Figures(
            len(every_head(model)),
            mean_loss(model, material.batches, material.loss),
            sum(parameter.numel() for parameter in model.parameters()),
            (find_model(folder) / WEIGHTS_FILE).stat().st_size / 1e6,
            read,
            wrote,
        )
        for model, folder, read, wrote in zip(models, folders, reading, writing, strict=True)
    ]


def _in_turns(tasks: Sequence[Callable[[], int]], rounds: int) -> list[float]:
    """Tokens a second of each task, the median of rounds; a first one warms up and does not count."""
    speeds: list[list[float]] = [[] for _ in tasks]
    for turn in range(rounds + 1):
        for task, found in zip(tasks, speeds, strict=True):
            start = time.perf_counter()
            tokens = task()
            if turn:
                found.append(tokens / (time.perf_counter() - start))
    return [statistics.median(found) for found in speeds]


def _reader(model: Any, material: Material) -> Callable[[], int]:
    import torch

    few = material.passages[:4]

    def read() -> int:
        with torch.no_grad():
            for passage in few:
                sides = (passage.tokens,) if passage.source is None else (passage.source, passage.tokens)
                model(*(side[None] for side in sides))
        return sum(len(passage.tokens) for passage in few)

    return read


def _writer(model: Any, material: Material) -> Callable[[], int]:
    from kotha.generate.answers import Request
    from kotha.generate.engine import Engine
    from kotha.generate.settings import SamplingSettings

    engine = Engine(model, None, max_batch=1, weights="float32")
    start = tuple(material.passages[0].tokens[:4].tolist())
    n_tokens = min(_WRITTEN, model.config.context_length - len(start))

    def write() -> int:
        return engine.generate([Request(prompt=start, tokens=n_tokens, settings=SamplingSettings(top_k=1))])[0].tokens

    return write
