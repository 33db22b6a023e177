"""Classes: what an image shows, or of which kind a text is.

Both tasks are the same but for what is read; ``_Classes`` has what they share. A text longer than the context is read
from its beginning as far as it goes, and counted in ``truncated``: the start of a text mostly tells its kind.
"""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from kotha.errors import ConfigError, DataError
from kotha.model.classifier import TextClassifier
from kotha.model.config import BERTConfig, GPTConfig, ModelConfig, ViTConfig
from kotha.text.frequencies import Counts, frequency_nats
from kotha.text.tokenizer.tokenizer import Tokenizer
from kotha.train.config import TrainConfig
from kotha.train.objectives import classes, judge
from kotha.train.tasks.order import Order, Ragged, measuring_slices
from kotha.train.tasks.task import Batch, Score, Task, Tensors, check_vocabulary

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
        self._labels = _check_labels("training", learned[1], len(self._examples), n_classes)
        self._held_out = _check_labels("validation", held_out[1], len(self._held_out_examples), n_classes)
        self._n_classes, self._width = n_classes, width  # positions of one example, at most
        self._label_smoothing, self._evaluate_tokens = config.label_smoothing, config.evaluate_tokens
        self._order = Order(len(self._labels), config.batch_size, config.seed)

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
        return Batch({**tensors, "labels": labels[rows]}, {_PART: len(rows)}, positions)

    def sources(self, step: int) -> list[int]:
        return sorted(set(self._order.examples(step)))

    def losses(self, model: Any, tensors: Tensors) -> Tensors:
        return {_PART: classes(self._logits(model, tensors), tensors["labels"], self._label_smoothing)}

    def measure(self, model: Any, tensors: Tensors) -> Tensors:
        nats, right = judge(self._logits(model, tensors), tensors["labels"])
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
            raise ConfigError(f"a {model.family} model cannot be trained on images; use a vit preset")
        positions = 1 + (model.image_size // model.patch_size) ** 2
        learned = (_check_images("training", images, model), labels)
        held_out = (_check_images("validation", validation_images, model), validation_labels)
        super().__init__(config, model.n_classes, positions, learned, held_out)

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
        n_classes: int,
    ) -> None:
        if not isinstance(model, BERTConfig | GPTConfig):
            raise ConfigError(f"a {model.family} model cannot classify texts; use a bert or a gpt preset")
        check_vocabulary(model, tokenizer)
        self.context_length = config.context_length or model.context_length
        self.truncated = 0
        self._marks = _marks(model, tokenizer)
        self._pad = tokenizer.special.get("pad", 0)
        learned = (self._encode("training", texts, tokenizer), labels)
        held_out = (self._encode("validation", validation_texts, tokenizer), validation_labels)
        super().__init__(config, n_classes, int(held_out[0].lengths.max()), learned, held_out)

    def _encode(self, what: str, texts: Sequence[str], tokenizer: Tokenizer) -> Ragged:
        if not len(texts):
            raise DataError(f"there are no {what} texts; give at least one")
        ids = tokenizer.encode_batch(texts)
        *before, after = self._marks
        room = self.context_length - len(self._marks)
        self.truncated += sum(len(each) > room for each in ids)
        return Ragged([*before, *each[:room], after] for each in ids)

    def _read(self, examples: Ragged, rows: list[int], among: Sequence[int]) -> tuple[Tensors, int]:
        tokens, real = examples.padded(rows, among, self._pad)
        return {"tokens": tokens, "real": real}, tokens.numel()

    def _logits(self, model: Any, tensors: Tensors) -> Tensor:
        """A run folder holds bodies; what has a head for classes of texts is trained by one's own few lines."""
        if not isinstance(model, TextClassifier):
            raise ConfigError(
                f"classes of texts are learned by a TextClassifier, and this is a {type(model).__name__}; a run folder "
                "cannot hold one yet: put TextClassifier(body, n_classes) and this task into a Learner and move it "
                "yourself"
            )
        return super()._logits(model, tensors)


def _marks(model: ModelConfig, tokenizer: Tokenizer) -> list[int]:
    """What stands around a text, the last of them behind it: BERT speaks from the first place, a GPT from the last."""
    wanted, kind = (("cls", "sep"), "wordpiece") if isinstance(model, BERTConfig) else (("eos",), "unigram")
    for role in wanted:
        if role not in tokenizer.special:
            raise DataError(
                f"the tokenizer has no {role} token, and a {model.family} needs it to classify; train one of kind "
                f"{kind!r}"
            )
    return [tokenizer.special[role] for role in wanted]


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
    wrong = found[(found < 0) | (found >= n_classes)]
    if len(wrong):
        raise DataError(
            f"label {int(wrong[0])} of the {what} examples is not one of 0 to {n_classes - 1}; use more n_classes"
        )
    return found.long()
