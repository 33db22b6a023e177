"""How cost grows: tokens a second and memory of training, as a model gets wider, deeper, longer or richer in words.

One size grows at a time from a small model, with as many tokens in every step. Each point is measured in a process of
its own, because a process keeps what it once took, and stands beside what ``kotha plan`` foretells for it.
"""

import multiprocessing
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

from kotha.api.bench.sides import alike, our_step
from kotha.api.bench.turns import Turns, take_turns
from kotha.errors import ConfigError
from kotha.i18n.message import Message, OnProgress, Plural, Text
from kotha.i18n.numbers import Size
from kotha.model.config import GPTConfig
from kotha.model.presets import MODERN
from kotha.report.document import Block, Columns, Curves, DrawnLine, Heading, Report
from kotha.report.table import Table
from kotha.storage.atomic import write_page
from kotha.training.device import choose_arithmetic, describe_machine, peak_memory
from kotha.training.plan.memory import how_planned, plan_memory
from kotha.training.plan.step_time import predict_seconds_per_step

_ROUNDS = 9  # of a tenth of a second or more
_HEAD = 32  # the width of a head
_GROWN = ("width", "depth", "context", "vocabulary")


class Start(NamedTuple):
    """Where all sizes begin to grow, and by what."""

    width: int
    depth: int
    context: int
    words: int
    tokens: int  # of a step
    factors: tuple[int, ...] = (1, 2, 4, 8)


# A size that a second is enough for, at the end of each line too.
STARTS = {"cpu": Start(64, 1, 64, 1024, 512), "cuda": Start(256, 2, 128, 4096, 16_384)}


@dataclass(frozen=True)
class Cost:
    """One model's training: measured, and foretold before."""

    grown: str  # width, depth, context or vocabulary
    size: int
    tokens_per_second: float
    memory_bytes: int
    foretold_tokens_per_second: float
    foretold_memory_bytes: int


@dataclass(frozen=True)
class Growth:
    """All costs, and what they were measured on."""

    costs: list[Cost]
    start: Start
    machine: dict[str, Any]
    precision: str

    def to_dict(self) -> dict[str, Any]:
        """All of it, ready for JSON."""
        return {**asdict(self), "start": self.start._asdict()}

    def lines(self) -> dict[str, list[Cost]]:
        """The costs of each size that grew."""
        return {name: [cost for cost in self.costs if cost.grown == name] for name in _GROWN}

    def save(self, path: Path) -> None:
        """Write one offline page."""
        write_page(path, self.document().html())

    def table(self) -> Table:
        """A row for each model."""
        foretold = Message("foretold")
        header: list[Text] = ["", Message("tokens a second"), foretold, Message("memory"), foretold]
        rows: list[list[Text]] = [
            [
                f"{cost.grown} {cost.size:,}",
                f"{cost.tokens_per_second:,.4g}",
                f"{cost.foretold_tokens_per_second:,.4g}",
                Message("{size}", size=Size(cost.memory_bytes)),
                Message("{size}", size=Size(cost.foretold_memory_bytes)),
            ]
            for cost in self.costs
        ]
        return Table(Message("how the cost of training grows"), header, rows)

    def document(self) -> Report:
        """Two charts for each size, measured and foretold on the same axes."""
        at = self.start
        lead = Message(
            "From {layers} of {width}, context {context} and {words:,} words, one size grows at a time; {tokens:,} "
            "tokens a step in {precision} on {machine}, each model in a process of its own.",
            layers=Plural("{n} layer", "{n:,} layers", n=at.depth),
            width=at.width,
            context=at.context,
            words=at.words,
            tokens=at.tokens,
            precision=self.precision,
            machine=self.machine.get("gpu", self.machine["processor"]),
        )
        blocks: list[Block] = []
        for name, costs in self.lines().items():
            blocks += [Heading(Message(name)), Columns(list(_charts(Message(name), costs)))]
        foretold = Message("Foretold is what `kotha plan` says.")
        return Report(Message("How the cost of training grows"), [lead, foretold], blocks, [Message("Made by Kotha.")])


def measure_growth(precision: Any, tell: OnProgress, device: str | None = None, start: Start | None = None) -> Growth:
    """Measure every point; takes a few minutes."""
    how = choose_arithmetic(precision, device)
    start = start or STARTS[how.device.type]
    points = [(name, *each) for name, models in grown_models(start).items() for each in models]
    costs = []
    for done, (name, grown, model) in enumerate(points):
        tell(Message("measuring"), done, len(points))
        costs.append(Cost(name, grown, *_elsewhere(_measure, model, start.tokens, how.precision, str(how.device))))
    tell(Message("measuring"), len(points), len(points))
    return Growth(costs, start, describe_machine(how.device), how.precision)


def grown_models(start: Start) -> dict[str, list[tuple[int, GPTConfig]]]:
    """For each size its values and the models that have them.

    >>> [value for value, _ in grown_models(STARTS["cpu"])["depth"]]
    [1, 2, 4, 8]
    """
    first = {"d_model": start.width, "n_layers": start.depth, "context_length": start.context}
    first["vocab_size"] = start.words

    def models(name: str) -> Iterator[tuple[int, GPTConfig]]:
        for factor in start.factors:
            sizes: Any = {**first, name: first[name] * factor}
            width = sizes["d_model"]
            yield sizes[name], GPTConfig(**sizes, n_heads=width // _HEAD, d_ff=3 * width, **MODERN)

    return {grown: list(models(name)) for grown, name in zip(_GROWN, first, strict=True)}


def _elsewhere(work: Callable[..., Any], *arguments: Any) -> Any:
    """What a function gives in a new process."""
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
        return pool.submit(work, *arguments).result()


def _measure(model: GPTConfig, tokens: int, precision: Any, device: str) -> tuple[float, int, float, int]:
    """Tokens a second and bytes of a model's training, measured and foretold."""
    how = choose_arithmetic(precision, device)
    batch_size = tokens // model.context_length
    if not batch_size:
        told = "{tokens} tokens a step are fewer than a sequence of {length}"
        raise ConfigError(told, tokens=tokens, length=model.context_length)
    settings = alike(batch_size, how)
    outcome = Turns("", "tokens", tokens)
    take_turns(outcome, {"kotha": partial(our_step, model, settings, how)}, how.device, _ROUNDS, lambda *_: None)
    seconds = median(outcome.seconds["kotha"])
    peak = peak_memory(how.device)
    foretold = predict_seconds_per_step(model, settings, batch_size, model.context_length, how)
    plan = plan_memory(model, settings, batch_size, how_planned(model, settings, how))
    return tokens / seconds, peak, tokens / foretold, plan.total


def _charts(name: Message, costs: list[Cost]) -> Iterator[list[Block]]:
    """Speed and memory over the size that grew, measured and foretold."""
    first, last = costs[0], costs[-1]
    slower = first.tokens_per_second / last.tokens_per_second
    grown = {"n": last.size / first.size, "what": name}
    longer = Message("{n:.0f} times the {what}: {times:.3g} times as long.", times=slower, **grown)
    more = Message("{n:.0f} times the {what}: {size} more.", size=Size(last.memory_bytes - first.memory_bytes), **grown)
    for figure, unit, scale, caption in (
        ("tokens_per_second", Message("tokens a second"), 1.0, longer),
        ("memory_bytes", Message("MB"), 1e6, more),
    ):
        lines = [
            DrawnLine(Message(told), [(cost.size, getattr(cost, key) / scale) for cost in costs], place, "dots")
            for place, (told, key) in enumerate([("measured", figure), ("foretold", f"foretold_{figure}")], 1)
        ]
        title = Message("{what} over {where}", what=unit, where=name)
        yield [Curves(title, name, unit, lines, caption=[caption], from_zero=True)]
