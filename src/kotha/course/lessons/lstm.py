"""Lesson: an LSTM compared with a transformer of equal size, trained on the same tokens.

The lesson measures the held-out loss, the speed of training, and the reach. Only the speed depends on the machine.
Reach is measured on a synthetic task: repeat the symbol that occurred a fixed number of positions earlier. A
transformer can attend to that symbol, whereas an LSTM has to keep all symbols since then in one vector.
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
_TRIED = 20  # steps for timing, with each seed
_WIDEST = 1024


class Recurrent(nn.Module):
    """An LSTM language model (Hochreiter and Schmidhuber 1997): (B, T) -> (B, T, V)."""

    def __init__(self, vocab_size: int, width: int, n_layers: int) -> None:
        super().__init__()
        self.tokens = nn.Embedding(vocab_size, width)
        self.stack = nn.LSTM(width, width, n_layers, batch_first=True)
        self.head = nn.Linear(width, vocab_size, bias=False)

    def hidden(self, tokens: Tensor) -> Tensor:
        """Return the input to the head: (B, T) -> (B, T, C)."""
        y: Tensor = self.stack(self.tokens(tokens))[0]
        return y

    def forward(self, tokens: Tensor) -> Tensor:
        """Return the logits: (B, T) -> (B, T, V)."""
        logits: Tensor = self.head(self.hidden(tokens))
        return logits


def recurrent(config: GPTConfig) -> nn.Module:
    """Build an LSTM with as many layers and about as many parameters as a GPT."""
    # An LSTM layer has 8 width² parameters and a block has 12 width², so the LSTM is made wider.
    widths = range(1, min(_WIDEST, 2 * config.d_model) + 1)
    return as_large_as(lambda: GPT(config), lambda width: Recurrent(config.vocab_size, width, config.n_layers), widths)


def echo(rows: int, length: int, back: int) -> Puzzle:
    """Return the task of repeating each random symbol ``back`` positions later."""

    def draw(seed: tuple[int, ...], count: int) -> Tensor:
        return torch.from_numpy(np.random.default_rng(seed).integers(0, _SYMBOLS, (count, length)))

    def answer(model: Any, symbols: Tensor) -> tuple[Tensor, Tensor]:
        return model(symbols)[:, back:], symbols[:, :-back]

    return Puzzle(draw, answer, rows, held_out=128)


def seconds_per_step(task: Assignment, sizes: Sizes) -> float:
    """Return the median processor time of a few steps; other load on the machine does not affect it."""
    times = [time.process_time()]
    tried = replace(task, steps=_TRIED, look=lambda model: 0.0)
    learn(tried, sizes, 0, lambda: times.append(time.process_time()))
    taken = np.diff(times)[1:]
    return float(sorted(taken)[len(taken) // 2])


def lstm(lesson: MeasuredLesson) -> LessonPlan:
    """Train an LSTM and a transformer for as many steps on text, and on repeating recent and distant symbols."""
    sizes, tasks = lesson.sizes, dict[str, Assignment]()
    backs = {name: min(back, sizes.context_length // 2) for name, back in (("near", _NEAR), ("far", _FAR))}
    puzzles = {name: echo(sizes.batch_size, sizes.context_length, back) for name, back in backs.items()}
    for name in ("text", *puzzles):  # gpt_text, lstm_far and so on
        small = {} if name == "text" else {"vocab_size": _SYMBOLS, "d_model": sizes.d_model // 2}
        config = lesson.room.gpt(**small)
        for model, make in (("gpt", partial(GPT, config)), ("lstm", partial(recurrent, config))):
            tasks[f"{model}_{name}"] = puzzles[name].task(make) if name in puzzles else Assignment(make, lesson.room)
    n_read = sizes.batch_size * sizes.context_length

    def figures(runs: Mapping[str, Taught]) -> dict[str, dict[str, float]]:
        models = {key: run.model for key, run in runs.items()}
        return {
            model: {
                "parameters": parameters_of(models[f"{model}_text"]),
                "read": float(sizes.steps * n_read),
                "held_out": held_out_loss(models[f"{model}_text"], lesson.windows),
                **{name: puzzle.share_right(models[f"{model}_{name}"]) for name, puzzle in puzzles.items()},
                "speed": n_read / seconds_per_step(tasks[f"{model}_text"], sizes),
            }
            for model in ("gpt", "lstm")
        }

    return LessonPlan(
        tasks,
        figures=figures,
        lines=lambda rows: {
            key: [(float(back), 100 * row["means"][name]) for name, back in backs.items()] for key, row in rows.items()
        },
        about={"places_back": backs},
    )
