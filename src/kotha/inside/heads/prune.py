"""Pruning heads: the least important ones leave the weights, and the smaller model is measured beside the whole one.

Left to choose, it takes the heads whose silence costs least (head ablation), each measured alone in the whole model,
all at once: two heads that stand in for each other look cheap both. Speeds are medians of a few rounds, and the two
models take turns in each, so that a machine with other work slows both.
"""

import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import torch

from kotha.artifacts.model_folder import WEIGHTS_FILE, check_place, find_model, load, save, stored_type
from kotha.errors import UsageError
from kotha.i18n.message import OnProgress, Option, Text
from kotha.inside.heads.importance import by_ablation, every_head, least_important, mean_loss, places_of
from kotha.inside.heads.kinds import Passage
from kotha.inside.heads.measuring import Examined, TextSource, batch_loss, gather
from kotha.inside.view import to_json
from kotha.model.pruning import remove_heads
from kotha.storage.status import exists

# A speed is steady after a few passages and a sentence or two.
_PASSAGES, _WRITTEN = 2, 32
Task = Callable[[], int]  # something to be timed; how many tokens it was


@dataclass(frozen=True, kw_only=True)
class Removal:
    """Which heads go, said in one way out of three."""

    heads: Sequence[str] | None = None  # by name
    keep: float | None = None  # all but this share, the most important ones
    count: int | None = None  # so many, the least important ones

    def __post_init__(self) -> None:
        if sum(each is not None for each in (self.heads, self.keep, self.count)) != 1:
            raise UsageError("say which heads go in one way: heads by name, the share to keep, or a count")
        if self.heads is not None and not self.heads:
            raise UsageError("heads names none; write them as blocks.0.attention.1 and blocks.1.attention.0")
        if self.keep is not None and not 0 < self.keep < 1:
            given = Option("keep", self.keep)
            raise UsageError("{keep} is no share of heads; use a number between 0 and 1, such as 0.75", keep=given)


@dataclass(frozen=True)
class Figures:
    """What a model needs, and what it gives for that."""

    heads: int
    loss_nats: float
    parameters: int
    megabytes: float
    reading_tokens_per_second: float  # through the whole model, a passage at a time
    writing_tokens_per_second: float | None  # one text at a time; only a GPT writes on


@dataclass(frozen=True)
class Pruned:
    """A smaller model folder, beside the one that it was made from."""

    out: Path
    text: Text  # what both were measured on
    removed: list[str]
    before: Figures
    after: Figures

    def to_dict(self) -> Any:
        """Ready for JSON."""
        return to_json(self)


def prune(
    run: Path,
    out: Path,
    removal: Removal,
    source: TextSource,
    writing: Callable[[Any, Sequence[int], int], Task],
    *,
    rounds: int = 5,
    overwrite: bool = False,
    on_progress: OnProgress | None = None,
) -> Pruned:
    """Write a model folder without some heads, and measure both; ``rounds`` of the speeds, the median counts.

    ``writing`` gives the task of a model to write so many tokens after a start.
    """
    if rounds < 1:
        raise UsageError("{rounds} measures nothing; use 1 or more", rounds=Option("rounds", rounds))
    if exists(out) and out.resolve() in (run.resolve(), find_model(run).resolve()):
        raise UsageError("{out} is the model itself, and it is measured beside the smaller one; name another", out=out)
    check_place(out, overwrite)
    examined = gather(load(run).widened(), source)
    removed = _chosen(examined, removal, on_progress)
    smaller = remove_heads(examined.bundle.model, removed)
    stored = stored_type(run)
    save(out, smaller, examined.tokenizer, overwrite=overwrite, stored=stored, chat=examined.bundle.chat)
    models = [examined.bundle.model, load(out).widened().model]
    speeds = _speeds(models, examined, writing, rounds)
    figures = [
        Figures(
            len(every_head(model)),
            mean_loss(model, examined.batches, batch_loss),
            sum(parameter.numel() for parameter in model.parameters()),
            (find_model(folder) / WEIGHTS_FILE).stat().st_size / 1e6,
            *speed,
        )
        for model, folder, speed in zip(models, (run, out), speeds, strict=True)
    ]
    return Pruned(out, examined.text, removed, *figures)


def _chosen(examined: Examined, removal: Removal, on_progress: OnProgress | None) -> list[str]:
    """The heads that are named, every one known; or the least important by ablation, in one go."""
    model = examined.bundle.model
    if removal.heads is not None:
        places_of(model, removal.heads)
        return list(removal.heads)
    n_heads = len(every_head(model))
    n_removed = n_heads - round(removal.keep * n_heads) if removal.keep is not None else removal.count
    assert n_removed is not None, "one of the three is there"
    least_important(dict.fromkeys(every_head(model), 0.0), n_removed)  # refused before the long wait
    return least_important(by_ablation(model, examined.batches, batch_loss, on_progress), n_removed)


def _speeds(
    models: Sequence[Any], examined: Examined, writing: Callable[[Any, Sequence[int], int], Task], rounds: int
) -> Iterator[tuple[float, float | None]]:
    """Tokens per second of each model, reading and, of a GPT, writing."""
    passages = examined.passages[:_PASSAGES]
    reading = _in_turns([partial(_read, model, passages) for model in models], rounds)
    wrote: Sequence[float | None] = [None] * len(models)
    if examined.bundle.config.family == "gpt":
        start = passages[0].tokens[:4].tolist()
        n_tokens = min(_WRITTEN, examined.context_length - len(start))
        wrote = _in_turns([writing(model, start, n_tokens) for model in models], rounds)
    return zip(reading, wrote, strict=True)


def _in_turns(tasks: Sequence[Task], rounds: int) -> list[float]:
    """Tokens per second of each task, the median of rounds; a first one warms up and does not count."""
    speeds: list[list[float]] = [[] for _ in tasks]
    for turn in range(rounds + 1):
        for task, found in zip(tasks, speeds, strict=True):
            start = time.perf_counter()
            tokens = task()
            if turn:
                found.append(tokens / (time.perf_counter() - start))
    return [statistics.median(found) for found in speeds]


def _read(model: Any, passages: Sequence[Passage]) -> int:
    """Read passages; how many tokens that was."""
    with torch.no_grad():
        for passage in passages:
            model(*passage.inputs)
    return sum(len(passage.tokens) for passage in passages)
