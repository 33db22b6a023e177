"""Lesson: what self-attention and cross-attention do in a translator, by silencing all heads of each kind.

The translator reads three words of a small language (thing, colour, number) and writes a phrase (number, colour, thing,
sign for one or many). The grammar is known: a phrase is grammatical if every word is of the right kind
and the sign agrees with the number that was written. The phrase is right if it is the translation of the source.
"""

import itertools
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor

from kotha.course.lessons.learning import Puzzle
from kotha.course.lessons.runner import LessonPlan, MeasuredLesson
from kotha.inside.heads.importance import every_head, silence
from kotha.model.config import Seq2SeqConfig
from kotha.model.evaluating import evaluating
from kotha.model.seq2seq import Seq2Seq

# Tokens: the start, the words of the source, then those of the phrase, then the signs for one and for many.
_KINDS = {"number": 6, "colour": 8, "thing": 12}
_WORDS = sum(_KINDS.values())
_START, _ONE = 0, 1 + 2 * _WORDS
VOCABULARY = _ONE + 2
_SOURCE, _TARGET = 3, 4
HEADS = {"encoder": "encoder.*.attention", "decoder": "decoder.*.attention", "cross": "decoder.*.cross"}


def draw(seed: tuple[int, ...], rows: int) -> Tensor:
    """Draw phrases: the source, the start token, and the translation: (rows, 3 + 1 + 4)."""
    random = np.random.default_rng(seed)
    number, colour, thing = (
        random.integers(0, size, rows) + start for start, size in zip(_starts(), _KINDS.values(), strict=True)
    )
    sign = np.where(number == _starts()[0], _ONE, _ONE + 1)
    phrase = (number + _WORDS, colour + _WORDS, thing + _WORDS, sign)
    return torch.from_numpy(np.stack((thing, colour, number, np.full(rows, _START), *phrase), axis=1))


def _starts() -> list[int]:
    """Return the first source token of each kind."""
    return list(itertools.accumulate([1, *_KINDS.values()][:-1]))


def answer(model: Any, rows: Tensor) -> tuple[Tensor, Tensor]:
    """Return the logits and the right tokens of the phrase: (B, 8) -> (B, 4, V), (B, 4)."""
    return model(rows[:, :_SOURCE], rows[:, _SOURCE:-1]), rows[:, _SOURCE + 1 :]


@torch.no_grad()
def written(model: Seq2Seq, rows: Tensor) -> Tensor:
    """Translate greedily, from the model's own words: (B, 8) -> (B, 4)."""
    phrase = rows[:, _SOURCE : _SOURCE + 1]
    with evaluating(model):
        for _ in range(_TARGET):
            best = model(rows[:, :_SOURCE], phrase)[:, -1:].argmax(dim=-1)
            phrase = torch.cat((phrase, best), dim=1)
    return phrase[:, 1:]


def grammatical(phrases: Tensor) -> Tensor:
    """Return which phrases follow the grammar, whatever their source: (B, 4) -> (B,)."""
    right = torch.ones(len(phrases), dtype=torch.bool)
    for column, (start, size) in enumerate(zip(_starts(), _KINDS.values(), strict=True)):
        word = phrases[:, column] - _WORDS
        right &= (word >= start) & (word < start + size)
    sign = torch.where(phrases[:, 0] - _WORDS == _starts()[0], _ONE, _ONE + 1)
    return right & (phrases[:, 3] == sign)


def heads_of(model: Seq2Seq, kind: str) -> list[str]:
    """Return the names of all heads of a kind: encoder, decoder or cross."""
    stack, _, part = HEADS[kind].split(".")
    return [name for name in every_head(model) if name.startswith(f"{stack}.") and f".{part}." in name]


def figures_of(model: Seq2Seq, rows: Tensor) -> dict[str, dict[str, float]]:
    """Measure the phrases of the whole model, and without all heads of each kind."""
    found = {}
    for key in ("whole", *HEADS):
        with silence(model, [] if key == "whole" else heads_of(model, key)):
            phrases = written(model, rows)
        right = (phrases == rows[:, _SOURCE + 1 :]).all(dim=1)
        shares = {"right": right, "grammatical": grammatical(phrases)}
        found[key] = {name: share.float().mean().item() for name, share in shares.items()}
        found[key]["different"] = float(len({tuple(phrase) for phrase in phrases.tolist()}))
    return found


def cross(lesson: MeasuredLesson) -> LessonPlan:
    """Train one translator per seed, then silence all heads of each kind of attention."""
    sizes = lesson.sizes
    puzzle = Puzzle(draw, answer, sizes.batch_size, held_out=256)
    names = ("d_model", "n_layers", "n_heads", "context_length")
    config = Seq2SeqConfig(
        vocab_size=VOCABULARY, n_decoder_layers=sizes.n_layers, **{name: getattr(sizes, name) for name in names}
    )
    return LessonPlan(
        {"whole": puzzle.task(partial(Seq2Seq, config))},
        figures=lambda runs: figures_of(runs["whole"].model, puzzle.windows()),
    )
