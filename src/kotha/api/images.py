"""A classifier of images, from Python and for the command."""

from dataclasses import replace
from pathlib import Path
from typing import Any

from kotha.api import Place
from kotha.artifacts.run_folder import RunFolder
from kotha.errors import UsageError
from kotha.finetune.examples import ExamplesRequest, start
from kotha.finetune.examples import resume as resume_run
from kotha.finetune.images import ClassifyImages
from kotha.storage.images import holds_images
from kotha.storage.status import is_there
from kotha.text.shards import DATASET_FILE
from kotha.training.origin import Origin
from kotha.training.settings import TrainRequest


def are_images(data: Place) -> bool:
    """Whether a training learns from images: an archive of arrays, or folders with images, and no data folder."""
    return not is_there(Path(data) / DATASET_FILE) and holds_images(Path(data))


def train_on_images(
    data: Place,
    folder: RunFolder,
    wish: TrainRequest,
    *,
    recipe: str | None = None,
    origin: Origin | None = None,
    resume: bool = False,
    **heard: Any,
) -> dict[str, Any]:
    """Train a classifier of images, or go on with one; returns the summary. ``heard`` is on_event and on_remark."""
    if resume:
        if wish.minutes is not None or origin is not None:
            raise UsageError("a run that is resumed goes on from its own weights and has its steps, or other steps")
        return resume_run(ClassifyImages(), folder, dict(wish.changes), **heard)
    if origin is not None:
        wish = replace(wish, model=origin.bundle.config)
    return start(ClassifyImages(), ExamplesRequest(Path(data), origin, recipe=recipe, wish=wish), folder, **heard)
