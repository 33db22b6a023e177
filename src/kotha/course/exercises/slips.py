"""Wrong ways to a number that is no matrix, each computed for these sizes: forgotten, counted twice, turned round.

What is said of each stands in ``slips.json``, by its name.
"""

import json
import math
from collections.abc import Callable
from itertools import permutations
from pathlib import Path

import numpy as np

from kotha.course.exercises.setting import Question, Setting, Slip
from kotha.course.worksheet.operations import Array
from kotha.i18n.wording import Words
from kotha.model.parameters import count_parameters

# A name, and the numbers that one arrives at.
_Found = list[tuple[str, float | tuple[float, ...]]]
_MOST_AXES = 4  # what has more numbers is no shape
_POWERS = (10.0, 0.1, 100.0, 0.01, 1e3, 1e-3, 1e6, 1e-6)
_WORDS: dict[str, Words] = {
    name: Words(**said)
    for name, said in json.loads(Path(__file__).with_name("slips.json").read_text(encoding="utf-8")).items()
}


def slips_of(question: Question, setting: Setting) -> tuple[Slip, ...]:
    """The slips that this question invites, those of its own first."""
    own = _OF[question.id](setting) if question.id in _OF else []
    found = [(name, where if isinstance(where, tuple) else (float(where),)) for name, where in [*own, *_any(question)]]
    return tuple(Slip(name, _WORDS[name].fill(**setting.sizes), where) for name, where in found)


def _any(question: Question) -> _Found:
    """Slips that can happen anywhere: sizes in another order, a fraction upside down, the point."""
    assert question.expected is not None, "only numbers have slips"
    values = question.expected.values
    if len(values) == 1:
        (value,) = values
        turned: _Found = [] if question.expected.exact or not value else [("upsideDown", 1 / value)]
        return turned + [("point", value * power) for power in _POWERS]
    ways = permutations(values) if len(values) <= _MOST_AXES else ()
    return [("order", way) for way in dict.fromkeys(ways) if way != values]


def _of_scores_shape(setting: Setting) -> _Found:
    width = float(setting.sheet.steps["K"].values.shape[1])
    return [("widthsKept", (width, width))]


def _of_mask(setting: Setting) -> _Found:
    mask = setting.sheet.matrices["mask"]
    ways: dict[str, Array] = {
        "maskTurned": mask.T,
        "nothingHidden": np.ones_like(mask),
        "itselfHidden": np.tril(mask, -1),
        "exchanged": 1 - mask,
    }
    return [(name, tuple(matrix.ravel().tolist())) for name, matrix in ways.items()]


def _shape(setting: Setting, *names: str) -> tuple[float, ...]:
    return tuple(float(setting.sizes[name]) for name in names)


def _of_early_rate(setting: Setting) -> _Found:
    course, step = setting.course, setting.rate_steps[0]
    return [("noWarmup", course.learning_rate), ("overAll", course.learning_rate * step / course.steps)]


def _of_late_rate(setting: Setting) -> _Found:
    course, step = setting.course, setting.rate_steps[1]
    rate, warmup, steps = course.learning_rate, course.warmup_steps, course.steps
    passed = (step - warmup) / max(1, steps - warmup)

    def decayed(cosine: float) -> float:
        return 0.1 * rate + 0.9 * rate * 0.5 * (1 + cosine)

    return [
        ("warmupKept", decayed(math.cos(math.pi * step / steps))),
        ("degrees", decayed(math.cos(math.radians(math.pi * passed)))),
        ("noFloor", rate * 0.5 * (1 + math.cos(math.pi * passed))),
        ("straight", 0.1 * rate + 0.9 * rate * (1 - passed)),
        ("stillWarm", rate * step / warmup),
    ]


def _of_passes(setting: Setting) -> _Found:
    count = setting.new_tokens
    return [("firstForgotten", count - 1), ("onePass", 1), ("promptCounted", count + setting.sizes["length"])]


def _of_average(own: tuple[int, int], other: tuple[int, int]) -> _Found:
    (samples, tokens), (other_samples, other_tokens) = own, other
    return [
        ("otherSplit", tokens / other_samples),
        ("bothSplits", (tokens + other_tokens) / (samples + other_samples)),
    ]


def _of_bits(setting: Setting) -> _Found:
    return [("lastId", 2**16 - 1), ("signed", 2**15), ("bits", 16), ("thisVocabulary", setting.config.vocab_size)]


def _of_all_tokens(setting: Setting) -> _Found:
    steps = setting.iterations
    return [("sequences", setting.batch_size * steps), ("oneSequence", setting.config.context_length * steps)]


def _of_epochs(setting: Setting) -> _Found:
    sequences = setting.batch_size * setting.iterations
    tokens = setting.training[1] + setting.validation[1]
    return [
        ("samples", sequences / setting.training[0]),
        ("validationToo", sequences * setting.config.context_length / tokens),
    ]


def _of_table(setting: Setting) -> _Found:
    vocabulary, width = setting.config.vocab_size, setting.config.d_model
    return [("tableAdded", vocabulary + width), ("twice", 2 * vocabulary * width)]


def _of_head(setting: Setting) -> _Found:
    width, d_head = setting.config.d_model, setting.config.d_head
    return [
        ("noOutput", 3 * width * d_head),
        ("wholeLayer", 4 * width * width),
        ("fromHeadWidth", 4 * d_head * d_head),
        ("oneMatrix", width * d_head),
    ]


def _of_mlp(setting: Setting) -> _Found:
    width, inner = setting.config.d_model, setting.config.d_ff
    return [("oneOfTwo", width * inner), ("notWider", 2 * width * width)]


def _of_whole(setting: Setting) -> _Found:
    count = count_parameters(setting.config)
    layer = count.attention_per_layer + count.feedforward_per_layer
    found: _Found = [
        ("oneLayer", count.token_embedding + layer),
        ("noEmbedding", setting.config.n_layers * layer),
    ]
    if count.tied_head:
        return [*found, ("embeddingTwice", count.total + count.token_embedding)]
    return [*found, ("noHead", count.total - count.head)]


def _of_memory(setting: Setting) -> _Found:
    total = count_parameters(setting.config).total / 1e9
    return [
        ("bitsForBytes", total * 32),
        ("halfPrecision", total * 2),
        ("notTimesFour", total),
        ("allOfAdam", total * 16),
    ]


def _of_joined(setting: Setting) -> _Found:
    batch, length, d_head = _shape(setting, "batch", "length", "d_head")
    return [
        ("oneHeadsShape", (batch, length, d_head)),
        ("below", (batch, length * setting.sizes["heads"], d_head)),
    ]


def _of_attention(setting: Setting) -> _Found:
    width, d_head = setting.config.d_model, setting.config.d_head
    return [
        ("noOutput", 3 * width * width),
        ("oneHeadsPart", 4 * width * d_head),
        ("allLayers", setting.config.n_layers * 4 * width * width),
        ("oneOfFour", width * width),
    ]


# By the number of the question.
_OF: dict[str, Callable[[Setting], _Found]] = {
    "2b-shape": _of_scores_shape,
    "3a": _of_mask,
    "6c": lambda setting: [("outside", setting.sizes["width"]), ("oneHead", setting.sizes["d_head"])],
    "6d": lambda setting: [("beforeHead", _shape(setting, "batch", "length", "width"))],
    "7c-1": _of_early_rate,
    "7c-2": _of_late_rate,
    "8b": _of_passes,
    "9a-1": lambda setting: _of_average(setting.training, setting.validation),
    "9a-2": lambda setting: _of_average(setting.validation, setting.training),
    "9b": _of_bits,
    "9c-1": lambda setting: [("added", setting.sizes["batch"] + setting.sizes["length"])],
    "9c-2": _of_all_tokens,
    "9c-3": _of_epochs,
    "10a-1": _of_table,
    "10a-2": _of_head,
    "10a-3": _of_mlp,
    "10a-4": _of_whole,
    "10b": _of_memory,
    "11c": _of_joined,
    "A4": _of_attention,
}
