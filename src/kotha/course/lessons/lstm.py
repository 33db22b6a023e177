"""Lesson: an LSTM of equal size beside the transformer, trained in the same time.

What attention bought is measured in three ways: the loss on held-out text, how many tokens are read in the time, and
the reach. For the reach the task is made up: say again the symbol that stood so many places back. A transformer looks
there; an LSTM must carry all symbols in between in one vector.
"""

import time
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from kotha.course.lessons.classroom import Sizes
from kotha.course.lessons.learning import Assignment, Puzzle, held_out_loss, learn, parameters_of
from kotha.course.lessons.measured import MeasuredLesson
from kotha.course.lessons.result import Condition, Line, Sample
from kotha.model.config import GPTConfig
from kotha.model.gpt import GPT

_SYMBOLS = 16
_NEAR, _FAR = 4, 16
_TRIED = 6  # steps by which the time of one is measured
_WIDEST = 1024


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


def echo(rows: int, length: int, back: int) -> Puzzle:
    """Random symbols, of which each is to be said again so many places later."""

    def draw(seed: list[int], count: int) -> Tensor:
        return torch.from_numpy(np.random.default_rng(seed).integers(0, _SYMBOLS, (count, length)))

    def answer(model: Any, symbols: Tensor) -> tuple[Tensor, Tensor]:
        return model(symbols)[:, back:], symbols[:, :-back]

    return Puzzle(draw, answer, rows, held_out=128)


def seconds_a_step(task: Assignment, sizes: Sizes) -> float:
    """How long a step keeps a core busy, the median of a few; what else the machine does is not counted."""
    times = [time.process_time()]
    tried = replace(task, steps=_TRIED, look=lambda model: 0.0)
    learn(tried, sizes, 0, lambda: times.append(time.process_time()))
    taken = np.diff(times)[1:]
    return float(sorted(taken)[len(taken) // 2])


class LstmLesson(MeasuredLesson):
    """The LSTM has as many steps as fit into the transformer's time; text, and saying again what stood near and far."""

    def tasks(self) -> dict[str, Assignment]:
        """Each of the two at each task: ``gpt_text``, ``lstm_far`` and so on."""
        sizes, found = self.sizes, {}
        small = self.room.gpt(vocab_size=_SYMBOLS, d_model=sizes.d_model // 2)
        for name in ("text", "near", "far"):
            config = self.room.gpt() if name == "text" else small
            pair: dict[str, Any] = {"gpt": partial(GPT, config), "lstm": partial(as_large_as, config)}
            for who, make in pair.items():
                is_text = name == "text"
                found[f"{who}_{name}"] = Assignment(make, self.room) if is_text else self.puzzle(name).task(make)
            seconds = {who: seconds_a_step(found[f"{who}_{name}"], sizes) for who in pair}
            fitting = max(1, round(sizes.steps * seconds["gpt"] / seconds["lstm"]))
            found[f"lstm_{name}"] = replace(found[f"lstm_{name}"], steps=fitting)
            self.about.setdefault("steps", {})[name] = {"gpt": sizes.steps, "lstm": fitting}
        return found

    def back(self, name: str) -> int:
        """How far back the symbols stand."""
        return min(_NEAR if name == "near" else _FAR, self.sizes.context_length // 2)

    def puzzle(self, name: str) -> Puzzle:
        """Saying again, near or far."""
        return echo(self.sizes.batch_size, self.sizes.context_length, self.back(name))

    def measure(self) -> tuple[list[Condition], list[Line], list[Sample]]:
        """Both models at all tasks."""
        found, reach = self.train(self.tasks()), ("near", "far")
        n_read = self.sizes.batch_size * self.sizes.context_length
        rows = []
        for who in ("gpt", "lstm"):
            texts = found[f"{who}_text"]
            said = {
                name: [self.puzzle(name).share_right(run.model) for run in found[f"{who}_{name}"]] for name in reach
            }
            figures = {
                "parameters": [parameters_of(run.model) for run in texts],
                "read": [float((run.task.steps or self.sizes.steps) * n_read) for run in texts],
                "held_out": [held_out_loss(run.model, self.windows) for run in texts],
                **said,
            }
            rows.append(Condition(who, self.words[who], figures))
        backs = {name: float(self.back(name)) for name in reach}
        self.about["places_back"] = backs
        return rows, [(row.title, [(backs[name], 100 * row.mean(name)) for name in reach]) for row in rows], []
