"""Classes: what an image shows, or of which kind a text is; with augmentation of few images.

Both tasks are the same but for what is read; ``_Classes`` has what they share. A text longer than the context is
learned from in stretches, each an example by itself (``text/tokenizer/prompt.py``); at work what they say is averaged.

Where classes are unequal, a model may learn each example with the weight of its class (``class_weights="balanced"``:
their mean is 1, as in scikit-learn), and of texts the model that is kept may be the one with the best macro-F1 (the
mean of F1 over classes) instead of the least loss.
"""

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.functional import affine_grid, grid_sample

from kotha.errors import ConfigError, DataError
from kotha.i18n.message import Message
from kotha.model.config import ClassifierConfig, ModelConfig, ViTConfig
from kotha.text.held_out import Counts, frequency_nats
from kotha.text.tokenizer.prompt import MarkedTexts
from kotha.text.tokenizer.tokenizer import Tokenizer
from kotha.training.config import TrainConfig
from kotha.training.objectives import classes, judge
from kotha.training.tasks.task import (
    TRAINING,
    VALIDATION,
    Batch,
    Order,
    Ragged,
    Score,
    Task,
    Tensors,
    check_vocabulary,
    measuring_slices,
)

_PART = "examples"

Images = NDArray[Any] | Tensor
Labels = Sequence[int] | NDArray[Any] | Tensor


class _Classes(Task):
    """Examples with a class each, to learn from and held out; what a model reads of them is each task's own."""

    reads: tuple[str, ...]  # the tensors of a batch that a model is called with

    def __init__(
        self, config: TrainConfig, n_classes: int, width: int, learned: tuple[Any, Labels], held_out: tuple[Any, Labels]
    ) -> None:
        self._examples, self._held_out_examples = learned[0], held_out[0]
        self._labels = _check_labels(TRAINING, learned[1], len(self._examples), n_classes)
        self._held_out = _check_labels(VALIDATION, held_out[1], len(self._held_out_examples), n_classes)
        self._n_classes, self._width = n_classes, width  # positions of one example, at most
        self._label_smoothing, self._evaluate_tokens = config.label_smoothing, config.evaluate_tokens
        lengths = self._examples.lengths if isinstance(self._examples, Ragged) else None
        self._order = Order(len(self._labels), config.batch_size, config.seed, lengths)
        self._weights: Tensor | None = None
        if config.class_weights == "balanced":
            counts = torch.from_numpy(self._counts(self._labels)).float()
            if bool((counts == 0).any()):
                empty = int((counts == 0).nonzero()[0])
                raise DataError(
                    "class {empty} has no training example, so it has no weight; leave class_weights out", empty=empty
                )
            self._weights = counts.sum() / (n_classes * counts)

    def _read(self, examples: Any, rows: list[int], among: Sequence[int]) -> tuple[Tensors, int]:
        """What is read of some examples in a batch with others, and how many positions go through the model."""
        raise NotImplementedError

    def _logits(self, model: Any, tensors: Tensors) -> Tensor:
        logits: Tensor = model(*(tensors[name] for name in self.reads))
        return logits

    def batch(self, step: int, first: int, count: int) -> Batch:
        """See Task; a part of a batch is as wide as the whole."""
        among = self._order.examples(step)
        return self._as_batch(self._examples, self._labels, among[first : first + count], among)

    def validation(self) -> list[Batch]:
        slices = measuring_slices(len(self._held_out), self._width, self._evaluate_tokens)
        return [self._as_batch(self._held_out_examples, self._held_out, list(rows), rows) for rows in slices]

    def _as_batch(self, examples: Any, labels: Tensor, rows: list[int], among: Sequence[int]) -> Batch:
        tensors, positions = self._read(examples, rows, among)
        batch = {**tensors, "labels": labels[rows]}
        if self._weights is not None:
            batch["weights"] = self._weights[labels[rows]]
        return Batch(batch, {_PART: len(rows)}, positions)

    def document_ids(self, step: int) -> list[int]:
        return sorted(set(self._order.examples(step)))

    def losses(self, model: Any, tensors: Tensors) -> Tensors:
        logits, labels = self._logits(model, tensors), tensors["labels"]
        return {_PART: classes(logits, labels, self._label_smoothing, tensors.get("weights"))}

    def measure(self, model: Any, tensors: Tensors) -> Tensors:
        return self._measured(self._logits(model, tensors), tensors["labels"])

    def _measured(self, logits: Tensor, labels: Tensor) -> Tensors:
        nats, right = judge(logits, labels)
        return {_PART: nats, "right": right}

    def score(self, sums: dict[str, float], targets: dict[str, int]) -> Score:
        """See Task; ``majority`` is how often one is right who always says the class most frequent in training."""
        commonest = int(self._counts(self._labels).argmax())
        majority = float((self._held_out == commonest).double().mean())
        n = targets[_PART]
        return {"loss_nats": sums[_PART] / n, "accuracy": sums["right"] / n, "majority": majority, "examples": n}

    def references(self) -> dict[str, float]:
        frequencies = frequency_nats(self._counts(self._labels), self._counts(self._held_out))
        return {"ln K": math.log(self._n_classes), "class frequencies": frequencies}

    def _counts(self, labels: Tensor) -> Counts:
        return np.bincount(labels, minlength=self._n_classes)


class ImageClasses(_Classes):
    """Say what an image shows.

    Images are (N, height, width) or (N, n_channels, height, width). Bytes are scaled from 0..255 to -1..1; fractions
    are taken as they are.
    """

    name, reads = "image-classes", ("images",)

    def __init__(
        self,
        model: ModelConfig,
        config: TrainConfig,
        images: Images,
        labels: Labels,
        validation_images: Images,
        validation_labels: Labels,
    ) -> None:
        if not isinstance(model, ViTConfig):
            raise ConfigError("a {family} model cannot be trained on images; use a vit preset", family=model.family)
        positions = 1 + (model.image_size // model.patch_size) ** 2
        learned = (_check_images(TRAINING, images, model), labels)
        held_out = (_check_images(VALIDATION, validation_images, model), validation_labels)
        super().__init__(config, model.n_classes, positions, learned, held_out)
        self._augment = config.augment

    def batch(self, step: int, first: int, count: int) -> Batch:
        """See Task; with augmentation each image is moved as its turn has it."""
        made = super().batch(step, first, count)
        if self._augment == "none":
            return made
        chances = [self._order.chance(turn) for turn in self._order.turns(step, first, count)]
        images = augmented(made.tensors["images"], chances, flip=self._augment == "mirror")
        return replace(made, tensors={**made.tensors, "images": images})

    def _read(self, examples: Tensor, rows: list[int], among: Sequence[int]) -> tuple[Tensors, int]:
        some = examples[rows]
        some = some.float() / 127.5 - 1 if some.dtype == torch.uint8 else some.float()
        return {"images": some}, len(rows) * self._width


class TextClasses(_Classes):
    """Say of which kind a text is; for a ``TextClassifier`` around a BERT or a GPT."""

    name, reads = "text-classes", ("tokens", "real")

    def __init__(
        self,
        model: ModelConfig,
        config: TrainConfig,
        texts: Sequence[str],
        labels: Labels,
        validation_texts: Sequence[str],
        validation_labels: Labels,
        tokenizer: Tokenizer,
    ) -> None:
        if not isinstance(model, ClassifierConfig):
            raise ConfigError(
                "a {family} model has no head for classes of texts; give a bert or a gpt one by classifying()",
                family=model.family,
            )
        check_vocabulary(model, tokenizer)
        self.context_length = config.context_length or model.context_length
        self.tokenizer = tokenizer
        self._reader, n_classes = MarkedTexts(tokenizer, model.marks, self.context_length), len(model.labels)
        self._text_of, *learned = self._encode(TRAINING, texts, labels, n_classes)
        _, *held_out = self._encode(VALIDATION, validation_texts, validation_labels, n_classes)
        width = int(held_out[0].lengths.max())
        super().__init__(config, n_classes, width, (learned[0], learned[1]), (held_out[0], held_out[1]))
        self._best_by = config.best_by

    @property
    def truncated(self) -> int:
        """Texts of both sets that are too long to be read whole, even in stretches."""
        return self._reader.truncated

    def _encode(
        self, what: Message, texts: Sequence[str], labels: Labels, n_classes: int
    ) -> tuple[list[int], Ragged, Any]:
        """Of which text each stretch is, the stretches, and their labels."""
        if not len(texts):
            raise DataError("there are no {what} texts; give at least one", what=what)
        stretches = self._reader.encode(texts)
        text_of = [number for number, some in enumerate(stretches) for _ in some]
        known = _check_labels(what, labels, len(texts), n_classes)
        return text_of, Ragged([each for some in stretches for each in some]), known[text_of]

    def document_ids(self, step: int) -> list[int]:
        return sorted({self._text_of[each] for each in super().document_ids(step)})

    def _read(self, examples: Ragged, rows: list[int], among: Sequence[int]) -> tuple[Tensors, int]:
        tokens, real = examples.padded(rows, among, self._reader.pad)
        return {"tokens": tokens, "real": real}, tokens.numel()

    def _measured(self, logits: Tensor, labels: Tensor) -> Tensors:
        said, sums = logits.argmax(dim=-1), super()._measured(logits, labels)
        for label in range(self._n_classes):  # what the F1 of each class is made from
            sums[f"both/{label}"] = ((said == label) & (labels == label)).sum()
            sums[f"either/{label}"] = (said == label).sum() + (labels == label).sum()
        return sums

    def score(self, sums: dict[str, float], targets: dict[str, int]) -> Score:
        """See Task; ``macro_f1`` is the mean of F1 over all classes."""
        f1 = [2 * sums[f"both/{each}"] / max(1, sums[f"either/{each}"]) for each in range(self._n_classes)]
        return {**super().score(sums, targets), "macro_f1": sum(f1) / self._n_classes}

    def error(self, score: Score) -> float:
        return score["loss_nats"] if self._best_by == "loss" else 1 - score["macro_f1"]


def _check_images(what: Message, images: Images, model: ViTConfig) -> Tensor:
    """Images with their channels: -> (N, n_channels, height, width)."""
    found = torch.as_tensor(images)
    found = found[:, None] if found.ndim == 3 else found
    wanted = (model.n_channels, model.image_size, model.image_size)
    if tuple(found.shape[1:]) != wanted or not len(found):
        raise DataError(
            "the {what} images have shape {shape}, and the model reads (N, {wanted}); scale them, or change "
            "image_size and n_channels",
            what=what,
            shape=str(tuple(torch.as_tensor(images).shape)),
            wanted=wanted,
        )
    if found.dtype != torch.uint8 and not (found.is_floating_point() and bool(found.isfinite().all())):
        raise DataError(
            "the {what} images are {type}; give uint8 from 0 to 255, or finite fractions", what=what, type=found.dtype
        )
    return found


def _check_labels(what: Message, labels: Labels, n_examples: int, n_classes: int) -> Tensor:
    """Labels as whole numbers below the number of classes: -> (N,)."""
    found = torch.as_tensor(labels)
    if found.ndim != 1 or len(found) != n_examples:
        raise DataError(
            "{n_examples:,} {what} examples have labels of shape {shape}; give one to each",
            n_examples=n_examples,
            what=what,
            shape=str(tuple(found.shape)),
        )
    if found.is_floating_point() or found.is_complex() or found.dtype == torch.bool:
        raise DataError(
            "the {what} labels are {type}; number the classes from 0 to {last}",
            what=what,
            type=found.dtype,
            last=n_classes - 1,
        )
    wrong = found[(found < 0) | (found >= n_classes)]
    if len(wrong):
        raise DataError(
            "label {label} of the {what} examples is not one of 0 to {last}; use more n_classes",
            label=int(wrong[0]),
            what=what,
            last=n_classes - 1,
        )
    return found.long()


# -- augmentation -----------------------------------------------------------------------------------------------------

# At most: degrees, shares of the image's side, and of its size.
_TURN, _SHIFT, _SCALE = 12.0, 0.1, 0.12


def augmented(images: Tensor, chances: Sequence[np.random.Generator], flip: bool = False) -> Tensor:
    """Augmentation: a help on few images. Drawn from an image's turn alone, so a resumed run sees what it would have.

    Images (N, n_channels, height, width), each moved by its own chance; with ``flip`` half of them mirrored.
    """
    moves = torch.tensor(np.stack([_move(chance, flip) for chance in chances]), dtype=images.dtype)  # (N, 2, 3)
    grid = affine_grid(moves, list(images.shape), align_corners=False)
    return grid_sample(images, grid, padding_mode="border", align_corners=False)


def _move(chance: np.random.Generator, flip: bool) -> np.ndarray[tuple[int, int], np.dtype[np.float64]]:
    """Where the pixels of a moved image come from: a turn, a scale and a shift as one matrix (2, 3)."""
    turn, scale, across, down, mirrored = chance.uniform(-1, 1, 5)
    angle, size = math.radians(_TURN * turn), 1 + _SCALE * scale
    side = -1.0 if flip and mirrored < 0 else 1.0
    cosine, sine = size * math.cos(angle), size * math.sin(angle)
    return np.array([[side * cosine, -sine, 2 * _SHIFT * across], [side * sine, cosine, 2 * _SHIFT * down]])
