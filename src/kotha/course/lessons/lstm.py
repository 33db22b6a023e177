"""Lesson: an LSTM of equal size beside the transformer, trained in the same time.

What attention bought is measured in three ways: the loss on held-out text, how many tokens are read in the time, and
the reach. For the reach the task is made up: say again the symbol that stood so many places back. A transformer looks
there; an LSTM must carry all symbols in between in one vector.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
import torch
from torch import Tensor, nn

from kotha.course.lessons.classroom import Sizes
from kotha.course.lessons.learning import (
    Desk,
    Maker,
    Objective,
    Taught,
    held_out_loss,
    learn,
    next_tokens,
    parameters_of,
)
from kotha.course.lessons.occasion import Occasion
from kotha.course.lessons.result import Condition, LessonResult, Line, below
from kotha.course.lessons.wordbook import Wordbook
from kotha.i18n.message import Bilingual
from kotha.model.config import GPTConfig
from kotha.model.evaluating import evaluating
from kotha.model.gpt import GPT
from kotha.model.loss import next_token_loss

_WORDS = Wordbook("lstm")
_SYMBOLS = 16
_NEAR, _FAR = 4, 16
_TRIED = 6  # steps by which the time of one is measured
_WINDOWS = 128
_WIDEST = 1024
# What it asks for unless somebody asks for something else.
SIZES: dict[str, str | int] = {"optimizer": "adamw", "context_length": 48, "batch_size": 16, "steps": 240}
_FIGURES = (
    _WORDS.figure("parameters", 0, None),
    _WORDS.figure("read", 0, "high"),
    _WORDS.figure("held_out"),
    _WORDS.figure("near", 0, "high", percent=True),
    _WORDS.figure("far", 0, "high", percent=True),
)


class Recurrent(nn.Module):
    """An LSTM (Hochreiter and Schmidhuber 1997): all that was read in one vector, (B, T) -> (B, T, V)."""

    def __init__(self, vocab_size: int, width: int, n_layers: int) -> None:
        super().__init__()
        self.tokens = nn.Embedding(vocab_size, width)
        self.stack = nn.LSTM(width, width, n_layers, batch_first=True)
        self.head = nn.Linear(width, vocab_size, bias=False)

    def hidden(self, tokens: Tensor) -> Tensor:
        """What the head reads: (B, T) -> (B, T, C)."""
        y: Tensor = self.stack(self.tokens(tokens))[0]
        return y

    def forward(self, tokens: Tensor) -> Tensor:
        """Logits: (B, T) -> (B, T, V)."""
        logits: Tensor = self.head(self.hidden(tokens))
        return logits


def as_large_as(config: GPTConfig) -> Recurrent:
    """The recurrent model of as many layers whose number of parameters comes nearest to a GPT's."""
    with torch.device("meta"):
        wanted = parameters_of(GPT(config))
        # An LSTM layer has 8 width² where a block has 12, so it is the wider one.
        widths = range(1, min(_WIDEST, 2 * config.d_model) + 1)
        sizes = {width: parameters_of(Recurrent(config.vocab_size, width, config.n_layers)) for width in widths}
    best = min(sizes, key=lambda width: abs(sizes[width] - wanted))
    return Recurrent(config.vocab_size, best, config.n_layers)


@dataclass(frozen=True)
class Echo:
    """Random symbols, of which each is to be said again so many places later: (B, T)."""

    rows: int
    length: int
    back: int

    def batch(self, seed: int, step: int) -> Tensor:
        """The rows of a step."""
        return self._draw([seed, step], self.rows)

    def windows(self, most: int | None = None) -> Tensor:
        """Rows that no step reads."""
        return self._draw([2**31], _WINDOWS)

    def _draw(self, seed: list[int], rows: int) -> Tensor:
        return torch.from_numpy(np.random.default_rng(seed).integers(0, _SYMBOLS, (rows, self.length)))

    def loss(self, model: GPT, rows: Tensor, step: int = 0) -> Tensor:
        """The loss of what is said again."""
        hidden = model.hidden(rows)[:, self.back :]
        return next_token_loss(hidden, model.head.weight, rows[:, : -self.back].contiguous())

    @torch.no_grad()
    def share_right(self, model: GPT) -> float:
        """How many symbols are said again as they were."""
        rows = self.windows()
        with evaluating(model):
            said: Tensor = model(rows)[:, self.back :].argmax(dim=-1)
        return said.eq(rows[:, : -self.back]).float().mean().item()


@dataclass(frozen=True)
class Contest:
    """Something to learn: from what, by which loss, by which of the two."""

    desk: Desk
    objective: Objective
    makers: dict[str, Maker]


def seconds_a_step(make: Maker, task: Contest, sizes: Sizes) -> float:
    """How long a step keeps a core busy, the median of a few; what else the machine does is not counted."""
    taken: list[float] = []
    last = time.process_time()

    def note() -> None:
        nonlocal last
        now = time.process_time()
        taken.append(now - last)
        last = time.process_time()

    learn(make, task.desk, sizes.change(steps=_TRIED), 0, task.objective, lambda model: 0.0, note)
    return sorted(taken[1:])[len(taken[1:]) // 2]


def teach(occasion: Occasion) -> LessonResult:
    """Give the LSTM as many steps as fit into the transformer's time, train both, measure both."""
    sizes, tasks = occasion.sizes, tasks_of(occasion)
    steps = {name: steps_in_the_same_time(task, sizes) for name, task in tasks.items()}
    step = occasion.counter(len(occasion.seeds) * sum(sum(each.values()) for each in steps.values()))
    found: dict[str, dict[str, list[Taught]]] = {key: {name: [] for name in tasks} for key in ("gpt", "lstm")}
    for seed in occasion.seeds:
        for name, task in tasks.items():
            for key, make in task.makers.items():
                own = sizes.change(steps=steps[name][key])
                found[key][name].append(learn(make, task.desk, own, seed, task.objective, on_step=step, **_look(task)))
    windows = occasion.room.windows()
    conditions = [
        Condition(
            key,
            _WORDS[key],
            {
                "parameters": [parameters_of(run.model) for run in runs["text"]],
                "read": [float(steps["text"][key] * sizes.batch_size * sizes.context_length)] * len(runs["text"]),
                "held_out": [held_out_loss(run.model, windows) for run in runs["text"]],
                "near": [_echo(tasks["near"]).share_right(run.model) for run in runs["near"]],
                "far": [_echo(tasks["far"]).share_right(run.model) for run in runs["far"]],
            },
        )
        for key, runs in found.items()
    ]
    backs = {name: float(_echo(tasks[name]).back) for name in ("near", "far")}
    lines = [
        Line(each.title, [(backs[name], 100 * each.mean(name)) for name in ("near", "far")]) for each in conditions
    ]
    about, axes = {"steps": steps, "places_back": backs}, ("reach", "back", "percent")
    return _WORDS.result(_FIGURES, conditions, read(*conditions), lines, axes, from_zero=True, about=about)


def tasks_of(occasion: Occasion) -> dict[str, Contest]:
    """Text, and saying again what stood near and far."""
    sizes = occasion.sizes
    tasks = {"text": Contest(occasion.room, next_tokens, _pair(occasion.room.gpt()))}
    config = occasion.room.gpt(vocab_size=_SYMBOLS, d_model=sizes.d_model // 2)
    longest = sizes.context_length // 2
    for name, back in (("near", _NEAR), ("far", _FAR)):
        echo = Echo(sizes.batch_size, sizes.context_length, min(back, longest))
        tasks[name] = Contest(echo, echo.loss, _pair(config))
    return tasks


def _pair(config: GPTConfig) -> dict[str, Maker]:
    return {"gpt": partial(GPT, config), "lstm": partial(as_large_as, config)}


def _echo(task: Contest) -> Echo:
    assert isinstance(task.desk, Echo), "text is not said again"
    return task.desk


def _look(task: Contest) -> dict[str, Callable[[GPT], float]]:
    """What is measured on the way: nothing, where the loss on windows is not the task's."""
    return {"look": task.desk.share_right} if isinstance(task.desk, Echo) else {}


def steps_in_the_same_time(task: Contest, sizes: Sizes) -> dict[str, int]:
    """The transformer's steps, and how many of the LSTM's fit into their time."""
    seconds = {key: seconds_a_step(make, task, sizes) for key, make in task.makers.items()}
    return {"gpt": sizes.steps, "lstm": max(1, round(sizes.steps * seconds["gpt"] / seconds["lstm"]))}


def read(gpt: Condition, lstm: Condition) -> list[Bilingual]:
    """What the figures say, whatever they are."""
    losses = {"gpt": gpt.mean("held_out"), "lstm": lstm.mean("held_out")}
    verdict = "alike"
    if below(gpt, lstm, "held_out"):
        verdict = "gpt_wins"
    elif below(lstm, gpt, "held_out"):
        verdict = "lstm_wins"
    speed = _WORDS.say("speed", times=lstm.mean("read") / gpt.mean("read"))
    reach = {f"{who}_{how}": each.mean(how) for who, each in (("gpt", gpt), ("lstm", lstm)) for how in ("near", "far")}
    return [
        _WORDS.say(verdict, **losses),
        speed,
        _WORDS.say("reach_gpt" if below(lstm, gpt, "far") else "reach_open", **reach),
    ]
