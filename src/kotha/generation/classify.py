"""Classify texts and images: the probability of each class and, for texts, the influence of each token.

Influence is measured by occlusion (Zeiler and Fergus 2013, https://arxiv.org/abs/1311.2901): tokens are hidden one at a
time, and the influence of a token is the drop in the probability of the predicted class. For a BERT, the token is
replaced by the mask token; for a GPT, which has none, it is removed. Tokens interact, so their influences do not add up
to the probability.

A text longer than the context is split into parts of about equal length (``text/tokenizer/prompt.py``). The class
probabilities are averaged over the parts, and a token's influence within its part is divided by their number.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from kotha.artifacts.model_folder import Bundle
from kotha.errors import UsageError
from kotha.i18n.message import Message, OnProgress
from kotha.i18n.short_repr import ShortRepr
from kotha.model.bert import BERT
from kotha.model.classifier import TextClassifier
from kotha.model.evaluating import check_finite, evaluating, overflow_as_nan
from kotha.model.vit import ViT
from kotha.storage.images import read_picture
from kotha.text.tokenizer.prompt import MarkedTexts

_TEXTS_AT_ONCE, _IMAGES_AT_ONCE = 32, 256


@dataclass(frozen=True)
class Influence:
    """A token of a text and its influence on the predicted class."""

    text: str
    change: float  # drop in the class probability without the token; negative if it is evidence against the class


@dataclass(frozen=True, repr=False)
class Classification(ShortRepr):
    """The predicted classes of a text or an image, with their probabilities."""

    label: str
    probabilities: dict[str, float]  # by class, most likely first
    why: tuple[Influence, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Return a JSON-serializable dictionary."""
        return asdict(self)


def _answer(names: Sequence[str], row: Tensor, why: tuple[Influence, ...] = ()) -> Classification:
    order = row.argsort(descending=True).tolist()
    return Classification(names[order[0]], {names[index]: float(row[index]) for index in order}, why)


class Classifier:
    """A text classification model with its tokenizer."""

    def __init__(self, bundle: Bundle) -> None:
        if not isinstance(bundle.model, TextClassifier):
            raise UsageError(
                "this is a {family} model, not a classifier; fine-tune it with `kotha finetune classify`",
                family=bundle.config.family,
            )
        if bundle.tokenizer is None:
            raise UsageError(
                "this classifier has no tokenizer, so it cannot read text; save the tokenizer with the model"
            )
        self.model, self.tokenizer = bundle.model, bundle.tokenizer
        self.labels = bundle.model.config.labels
        self._reader = MarkedTexts(bundle.tokenizer, bundle.model.config.marks, bundle.model.config.context_length)
        self._device = next(bundle.model.parameters()).device

    @property
    def truncated(self) -> int:
        """The number of texts so far that were truncated, because even their parts did not fit."""
        return self._reader.truncated

    def probabilities(self, texts: Sequence[str], on_progress: OnProgress | None = None) -> Tensor:
        """Return the probability of each class for each text: -> (N, K)."""
        parts = self._reader.encode(texts)
        found = self._of_ids([each for some in parts for each in some], on_progress)
        by_text = torch.split(found, [len(each) for each in parts])
        return torch.stack([some.mean(dim=0) for some in by_text])

    def classify(self, texts: Sequence[str], why: bool = False) -> list[Classification]:
        """Classify each text; with ``why``, also measure the influence of each token."""
        if not texts:
            return []
        found = self.probabilities(texts)
        return [
            _answer(self.labels, row, self._why(text, row) if why else ())
            for text, row in zip(texts, found, strict=True)
        ]

    def _why(self, text: str, row: Tensor) -> tuple[Influence, ...]:
        spans, best = self.tokenizer.spans(text), int(row.argmax())
        written = self.tokenizer.normalize(text) if self.tokenizer.normalizer is not None else text
        ends = [start for _, start, _ in spans[1:]] + [len(written)]  # text between two tokens belongs to the first
        parts, found = self._reader.stretches(len(spans)), []
        for first, last in parts:
            changes = self._influence([token for token, _, _ in spans[first:last]], best) / len(parts)
            pieces = zip(spans[first:last], ends[first:last], changes.tolist(), strict=True)
            found += [Influence(written[start:end], change) for (_, start, _), end, change in pieces]
        return tuple(found)

    def _influence(self, ids: list[int], best: int) -> Tensor:
        """Return the drop in the probability of class ``best`` when each token of a part is hidden: -> (n_tokens,)."""
        mask = self.tokenizer.special.get("mask") if isinstance(self.model.body, BERT) else None
        replacement = [] if mask is None else [mask]
        occluded = ([*ids[:index], *replacement, *ids[index + 1 :]] for index in range(len(ids)))
        found = self._of_ids([self._reader.surround(each) for each in (ids, *occluded)])[:, best]
        return found[0] - found[1:]

    @torch.no_grad()
    def _of_ids(self, ids: list[list[int]], on_progress: OnProgress | None = None) -> Tensor:
        """Return class probabilities, computed in batches sorted by length to reduce padding."""
        order = sorted(range(len(ids)), key=lambda index: len(ids[index]))
        found = torch.zeros(len(ids), len(self.labels))
        for start in range(0, len(order), _TEXTS_AT_ONCE):
            batch = order[start : start + _TEXTS_AT_ONCE]
            rows = [torch.tensor(ids[index], device=self._device) for index in batch]
            real = pad_sequence([torch.ones_like(row, dtype=torch.bool) for row in rows], batch_first=True)
            tokens = pad_sequence(rows, batch_first=True, padding_value=self._reader.pad)
            with overflow_as_nan(self.model):
                found[batch] = check_finite(self.model(tokens, real)).float().softmax(dim=-1).cpu()
            if on_progress is not None:
                on_progress(Message("classifying"), start + len(batch), len(order))
        return found


# -- images ------------------------------------------------------------------------------------------------------------


def classify_images(bundle: Bundle, files: Sequence[Path]) -> list[Classification]:
    """Classify image files."""
    config = vit_of(bundle).config
    return [classify_pixels(bundle, read_picture(file, config.image_size, config.n_channels)) for file in files]


def classify_pixels(bundle: Bundle, image: NDArray[np.float32]) -> Classification:
    """Classify one image, an array (n_channels, height, width)."""
    model = vit_of(bundle)
    [row] = probabilities(model, image[None])
    return _answer(model.config.class_names, row)


@torch.no_grad()
def probabilities(
    model: ViT, images: NDArray[np.uint8] | NDArray[np.float32], on_progress: OnProgress | None = None
) -> Tensor:
    """Return the probability of each class for each image: (N, n_channels, height, width) -> (N, K)."""
    found, device = [], next(model.parameters()).device
    with evaluating(model), overflow_as_nan(model):
        for start in range(0, len(images), _IMAGES_AT_ONCE):
            some = torch.from_numpy(images[start : start + _IMAGES_AT_ONCE])
            some = some.float() / 127.5 - 1 if some.dtype == torch.uint8 else some
            found.append(check_finite(model(some.to(device))).float().softmax(dim=-1).cpu())
            if on_progress is not None:
                on_progress(Message("classifying images"), min(start + _IMAGES_AT_ONCE, len(images)), len(images))
    return torch.cat(found)


def vit_of(bundle: Bundle) -> ViT:
    """Return the ViT in a bundle; raise an error for other models."""
    if not isinstance(bundle.model, ViT):
        raise UsageError("this is a {family} model; only a ViT accepts images", family=bundle.config.family)
    return bundle.model
