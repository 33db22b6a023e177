"""Classification of images and texts, with augmentation for small sets of images.

The two tasks differ only in their inputs; ``_Classes`` contains the common code. A text longer than the context is
split into parts, each of which is a training example (``text/tokenizer/prompt.py``). At inference the predictions for
the parts are averaged.

If the classes are unbalanced, examples can be weighted by class (``class_weights="balanced"``; the weights have mean 1,
as in scikit-learn). The best text classifier is the one with the highest macro-F1 (the mean F1 over classes); the best
image classifier is the one with the lowest loss.
"""

import math
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.functional import affine_grid, grid_sample

from kotha.errors import DataError
from kotha.model.config import ClassifierConfig, ViTConfig
from kotha.model.objectives import classes, score_predictions
from kotha.text.held_out import Counts
from kotha.text.tokenizer.prompt import MarkedTexts
from kotha.text.tokenizer.tokenizer import Tokenizer
from kotha.training.config import TrainConfig
from kotha.training.tasks.examples import Columns, ExamplesTask, Ragged
from kotha.training.tasks.task import Batch, Score, Tensors, check_vocabulary


class _Classes(ExamplesTask):
    """Examples with a class in the last column; subclasses define the inputs."""

    part, reference_names = "examples", ("uniform over classes", "class frequencies")
    reads: tuple[str, ...]  # names of the input tensors of the model

    def __init__(self, config: TrainConfig, n_classes: int, train: Columns, held_out: Columns) -> None:
        super().__init__(config, n_classes, train, held_out)
        self._weights: Tensor | None = None
        if config.class_weights == "balanced":
            counts = torch.from_numpy(self._counts(self._train)).float()
            if not counts.all():
                raise DataError(
                    "class {empty} has no training examples, so its weight is undefined; remove class_weights",
                    empty=int(counts.argmin()),
                )
            self._weights = counts.sum() / (n_classes * counts)

    @abstractmethod
    def _read(self, examples: Any, rows: list[int], among: Sequence[int]) -> tuple[Tensors, int]:
        """Return the input tensors for these examples of a batch, and the number of positions."""

    def _as_batch(self, some: Any, rows: Sequence[int], among: Sequence[int]) -> Batch:
        tensors, positions = self._read(some[0], list(rows), among)
        labels = some[1][list(rows)]
        weights = {} if self._weights is None else {"weights": self._weights[labels]}
        return Batch({**tensors, "labels": labels, **weights}, {self.part: len(rows)}, positions)

    def losses(self, model: Any, tensors: Tensors) -> Tensors:
        logits = model(*(tensors[name] for name in self.reads))
        return {self.part: classes(logits, tensors["labels"], self._label_smoothing, tensors.get("weights"))}

    def measure(self, model: Any, tensors: Tensors) -> Tensors:
        """See Task; the sums include the counts for the F1 of each class."""
        logits, labels = model(*(tensors[name] for name in self.reads)), tensors["labels"]
        nats, correct = score_predictions(logits, labels)
        predicted, sums = logits.argmax(dim=-1), {self.part: nats, "right": correct}
        for label in range(self._n_answers):
            sums[f"both/{label}"] = ((predicted == label) & (labels == label)).sum()
            sums[f"either/{label}"] = (predicted == label).sum() + (labels == label).sum()
        return sums

    def score(self, sums: dict[str, float], targets: dict[str, int]) -> Score:
        """See Task; ``majority`` is the accuracy of always predicting the most frequent class of the training data."""
        most_frequent = self._counts(self._train).argmax()
        held_out = self._counts(self._held_out)
        return {**super().score(sums, targets), "majority": float(held_out[most_frequent] / held_out.sum())}

    def _counts(self, some: Any) -> Counts:
        return np.bincount(some[1], minlength=self._n_answers)


class ImageClasses(_Classes):
    """Classify images, stored as bytes (N, n_channels, height, width) and scaled from 0..255 to -1..1."""

    name, reads = "image-classes", ("images",)

    def __init__(
        self,
        model: ViTConfig,
        config: TrainConfig,
        images: NDArray[np.uint8],
        labels: Sequence[int],
        validation_images: NDArray[np.uint8],
        validation_labels: Sequence[int],
    ) -> None:
        self._positions = 1 + (model.image_size // model.patch_size) ** 2
        wanted = (model.n_channels, model.image_size, model.image_size)
        if images.shape[1:] != wanted or validation_images.shape[1:] != wanted:
            raise DataError(
                "the images have shape {shape}, but the model expects (N, {wanted})",
                shape=str(images.shape),
                wanted=wanted,
            )
        train = torch.from_numpy(images), torch.as_tensor(labels)
        held_out = torch.from_numpy(validation_images), torch.as_tensor(validation_labels)
        super().__init__(config, model.n_classes, train, held_out)
        self._augment = config.augment

    def batch(self, step: int, first: int, count: int) -> Batch:
        """See Task; the augmentation of an image depends on its position in the sequence of examples."""
        batch = super().batch(step, first, count)
        if self._augment == "none":
            return batch
        generators = [self._order.generator(turn) for turn in self._order.turns(step, first, count)]
        images = augmented(batch.tensors["images"], generators, flip=self._augment == "mirror")
        return replace(batch, tensors={**batch.tensors, "images": images})

    def _width(self, some: Columns) -> int:
        return self._positions

    def _read(self, examples: Tensor, rows: list[int], among: Sequence[int]) -> tuple[Tensors, int]:
        return {"images": examples[rows].float() / 127.5 - 1}, len(rows) * self._positions


class TextClasses(_Classes):
    """Classify texts with a ``TextClassifier`` built on a BERT or a GPT."""

    name, reads = "text-classes", ("tokens", "real")

    def __init__(
        self,
        model: ClassifierConfig,
        config: TrainConfig,
        texts: Sequence[str],
        labels: Sequence[int],
        validation_texts: Sequence[str],
        validation_labels: Sequence[int],
        tokenizer: Tokenizer,
    ) -> None:
        check_vocabulary(model, tokenizer)
        self.context_length = config.context_length or model.context_length
        self.tokenizer = tokenizer
        self._reader = MarkedTexts(tokenizer, model.marks, self.context_length)
        train, held_out = self._encode(texts, labels), self._encode(validation_texts, validation_labels)
        self.too_long = self._reader.truncated
        super().__init__(config, len(model.labels), train, held_out)

    def _encode(self, texts: Sequence[str], labels: Sequence[int]) -> Columns:
        """Return the parts of texts, and their labels."""
        stretches = self._reader.encode(texts)
        text_of = [number for number, some in enumerate(stretches) for _ in some]
        return Ragged(each for some in stretches for each in some), torch.as_tensor(labels)[text_of]

    def _read(self, examples: Ragged, rows: list[int], among: Sequence[int]) -> tuple[Tensors, int]:
        tokens, real = examples.padded(rows, among, self._reader.pad)
        return {"tokens": tokens, "real": real}, tokens.numel()

    def score(self, sums: dict[str, float], targets: dict[str, int]) -> Score:
        """See Task; ``macro_f1`` is the mean F1 over all classes."""
        f1 = [2 * sums[f"both/{each}"] / max(1, sums[f"either/{each}"]) for each in range(self._n_answers)]
        return {**super().score(sums, targets), "macro_f1": sum(f1) / self._n_answers}

    def error(self, score: Score) -> float:
        return 1 - score["macro_f1"]


# -- augmentation -----------------------------------------------------------------------------------------------------

# The largest rotation in degrees, shift as a share of the image size, and change of scale.
_TURN, _SHIFT, _SCALE = 12.0, 0.1, 0.12


def augmented(images: Tensor, generators: Sequence[np.random.Generator], flip: bool = False) -> Tensor:
    """Augment images, which helps with small data sets: (N, n_channels, height, width) -> same.

    Each image is transformed with its own random generator, seeded by its turn, so a resumed run gets the same images.
    With ``flip``, half of the images are mirrored.
    """
    moves = torch.tensor(np.stack([_move(each, flip) for each in generators]), dtype=images.dtype)  # (N, 2, 3)
    grid = affine_grid(moves, list(images.shape), align_corners=False)
    return grid_sample(images, grid, padding_mode="border", align_corners=False)


def _move(generator: np.random.Generator, flip: bool) -> np.ndarray[tuple[int, int], np.dtype[np.float64]]:
    """Return a random rotation, scale and shift as a matrix (2, 3) from output to input coordinates."""
    turn, scale, across, down, mirrored = generator.uniform(-1, 1, 5)
    angle, size = math.radians(_TURN * turn), 1 + _SCALE * scale
    side = -1.0 if flip and mirrored < 0 else 1.0
    cosine, sine = size * math.cos(angle), size * math.sin(angle)
    return np.array([[side * cosine, -sine, 2 * _SHIFT * across], [side * sine, cosine, 2 * _SHIFT * down]])
