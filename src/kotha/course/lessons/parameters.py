"""Lesson: how many parameters the attention in a layer has, by formula and by counting in torch.

Nothing is trained: the layer is built, and its parameters are counted.
"""

from typing import Any

import torch

from kotha.course.lessons.measures import parameters_of
from kotha.course.lessons.runner import LessonPlan, MeasuredLesson
from kotha.model.block import Block
from kotha.model.config import BlockConfig

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


def by_formula(config: BlockConfig) -> int:
    """Return the total size of the four matrices.

    Q and the output matrix have d_model x heads d_head numbers; K and V are narrower if heads share them.

    >>> by_formula(BlockConfig(d_model=512, n_heads=8, attention_bias=False))
    1048576
    """
    asking, answering = config.n_heads * config.d_head, config.n_kv_heads * config.d_head
    biases = asking + 2 * answering + config.d_model if config.attention_bias else 0
    return 2 * config.d_model * asking + 2 * config.d_model * answering + biases


def by_counting(config: BlockConfig) -> tuple[float, float]:
    """Build a layer without allocating it, and count the parameters in its attention and its feed-forward part."""
    with torch.device("meta"):
        block = Block(config)
    return parameters_of(block.attention), parameters_of(block.feedforward)


def config_of(**changes: Any) -> BlockConfig:
    """Return the config of the course's layer (without attention biases), with some changes."""
    return BlockConfig(d_model=_WIDTH, n_heads=_HEADS, attention_bias=False).replace(**changes)


def parameters(lesson: MeasuredLesson) -> LessonPlan:
    """Count the parameters in each kind of layer by formula and by building it; the result does not depend on seeds."""
    figures = {}
    for key, changes in _CONDITIONS.items():
        config = config_of(**changes)
        attention, feedforward = by_counting(config)
        figures[key] = {"formula": float(by_formula(config)), "counted": attention, "feedforward": feedforward}
    counted = {width: by_counting(config_of(d_model=width)) for width in _WIDTHS}
    lines = {
        part: [(float(width), count[n] / 1e6) for width, count in counted.items()]
        for n, part in enumerate(("attention", "feedforward"))
    }
    return LessonPlan(figures=lambda _: figures, lines=lambda _: lines)
