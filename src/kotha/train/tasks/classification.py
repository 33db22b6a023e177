"""Classes: what an image shows, or of which kind a text is.

Both tasks are the same but for what is read; ``_Classes`` has what they share. A text longer than the context is read
from its beginning as far as it goes, and counted in ``truncated``: the start of a text mostly tells its kind.
"""

import math
from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from kotha.errors import ConfigError, DataError
from kotha.model.classifier import TextClassifier
from kotha.model.config import BERTConfig, GPTConfig, ModelConfig, ViTConfig
from kotha.model.vit import ViT
from kotha.text.frequencies import frequency_nats
from kotha.text.tokenizer.tokenizer import Tokenizer
from kotha.train.config import TrainConfig
from kotha.train.objectives import image_classes, judge, text_classes
from kotha.train.tasks.order import Order, measuring_slices
from kotha.train.tasks.ragged import Ragged
from kotha.train.tasks.task import Batch, Score, Tensors

_PART = "examples"

Images = NDArray[Any] | Tensor
Labels = Sequence[int] | NDArray[Any] | Tensor


class _Classes:
    """Examples with a class each: their order, how they are scored, and what to compare with."""

    def __init__(self, config: TrainConfig, labels: Tensor, held_out: Tensor, n_classes: int, width: int) -> None:
        self._labels, self._held_out = labels, held_out
        self._n_classes, self._width = n_classes, width  # positions of one example
        self._label_smoothing, self._evaluate_tokens = config.label_smoothing, config.evaluate_tokens
        self._order = Order(len(labels), config.batch_size, config.seed)

    def sources(self, step: int) -> list[int]:
        """See Task."""
        return sorted(set(self._order.examples(step)))

    def score(self, sums: dict[str, float], targets: dict[str, int]) -> Score:
        """See Task; ``majority`` is how often one is right who always says the class most frequent in training."""
        commonest = int(self._counts(self._labels).argmax())
        majority = float((self._held_out == commonest).double().mean())
        n = targets[_PART]
        return {"loss_nats": sums[_PART] / n, "accuracy": sums["right"] / n, "majority": majority, "examples": n}

    def references(self) -> dict[str, float]:
        """See Task."""
        frequencies = frequency_nats(self._counts(self._labels), self._counts(self._held_out))
        return {"ln K": math.log(self._n_classes), "class frequencies": frequencies}

    def _counts(self, labels: Tensor) -> NDArray[np.int64]:
        counts: NDArray[np.int64] = torch.bincount(labels, minlength=self._n_classes).numpy()
        return counts

    def _slices(self) -> list[range]:
        return measuring_slices(len(self._held_out), self._width, self._evaluate_tokens)

    def _judge(self, logits: Tensor, labels: Tensor) -> Tensors:
        nats, right = judge(logits, labels)
        return {_PART: nats, "right": right}


class ImageClasses(_Classes):
    """Say what an image shows.

    Images are (N, height, width) or (N, n_channels, height, width). Bytes are scaled from 0..255 to -1..1; fractions
    are taken as they are.
    """

    name = "image-classes"

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
            raise ConfigError(f"a {model.family} model cannot be trained on images; use a vit preset")
        self._images = _check_images("training", images, model)
        self._held_out_images = _check_images("validation", validation_images, model)
        learned = _check_labels("training", labels, len(self._images), model.n_classes)
        held_out = _check_labels("validation", validation_labels, len(self._held_out_images), model.n_classes)
        positions = 1 + (model.image_size // model.patch_size) ** 2
        super().__init__(config, learned, held_out, model.n_classes, positions)

    def batch(self, step: int, first: int, count: int) -> Batch:
        """See Task."""
        return self._as_batch(self._images, self._labels, self._order.examples(step, first, count))

    def validation(self) -> list[Batch]:
        """See Task."""
        return [self._as_batch(self._held_out_images, self._held_out, list(rows)) for rows in self._slices()]

    def losses(self, model: ViT, tensors: Tensors) -> Tensors:
        """See Task."""
        return {_PART: image_classes(model, tensors["images"], tensors["labels"], self._label_smoothing)}

    def measure(self, model: ViT, tensors: Tensors) -> Tensors:
        """See Task."""
        return self._judge(model(tensors["images"]), tensors["labels"])

    def _as_batch(self, images: Tensor, labels: Tensor, rows: list[int]) -> Batch:
        some = images[rows]
        some = some.float() / 127.5 - 1 if some.dtype == torch.uint8 else some.float()
        return Batch({"images": some, "labels": labels[rows]}, {_PART: len(rows)}, len(rows) * self._width)


class TextClasses(_Classes):
    """Say of which kind a text is; for a ``TextClassifier`` around a BERT or a GPT."""

    name = "text-classes"

    def __init__(
        self,
        model: ModelConfig,
        config: TrainConfig,
        texts: Sequence[str],
        labels: Labels,
        validation_texts: Sequence[str],
        validation_labels: Labels,
        tokenizer: Tokenizer,
        n_classes: int,
    ) -> None:
        if not isinstance(model, BERTConfig | GPTConfig):
            raise ConfigError(f"a {model.family} model cannot classify texts; use a bert or a gpt preset")
        if model.vocab_size < tokenizer.vocab_size:
            raise ConfigError(
                f"the model knows {model.vocab_size:,} tokens and the tokenizer has {tokenizer.vocab_size:,}; "
                f"use vocab_size={tokenizer.vocab_size}"
            )
        self.context_length = config.context_length or model.context_length
        self.truncated = 0
        self._before, self._after = _marks(model, tokenizer)
        self._pad = tokenizer.special.get("pad", 0)
        self._texts = self._encode("training", texts, tokenizer)
        self._held_out_texts = self._encode("validation", validation_texts, tokenizer)
        learned = _check_labels("training", labels, len(self._texts), n_classes)
        held_out = _check_labels("validation", validation_labels, len(self._held_out_texts), n_classes)
        super().__init__(config, learned, held_out, n_classes, int(self._held_out_texts.lengths.max()))

    def batch(self, step: int, first: int, count: int) -> Batch:
        """See Task; a part of a batch is as wide as the whole."""
        whole = self._order.examples(step)
        return self._as_batch(self._texts, self._labels, whole[first : first + count], whole)

    def validation(self) -> list[Batch]:
        """See Task."""
        return self._validation

    def losses(self, model: TextClassifier, tensors: Tensors) -> Tensors:
        """See Task."""
        _check_classifier(model)
        tokens, real, labels = (tensors[name] for name in ("tokens", "real", "labels"))
        return {_PART: text_classes(model, tokens, real, labels, self._label_smoothing)}

    def measure(self, model: TextClassifier, tensors: Tensors) -> Tensors:
        """See Task."""
        _check_classifier(model)
        return self._judge(model(tensors["tokens"], tensors["real"]), tensors["labels"])

    def _encode(self, what: str, texts: Sequence[str], tokenizer: Tokenizer) -> Ragged:
        if not len(texts):
            raise DataError(f"there are no {what} texts; give at least one")
        ids = tokenizer.encode_batch(texts)
        room = self.context_length - len(self._before) - len(self._after)
        self.truncated += sum(len(each) > room for each in ids)
        return Ragged([*self._before, *each[:room], *self._after] for each in ids)

    def _as_batch(self, texts: Ragged, labels: Tensor, rows: Sequence[int], whole: Sequence[int]) -> Batch:
        width = texts.longest(whole)
        tokens = torch.from_numpy(texts.padded(rows, width, self._pad))
        real = torch.from_numpy(np.arange(width) < texts.lengths[list(rows)][:, None])
        tensors = {"tokens": tokens, "real": real, "labels": labels[list(rows)]}
        return Batch(tensors, {_PART: len(rows)}, tokens.numel())

    @cached_property
    def _validation(self) -> list[Batch]:
        return [self._as_batch(self._held_out_texts, self._held_out, rows, rows) for rows in self._slices()]


def _check_classifier(model: object) -> None:
    """A run folder holds bodies; what has a head for classes of texts is trained by one's own few lines."""
    if not isinstance(model, TextClassifier):
        raise ConfigError(
            f"classes of texts are learned by a TextClassifier, and this is a {type(model).__name__}; a run folder "
            "cannot hold one yet: put TextClassifier(body, n_classes) and this task into a Learner and move it yourself"
        )


def _marks(model: ModelConfig, tokenizer: Tokenizer) -> tuple[list[int], list[int]]:
    """What stands before and after a text: BERT speaks from the first place, a GPT from the last."""
    wanted = ("cls", "sep") if isinstance(model, BERTConfig) else ("eos",)
    for role in wanted:
        if role not in tokenizer.special:
            kind = "wordpiece" if isinstance(model, BERTConfig) else "unigram"
            raise DataError(
                f"the tokenizer has no {role} token, and a {model.family} needs it to classify; train one of kind "
                f"{kind!r}"
            )
    marks = [tokenizer.special[role] for role in wanted]
    return marks[:-1], marks[-1:]


def _check_images(what: str, images: Images, model: ViTConfig) -> Tensor:
    """Images with their channels: -> (N, n_channels, height, width)."""
    found = torch.as_tensor(images)
    found = found[:, None] if found.ndim == 3 else found
    wanted = (model.n_channels, model.image_size, model.image_size)
    if tuple(found.shape[1:]) != wanted or not len(found):
        raise DataError(
            f"the {what} images have shape {tuple(torch.as_tensor(images).shape)}, and the model reads "
            f"(N, {', '.join(map(str, wanted))}); scale them, or change image_size and n_channels"
        )
    if found.dtype != torch.uint8 and not (found.is_floating_point() and bool(found.isfinite().all())):
        raise DataError(f"the {what} images are {found.dtype}; give uint8 from 0 to 255, or finite fractions")
    return found


def _check_labels(what: str, labels: Labels, n_examples: int, n_classes: int) -> Tensor:
    """Labels as whole numbers below the number of classes: -> (N,)."""
    found = torch.as_tensor(labels)
    if found.ndim != 1 or len(found) != n_examples:
        raise DataError(f"{n_examples:,} {what} examples have labels of shape {tuple(found.shape)}; give one to each")
    if found.is_floating_point() or found.is_complex() or found.dtype == torch.bool:
        raise DataError(f"the {what} labels are {found.dtype}; number the classes from 0 to {n_classes - 1}")
    if int(found.min()) < 0 or int(found.max()) >= n_classes:
        wrong = int(found.min()) if int(found.min()) < 0 else int(found.max())
        raise DataError(f"label {wrong} of the {what} examples is not one of 0 to {n_classes - 1}; use more n_classes")
    return found.long()
