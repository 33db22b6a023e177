"""Lesson: who is সে? What the heads of a trained model look at where the pronoun stands.

“শিক্ষক ঘাটে, রহিম মাঠে। সে রহিম।” and “শিক্ষক ঘাটে, রহিম মাঠে। তিনি শিক্ষক।” Bangla says সে of a child and তিনি of a
grown person; who comes first is drawn. So behind the pronoun the model must find, among the two people, the one whom
the pronoun fits.
The heads that look hardest at the right one are found, and then silenced, to see whether the answer hung on them.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.functional import cross_entropy

from kotha.course.lessons.classroom import Sizes
from kotha.course.lessons.learning import Taught, curves, learn_all
from kotha.course.lessons.occasion import Occasion
from kotha.course.lessons.result import Condition, LessonResult, Sample, below
from kotha.course.lessons.wordbook import Wordbook
from kotha.i18n.message import Bilingual
from kotha.inside.heads.importance import silence
from kotha.inside.hook_points import attentions
from kotha.inside.trace import trace
from kotha.model.config import GPTConfig
from kotha.model.evaluating import evaluating
from kotha.model.gpt import GPT

_WORDS = Wordbook("coreference")
_CHILDREN = ("রহিম", "করিম", "সালমা", "রিনা", "অনিল", "মিতা", "জাহিদ", "তানিয়া")
_GROWN = ("শিক্ষক", "ডাক্তার", "নানি", "দাদি", "চাচা", "ফুফু", "ইমাম", "মাসি")
_PLACES = ("ঘাটে", "মাঠে", "হাটে", "ঘরে", "পথে", "বাগানে", "নৌকায়", "ছাদে")
_MARKS = (",", "।", "সে", "তিনি")
VOCABULARY = (*_CHILDREN, *_GROWN, *_PLACES, *_MARKS)
# Two people, each with a place and a mark; the pronoun; and the answer.
PRONOUN, LENGTH = 6, 8
_PEOPLE = (0, 3)
_WINDOWS = 512
# What it asks for unless somebody asks for something else.
SIZES = {"d_model": 32, "steps": 300}
_FIGURES = (
    _WORDS.figure("right", 0, "high", percent=True),
    _WORDS.figure("on_right", 0, None, percent=True),
    _WORDS.figure("on_others", 0, None, percent=True),
)


# The whole model, and what was taken from it.
_TAKEN = ("whole", "without_best", "without", "without_other")
_KEYS = [figure.key for figure in _FIGURES]


@dataclass(frozen=True)
class WhoIsIt:
    """Small texts of a child and a grown person: (B, T + 1), the answer last."""

    rows: int

    def batch(self, seed: int, step: int) -> Tensor:
        """The texts of a step."""
        return torch.from_numpy(draw([seed, step], self.rows))

    def windows(self, most: int | None = None) -> Tensor:
        """Texts that are drawn for no step."""
        return torch.from_numpy(draw([2**31], _WINDOWS if most is None else min(most, _WINDOWS)))


def draw(seed: Sequence[int], rows: int) -> NDArray[np.int64]:
    """Texts as token ids: the two in an order that is drawn, and the pronoun of one of them."""
    random = np.random.default_rng(list(seed))
    children = random.integers(0, len(_CHILDREN), rows)
    grown = random.integers(0, len(_GROWN), rows) + len(_CHILDREN)
    places = random.integers(0, len(_PLACES), (2, rows)) + len(_CHILDREN) + len(_GROWN)
    child_first, child_meant = (random.integers(0, 2, rows).astype(bool) for _ in range(2))
    comma, stop, he, honoured = (np.full(rows, VOCABULARY.index(mark)) for mark in _MARKS)
    first, second = np.where(child_first, children, grown), np.where(child_first, grown, children)
    pronoun, answer = np.where(child_meant, he, honoured), np.where(child_meant, children, grown)
    return np.stack((first, places[0], comma, second, places[1], stop, pronoun, answer), axis=1)


def spelled(row: Tensor) -> str:
    """A text in words."""
    text = " ".join(VOCABULARY[token] for token in row.tolist())
    for mark in (",", "।"):
        text = text.replace(f" {mark}", mark)
    return f"{text}।"


def named(model: GPT, rows: Tensor, step: int = 0) -> Tensor:
    """The loss of the person behind the pronoun."""
    return cross_entropy(model(rows[:, :-1])[:, PRONOUN], rows[:, -1])


@torch.no_grad()
def share_right(model: GPT, rows: Tensor) -> float:
    """How often the right person is found likeliest."""
    with evaluating(model):
        said: Tensor = model(rows[:, :-1])[:, PRONOUN].argmax(dim=-1)
    return said.eq(rows[:, -1]).float().mean().item()


@torch.no_grad()
def looks(model: GPT, rows: Tensor) -> dict[str, tuple[float, float]]:
    """Of each head: how much of its attention at the pronoun goes to the right person, and how much to the other."""
    with evaluating(model), trace(model) as seen:
        model(rows[:, :-1])
    right = rows[:, _PEOPLE] == rows[:, -1:]  # (B, 2), who is meant
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


def teach(occasion: Occasion) -> LessonResult:
    """Train one model a seed, find its heads, and silence the one that looks hardest, that half, the other half."""
    desk = WhoIsIt(occasion.sizes.batch_size)
    rows = desk.windows()
    found = learn_all(
        occasion,
        {"whole": lambda: make(occasion.sizes)},
        desk,
        objective=named,
        look=lambda model: share_right(model, rows),
    )
    measured: dict[str, list[tuple[float, float, float]]] = {key: [] for key in _TAKEN}
    for run in found["whole"]:
        for key, figures in _with_and_without(run, rows).items():
            measured[key].append(figures)
    conditions = [
        Condition(
            key,
            _WORDS[key],
            {name: list(values) for name, values in zip(_KEYS, zip(*figures, strict=True), strict=True)},
        )
        for key, figures in measured.items()
    ]
    samples, axes = [Sample(_WORDS["example"], spelled(rows[0]))], ("learning", "steps", "share")
    lines = curves(found, conditions[:1])
    return _WORDS.result(_FIGURES, conditions, read(*conditions), lines, axes, from_zero=True, samples=samples)


def _with_and_without(run: Taught, rows: Tensor) -> dict[str, tuple[float, float, float]]:
    """The share of right answers of the whole model and without some heads, and where the best that is left looks."""
    by_look = [name for name, _ in sorted(looks(run.model, rows).items(), key=lambda each: -each[1][0])]
    half, found = len(by_look) // 2, {}
    taken = {"whole": [], "without_best": by_look[:1], "without": by_look[:half], "without_other": by_look[half:]}
    for key in _TAKEN:
        with silence(run.model, taken[key]):
            left = looks(run.model, rows)
            best = max(figures for name, figures in left.items() if name not in taken[key])
            found[key] = (share_right(run.model, rows), *best)
    return found


def make(sizes: Sizes) -> GPT:
    """A GPT for these texts."""
    return GPT(
        GPTConfig(
            vocab_size=len(VOCABULARY),
            context_length=LENGTH,
            d_model=sizes.d_model,
            n_layers=max(2, sizes.n_layers),
            n_heads=sizes.n_heads,
            attention_bias=False,
            tied_head=False,
        )
    )


def read(whole: Condition, without_best: Condition, without: Condition, without_other: Condition) -> list[Bilingual]:
    """What the figures say, whatever they are."""
    learned = min(whole.figures["right"]) > 0.9
    looks_there = whole.mean("on_right") > whole.mean("on_others")
    needed = below(without, without_other, "right")
    said = [_WORDS.say("learned" if learned else "not_yet", right=whole.mean("right"), guess=0.5)]
    seen = {"on_right": whole.mean("on_right"), "on_others": whole.mean("on_others")}
    said.append(_WORDS.say("looks" if looks_there else "looks_elsewhere", **seen))
    shares = {
        "best": without_best.mean("right"),
        "without": without.mean("right"),
        "other": without_other.mean("right"),
    }
    return [*said, _WORDS.say("needed" if needed else "spread", **shares)]
