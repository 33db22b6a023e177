"""Lesson: whom does সে refer to? The lesson measures what a trained model's heads attend to at a pronoun.

Examples are “শিক্ষক ঘাটে, রহিম মাঠে। সে রহিম।” and “শিক্ষক ঘাটে, রহিম মাঠে। তিনি শিক্ষক।” Bangla uses সে for a child
and তিনি for an adult; the order of the two people is random. After the pronoun the model has to name the person to whom
it refers. The lesson finds the heads with the most attention on the right person and silences them, to test whether the
answer depends on them.
"""

from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor

from kotha.course.lessons.learning import Puzzle
from kotha.course.lessons.runner import LessonPlan, MeasuredLesson
from kotha.inside.heads.importance import silence
from kotha.inside.hook_points import attentions
from kotha.inside.trace import trace
from kotha.model.evaluating import evaluating
from kotha.model.gpt import GPT

_CHILDREN = ("রহিম", "করিম", "সালমা", "রিনা", "অনিল", "মিতা", "জাহিদ", "তানিয়া")
_GROWN = ("শিক্ষক", "ডাক্তার", "নানি", "দাদি", "চাচা", "ফুফু", "ইমাম", "মাসি")
_PLACES = ("ঘাটে", "মাঠে", "হাটে", "ঘরে", "পথে", "বাগানে", "নৌকায়", "ছাদে")
_MARKS = (",", "।", "সে", "তিনি")
VOCABULARY = (*_CHILDREN, *_GROWN, *_PLACES, *_MARKS)
# Two people, each with a place and a punctuation mark; the pronoun; the answer.
PRONOUN, LENGTH = 6, 8
_PEOPLE = (0, 3)


def draw(seed: tuple[int, ...], rows: int) -> Tensor:
    """Draw texts about a child and an adult in random order, with a pronoun for one of them: (rows, T + 1)."""
    random = np.random.default_rng(seed)
    children = random.integers(0, len(_CHILDREN), rows)
    grown = random.integers(0, len(_GROWN), rows) + len(_CHILDREN)
    places = random.integers(0, len(_PLACES), (2, rows)) + len(_CHILDREN) + len(_GROWN)
    child_first, child_meant = (random.integers(0, 2, rows).astype(bool) for _ in range(2))
    comma, stop, he, honoured = (np.full(rows, VOCABULARY.index(mark)) for mark in _MARKS)
    first, second = np.where(child_first, children, grown), np.where(child_first, grown, children)
    pronoun, answer = np.where(child_meant, he, honoured), np.where(child_meant, children, grown)
    row = (first, places[0], comma, second, places[1], stop, pronoun, answer)
    return torch.from_numpy(np.stack(row, axis=1))


def spelled(row: Tensor) -> str:
    """Return a row of tokens as text."""
    text = " ".join(VOCABULARY[token] for token in row.tolist())
    for mark in (",", "।"):
        text = text.replace(f" {mark}", mark)
    return f"{text}।"


def answer(model: Any, rows: Tensor) -> tuple[Tensor, Tensor]:
    """Return the logits after the pronoun and the right person: (B, T + 1) -> (B, V), (B,)."""
    return model(rows[:, :-1])[:, PRONOUN], rows[:, -1]


def who_is_it(batch_size: int) -> Puzzle:
    """Return the task of naming the person to whom the pronoun refers."""
    return Puzzle(draw, answer, batch_size, held_out=512)


@torch.no_grad()
def looks(model: GPT, rows: Tensor) -> dict[str, tuple[float, float]]:
    """Return each head's attention from the pronoun to the right person and to the other person."""
    with evaluating(model), trace(model) as seen:
        model(rows[:, :-1])
    right = rows[:, _PEOPLE] == rows[:, -1:]  # (B, 2)
    found = {}
    for place, attention in attentions(model).items():
        weights = seen[f"{place}.weights"][:, :, PRONOUN, _PEOPLE]  # (B, H, 2)
        for column, head in enumerate(attention.heads):
            mine = weights[:, column]
            found[f"{place}.{head}"] = (
                (mine * right).sum(dim=1).mean().item(),
                (mine * ~right).sum(dim=1).mean().item(),
            )
    return found


def with_and_without(model: GPT, puzzle: Puzzle) -> dict[str, dict[str, float]]:
    """Measure accuracy with and without the pruned heads, and the attention of the best of the remaining heads."""
    rows = puzzle.windows()
    by_look = [name for name, _ in sorted(looks(model, rows).items(), key=lambda each: -each[1][0])]
    half, found = len(by_look) // 2, {}
    hardest, others = by_look[:half], by_look[half:]
    silenced = {"whole": [], "without_best": by_look[:1], "without": hardest, "without_other": others}
    for key, names in silenced.items():
        with silence(model, names):
            on_right, on_others = max(each for name, each in looks(model, rows).items() if name not in names)
            found[key] = {"right": puzzle.share_right(model), "on_right": on_right, "on_others": on_others}
    return found


def coreference(lesson: MeasuredLesson) -> LessonPlan:
    """Train one model per seed, then silence its strongest head, the stronger half of the heads, and the other half."""
    puzzle, n_layers = who_is_it(lesson.sizes.batch_size), max(2, lesson.sizes.n_layers)
    config = lesson.sizes.gpt(vocab_size=len(VOCABULARY), context_length=LENGTH, n_layers=n_layers)
    return LessonPlan(
        {"whole": puzzle.task(partial(GPT, config))},
        figures=lambda runs: with_and_without(runs["whole"].model, puzzle),
        samples={"example": spelled(puzzle.windows()[0])},
    )
