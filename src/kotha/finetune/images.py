"""Train an image classifier on a folder with one subfolder per class, or on an archive of arrays.

::

    RUN/examples/     train.npz, validation.npz, test.npz
    RUN/classes.html  scores on the test part, with confusion matrix and baselines

Training starts from random weights or from a trained ViT (fine-tuning). If that ViT was trained on images of another
size, its positions are interpolated; if it was trained on other classes, its head is replaced. Each image is shifted
slightly each time it is read (augmentation; disable it with ``augment="none"``).
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
    requested_model,
    training_settings,
)
from kotha.finetune.splits import divide
from kotha.i18n.message import Message, OnRemark, some_of
from kotha.model.config import ViTConfig
from kotha.storage.atomic import atomic_path
from kotha.storage.images import LabelledImages, read_labelled_images
from kotha.training.plan.memory import positions
from kotha.training.tasks.classification import ImageClasses

USUAL_PRESET = "vit-digits"
_PASSES = 30  # number of epochs, if no duration is given
_USUAL: dict[str, Any] = {
    **USUAL,
    **{"optimizer": "muon", "batch_size": 128, "weight_decay": 0.05, "beta2": 0.99},
    **{"label_smoothing": 0.1, "augment": "move", "warmup_steps": 1_000_000},  # limited to a tenth of the steps
}
# The rates of AdamW (embeddings and norms) and Muon (matrices) at the width below; they are inversely proportional to
# the square root of the width (docs/dev/experiments.md).
_RATES, _RATE_WIDTH = {"learning_rate": 5e-3, "muon_learning_rate": 2e-2}, 64


class ClassifyImages(ExampleTask):
    """Image classification with a ViT."""

    learns = ImageClasses
    called = ("{n} image", "{n:,} images")
    by_minutes = True

    def plan(self, request: ExamplesRequest, say: OnRemark) -> RunPlan:
        requested = requested_model(request, ViTConfig, USUAL_PRESET, Message("images")).replace(labels=())
        if request.origin is None and request.preset is None:
            template = "no preset given: using {preset}, which takes images of {side} x {side} pixels"
            say(Message(template, preset=USUAL_PRESET, side=requested.image_size))
        given = read_labelled_images(request.data, requested.image_size, requested.n_channels)
        held_out = given.get("validation"), given.get("test")
        parts = divide(given["train"], *held_out, share=request.held_out, seed=request.seed)
        labels = tuple(sorted(set(parts.train.labels)))
        say(Message("classes: {classes}", classes=some_of(labels)))
        self.say_parts(parts, say)
        model = requested.replace(labels=labels, n_classes=len(labels))
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
        train, validation = (
            (part.images, numbered(part.labels, plan.model.class_names)) for part in plan.parts.used_in_training
        )
        return ImageClasses(plan.model, plan.config, *train, *validation)

    def write_part(self, file: Path, part: LabelledImages) -> None:
        with atomic_path(file.with_suffix(".npz")) as partial, partial.open("wb") as stream:
            np.savez_compressed(stream, images=part.images, labels=np.array(part.labels))

    def read_part(self, file: Path, about: dict[str, Any]) -> LabelledImages:
        with example_file(file.with_suffix(".npz")) as written, np.load(written, allow_pickle=False) as archive:
            return LabelledImages(archive["images"], tuple(str(label) for label in archive["labels"].tolist()))


def learning_rates(d_model: int) -> dict[str, float]:
    """Return the peak learning rates for a model width.

    >>> learning_rates(256)
    {'learning_rate': 0.0025, 'muon_learning_rate': 0.01}
    """
    return {name: rate * (_RATE_WIDTH / d_model) ** 0.5 for name, rate in _RATES.items()}
