"""How well images are told apart, beside the commonest class and the nearest neighbour.

The nearest neighbour says what the training image says that is most alike, pixel by pixel (Euclidean distance): what
one reaches who only remembers.
"""

from dataclasses import replace

import torch
from torch import Tensor

from kotha.artifacts.model_folder import Bundle
from kotha.evaluation.classification import ClassificationScore, score_answers
from kotha.generation.images import probabilities, vit_of
from kotha.i18n.wording import OnProgress
from kotha.storage.images import LabelledImages

_AT_ONCE = 256


def evaluate_images(
    bundle: Bundle,
    held_out: LabelledImages,
    learned: LabelledImages | None = None,
    on_progress: OnProgress | None = None,
) -> ClassificationScore:
    """Measure a model on labelled images; with what it learned from, beside what others make of that."""
    model = vit_of(bundle)
    names = model.config.class_names
    best = probabilities(model, held_out.images, on_progress).argmax(dim=-1).tolist()
    score = score_answers(names, held_out.labels, [names[each] for each in best])
    if learned is None:
        return score
    counts = {name: learned.labels.count(name) for name in names}
    commonest = max(counts, key=lambda name: counts[name])
    distances, nearest = nearest_neighbours(learned, held_out)
    others = {"majority": [commonest] * len(held_out), "nearest neighbour": [learned.labels[each] for each in nearest]}
    beside = {name: score_answers(names, held_out.labels, said) for name, said in others.items()}
    figures = {name: {"accuracy": each.accuracy, "macro_f1": each.macro_f1} for name, each in beside.items()}
    return replace(score, baselines=figures, seen=sum(distance == 0 for distance in distances))


def nearest_neighbours(learned: LabelledImages, asked: LabelledImages) -> tuple[list[float], list[int]]:
    """For each image that is asked for, how far the nearest of those that were learned is, and which it is."""
    known = _flat(learned)
    distances: list[float] = []
    places: list[int] = []
    for start in range(0, len(asked), _AT_ONCE):
        some = _flat(asked.chosen(range(start, min(start + _AT_ONCE, len(asked)))))
        squares = some.square().sum(1, keepdim=True) + known.square().sum(1) - 2 * some @ known.T
        place = squares.argmin(dim=1)
        distances += (some - known[place]).abs().sum(dim=1).tolist()  # exactly 0 for a copy
        places += place.tolist()
    return distances, places


def _flat(images: LabelledImages) -> Tensor:
    return torch.from_numpy(images.images).flatten(1).float()
