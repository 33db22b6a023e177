"""A classifier of images: from a folder by class, or an archive of arrays.

::

    RUN/examples/     train.npz, validation.npz, test.npz
    RUN/classes.html  the held-out part: scores, confusion matrix, baselines

It begins from chance, or from a ViT that may have been trained on images of another size or on other classes
(fine-tuning): its positions are stretched, and its head is made anew. Each image is moved a little each time it is read
(augmentation; ``augment="none"`` leaves it as it is).
"""

from pathlib import Path
from typing import Any

import numpy as np

from kotha.finetune.examples import (
    USUAL,
    ExamplesRequest,
    ExampleTask,
    RunPlan,
    example_file,
    numbered,
    training_settings,
    wished_model,
)
from kotha.finetune.splits import divide
from kotha.i18n.message import Message, OnRemark, some_of
from kotha.model.config import ViTConfig
from kotha.storage.atomic import atomic_path
from kotha.storage.images import LabelledImages, read_labelled_images
from kotha.training.plan.memory import positions
from kotha.training.tasks.classification import ImageClasses

USUAL_PRESET = "vit-digits"
_PASSES = 30  # over the images, where nobody says how long
_USUAL: dict[str, Any] = {
    **USUAL,
    **{"optimizer": "muon", "batch_size": 128, "weight_decay": 0.05, "beta2": 0.99},
    **{"label_smoothing": 0.1, "augment": "move", "warmup_steps": 1_000_000},  # a tenth of the steps, whatever they are
}
# AdamW's for tables and norms, and Muon's for the matrices, at a width; they fall with its root
# (docs/dev/experiments.md).
_RATES, _RATE_WIDTH = {"learning_rate": 5e-3, "muon_learning_rate": 2e-2}, 64


class ClassifyImages(ExampleTask):
    """Images with labels, for a ViT."""

    learns = ImageClasses
    called = ("{n} image", "{n:,} images")
    by_minutes = True

    def plan(self, request: ExamplesRequest, say: OnRemark) -> RunPlan:
        wished = wished_model(request, ViTConfig, USUAL_PRESET, Message("images")).replace(labels=())
        if request.origin is None and request.preset is None:
            said = "no preset given: using {preset}, which reads images of {side} x {side} pixels"
            say(Message(said, preset=USUAL_PRESET, side=wished.image_size))
        given = read_labelled_images(request.data, wished.image_size, wished.n_channels)
        held_out = given.get("validation"), given.get("test")
        parts = divide(given["train"], *held_out, share=request.held_out, seed=request.seed)
        labels = tuple(sorted(set(parts.train.labels)))
        say(Message("classes: {classes}", classes=some_of(labels)))
        self.say_parts(parts, say)
        model = wished.replace(labels=labels, n_classes=len(labels))
        settings = training_settings(
            model,
            request,
            {**_USUAL, **learning_rates(model.d_model)},
            say,
            examples_read=_PASSES * len(parts.train),
            usual_length=positions(model, 0),
        )
        return RunPlan(*settings, parts)

    def task(self, plan: RunPlan) -> ImageClasses:
        assert isinstance(plan.model, ViTConfig)
        learned, chosen = ((part.images, numbered(part.labels, plan.model.class_names)) for part in plan.parts.learned)
        return ImageClasses(plan.model, plan.config, *learned, *chosen)

    def write_part(self, file: Path, part: LabelledImages) -> None:
        with atomic_path(file.with_suffix(".npz")) as partial, partial.open("wb") as stream:
            np.savez_compressed(stream, images=part.images, labels=np.array(part.labels))

    def read_part(self, file: Path, about: dict[str, Any]) -> LabelledImages:
        with example_file(file.with_suffix(".npz")) as written, np.load(written, allow_pickle=False) as archive:
            return LabelledImages(archive["images"], tuple(str(label) for label in archive["labels"].tolist()))


def learning_rates(d_model: int) -> dict[str, float]:
    """The largest learning rates for a width.

    >>> learning_rates(256)
    {'learning_rate': 0.0025, 'muon_learning_rate': 0.01}
    """
    return {name: rate * (_RATE_WIDTH / d_model) ** 0.5 for name, rate in _RATES.items()}
