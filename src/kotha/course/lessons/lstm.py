"""Lesson: an LSTM of equal size beside the transformer, trained in the same time.

What attention bought is measured in three ways: the loss on held-out text, how many tokens are read in the time, and
the reach. For the reach the task is made up: say again the symbol that stood so many places back. A transformer looks
there; an LSTM must carry all symbols in between in one vector.
"""

import time
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from kotha.course.lessons.learning import Assignment, Puzzle, Taught, learn
from kotha.course.lessons.measures import as_large_as, held_out_loss, parameters_of
from kotha.course.lessons.runner import LessonPlan, MeasuredLesson
from kotha.course.lessons.training_data import Sizes
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


def recurrent(config: GPTConfig) -> nn.Module:
    """The recurrent model of as many layers whose number of parameters comes nearest to a GPT's."""
    # An LSTM layer has 8 width² where a block has 12, so it is the wider one.
    widths = range(1, min(_WIDEST, 2 * config.d_model) + 1)
    return as_large_as(lambda: GPT(config), lambda width: Recurrent(config.vocab_size, width, config.n_layers), widths)


def echo(rows: int, length: int, back: int) -> Puzzle:
    """Random symbols, of which each is to be said again so many places later."""

    def draw(seed: tuple[int, ...], count: int) -> Tensor:
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


def lstm(lesson: MeasuredLesson) -> LessonPlan:
    """The LSTM has as many steps as fit into the transformer's time; text, and saying again what stood near and far."""
    sizes, steps = lesson.sizes, {}
    tasks: dict[str, Assignment] = {}
    backs = {name: min(back, sizes.context_length // 2) for name, back in (("near", _NEAR), ("far", _FAR))}
    puzzles = {name: echo(sizes.batch_size, sizes.context_length, back) for name, back in backs.items()}
    for name in ("text", *puzzles):  # gpt_text, lstm_far and so on
        small = {} if name == "text" else {"vocab_size": _SYMBOLS, "d_model": sizes.d_model // 2}
        config = lesson.room.gpt(**small)
        pair = {
            who: puzzles[name].task(make) if name in puzzles else Assignment(make, lesson.room)
            for who, make in (("gpt", partial(GPT, config)), ("lstm", partial(recurrent, config)))
        }
        seconds = {who: seconds_a_step(task, sizes) for who, task in pair.items()}
        steps[name] = {"gpt": sizes.steps, "lstm": max(1, round(sizes.steps * seconds["gpt"] / seconds["lstm"]))}
        tasks |= {f"{who}_{name}": replace(task, steps=steps[name][who]) for who, task in pair.items()}

    def figures(runs: Mapping[str, Taught]) -> dict[str, dict[str, float]]:
        n_read, models = sizes.batch_size * sizes.context_length, {key: run.model for key, run in runs.items()}
        return {
            who: {
                "parameters": parameters_of(models[f"{who}_text"]),
                "read": float(steps["text"][who] * n_read),
                "held_out": held_out_loss(models[f"{who}_text"], lesson.windows),
                **{name: puzzle.share_right(models[f"{who}_{name}"]) for name, puzzle in puzzles.items()},
            }
            for who in ("gpt", "lstm")
        }

    return LessonPlan(
        tasks,
        figures=figures,
        lines=lambda rows: {
            key: [(float(back), 100 * row["means"][name]) for name, back in backs.items()] for key, row in rows.items()
        },
        about={"steps": steps, "places_back": backs},
    )
