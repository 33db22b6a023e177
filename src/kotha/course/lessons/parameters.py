"""Lesson: how many parameters the attention of a layer has, by the formula and by counting what torch made.

Nothing is trained. A layer is built as the model builds it, and its numbers are counted.
"""

from dataclasses import dataclass
from typing import Any

import torch

from kotha.course.lessons.occasion import Occasion
from kotha.course.lessons.result import Condition, LessonResult, Line
from kotha.course.lessons.wordbook import Wordbook
from kotha.i18n.message import Bilingual
from kotha.model.block import Block
from kotha.model.config import BlockConfig

_WORDS = Wordbook("parameters")
_WIDTH, _HEADS = 512, 8  # the course's question
_WIDTHS = (128, 256, 384, 512, 768, 1024)
_CONDITIONS: dict[str, dict[str, Any]] = {
    "course": {},
    "one_head": {"n_heads": 1},
    "more_heads": {"n_heads": 16},
    "biases": {"attention_bias": True},
    "shared": {"n_kv_heads": 2},
    "twice_as_wide": {"d_model": 2 * _WIDTH},
}
_FIGURES = (
    _WORDS.figure("formula", 0, None),
    _WORDS.figure("counted", 0, None),
    _WORDS.figure("feedforward", 0, None),
)


@dataclass(frozen=True)
class LayerCount:
    """What a layer has."""

    attention: int
    feedforward: int


def by_formula(config: BlockConfig) -> int:
    """Four matrices: queries and output, each d_model x heads d_head, keys and values, narrower where heads share.

    >>> by_formula(BlockConfig(d_model=512, n_heads=8, attention_bias=False))
    1048576
    """
    asking, answering = config.n_heads * config.d_head, config.n_kv_heads * config.d_head
    biases = asking + 2 * answering + config.d_model if config.attention_bias else 0
    return 2 * config.d_model * asking + 2 * config.d_model * answering + biases


def by_counting(config: BlockConfig) -> LayerCount:
    """Build a layer, without memory for its numbers, and count."""
    with torch.device("meta"):
        block = Block(config)
    attention, feedforward = (
        sum(each.numel() for each in part.parameters()) for part in (block.attention, block.feedforward)
    )
    return LayerCount(attention, feedforward)


def config_of(**changes: Any) -> BlockConfig:
    """The course's layer, without biases in its attention, with something changed."""
    return BlockConfig(d_model=_WIDTH, n_heads=_HEADS, attention_bias=False).replace(**changes)


def teach(occasion: Occasion) -> LessonResult:
    """Count each kind of layer; a seed changes nothing about it."""
    step = occasion.counter(len(_CONDITIONS) * len(occasion.seeds))
    conditions = []
    for key, changes in _CONDITIONS.items():
        config, counts = config_of(**changes), []
        for _ in occasion.seeds:
            counts.append(by_counting(config))
            step()
        figures = {
            "formula": [float(by_formula(config))] * len(counts),
            "counted": [float(each.attention) for each in counts],
            "feedforward": [float(each.feedforward) for each in counts],
        }
        conditions.append(Condition(key, _WORDS[key], figures))
    axes = ("growth", "width", "millions")
    return _WORDS.result(_FIGURES, conditions, read(conditions), _lines(), axes, from_zero=True)


def _lines() -> list[Line]:
    counted = [(width, by_counting(config_of(d_model=width))) for width in _WIDTHS]
    return [
        Line(_WORDS["attention"], [(float(width), count.attention / 1e6) for width, count in counted]),
        Line(_WORDS["feedforward"], [(float(width), count.feedforward / 1e6) for width, count in counted]),
    ]


def read(conditions: list[Condition]) -> list[Bilingual]:
    """What the figures say, whatever they are."""
    by_key = {each.key: each.mean("counted") for each in conditions}
    course, agrees = by_key["course"], all(each.mean("formula") == each.mean("counted") for each in conditions)
    same = by_key["one_head"] == by_key["more_heads"] == course
    return [
        _WORDS.say("square" if agrees else "astray", width=_WIDTH, count=course),
        _WORDS.say("heads_cost_nothing" if same else "heads_cost", one=by_key["one_head"], more=by_key["more_heads"]),
        _WORDS.say(
            "doubled", wide=by_key["twice_as_wide"], shared=by_key["shared"], times=by_key["twice_as_wide"] / course
        ),
    ]
