"""A classifier of images: from a folder by class, or an archive of arrays, to a run folder.

::

    RUN/examples/    train.npz, validation.npz, test.npz
    RUN/best/        the ViT with the names of its classes, a model folder as any other
    RUN/classes.html the held-out part: scores, confusion matrix, baselines

The rest is a run from examples (``examples.py``). It begins from chance, or from a ViT that may have been trained on
images of another size or on other classes (fine-tuning): its positions are stretched, and its head is made anew. Each
image is moved a little each time it is read (augmentation; ``augment="none"`` leaves it as it is).
"""

import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from kotha.artifacts.model_folder import Bundle
from kotha.artifacts.run_folder import RunFolder
from kotha.errors import CheckpointError, ConfigError
from kotha.evaluation.classes_page import classes_page
from kotha.evaluation.images import evaluate_images
from kotha.finetune import examples
from kotha.finetune.examples import EXAMPLES, PARTS, OnRemark
from kotha.finetune.splits import Parts, divide_images
from kotha.i18n.wording import counted, some_of
from kotha.model.config import ModelConfig, ViTConfig
from kotha.model.presets import preset
from kotha.storage.atomic import whole_path, write_whole
from kotha.storage.images import LabelledImages, read_labelled_images
from kotha.training.config import TrainConfig
from kotha.training.loop import OnEvent, Training
from kotha.training.origin import Origin
from kotha.training.plan.activations import positions
from kotha.training.plan.rules import pace_of, warmed_in_time
from kotha.training.recipes import recipe
from kotha.training.settings import USUAL_MINUTES, TrainRequest, check_settings, fit_to_minutes, take_sizes
from kotha.training.tasks.classification import ImageClasses

PAGE = "classes.html"
USUAL_PRESET = "vit-digits"
# Passes over the images where nobody says how long, and how many looks without gain end the run.
_PASSES, _PATIENCE = 30, 6
_USUAL: dict[str, Any] = {
    "optimizer": "muon",
    "batch_size": 128,
    "weight_decay": 0.05,
    "beta2": 0.99,
    "label_smoothing": 0.1,
    "schedule": "cosine",
    "floor": 0.0,
    "augment": "move",
    "patience": _PATIENCE,
    "keep_checkpoints": 1,
    "spike": None,
}
# AdamW's for tables and norms, and Muon's for the matrices, at a width; they fall with its root (docs/experiments.md).
_RATES, _RATE_WIDTH = {"learning_rate": 5e-3, "muon_learning_rate": 2e-2}, 64


@dataclass(frozen=True)
class ImagesRequest:
    """What was asked for; all the rest is chosen."""

    held_out: float = 0.1  # share of each class for a part that the data does not bring itself
    recipe: str | None = None  # settings by name; None: those that are usual for images
    wish: TrainRequest = field(default_factory=TrainRequest)  # preset, minutes, settings and sizes


def start_images(
    place: Path,
    folder: RunFolder,
    request: ImagesRequest,
    *,
    origin: Origin | None = None,
    on_event: OnEvent | None = None,
    on_remark: OnRemark | None = None,
) -> dict[str, Any]:
    """Make a classifier of images; returns the summary, with the scores on the held-out part."""
    say, began = on_remark or (lambda _: None), time.perf_counter()
    wished = _wished_model(request.wish, origin)
    folder.check_new()
    if origin is None and request.wish.preset is None:
        side = wished.image_size
        say(f"preset {USUAL_PRESET}, since none was named; it reads images of {side} x {side} pixels")
    given = read_labelled_images(place, wished.image_size, wished.n_channels)
    seed = int(request.wish.changes.get("seed", 0))
    held_out = given.get("validation"), given.get("test")
    parts = divide_images(given["train"], *held_out, share=request.held_out, seed=seed)
    labels = tuple(sorted(set(parts.train.labels)))
    say(f"classes: {some_of(labels)}")
    for remark in parts.remarks:
        say(remark)
    say(", ".join(f"{counted(len(getattr(parts, part)), 'image')} for {part}" for part in PARTS))
    model, config = _settings(wished.replace(labels=labels, n_classes=len(labels)), parts, request, origin, say)
    fill = None if origin is None else lambda made: origin.fill(made, None)
    training = _training(model, config, parts, folder, on_event, fill)
    if request.wish.timed:
        training.deadline = began + 60 * (request.wish.minutes or USUAL_MINUTES)
    about = {} if origin is None else {"origin": origin.name}
    try:
        examples.begin(training, model, None, (), {}, lambda kept: _write_parts(kept, parts), **about)
        return _finish(training, parts, folder, say)
    finally:
        folder.release()


def resume_images(
    folder: RunFolder, changes: dict[str, Any], *, on_event: OnEvent | None = None, on_remark: OnRemark | None = None
) -> dict[str, Any]:
    """Go on with a run that was stopped, from its last checkpoint."""
    say = on_remark or (lambda _: None)
    folder.claim()
    try:
        model, config = examples.settings_of(folder, changes)
        if not isinstance(model, ViTConfig):
            said = f"{folder.path} holds a run of a {model.family}, which saw no images; go on with its own data"
            raise CheckpointError(said)
        parts = read_image_parts(folder.path)
        training = _training(model, config, parts, folder, on_event)
        examples.go_on(training, changes, say)
        return _finish(training, parts, folder, say)
    finally:
        folder.release()


def read_image_parts(run: Path) -> Parts[LabelledImages]:
    """The images that a run learned from, chose by and was measured on."""
    train, validation, test = (_read_part(run / EXAMPLES / f"{part}.npz") for part in PARTS)
    return Parts(train, validation, test)


# -- the parts of a run -----------------------------------------------------------------------------------------------


def _wished_model(wish: TrainRequest, origin: Origin | None) -> ViTConfig:
    """The model that was asked for: it must be one that reads images."""
    if origin is not None and not isinstance(origin.bundle.config, ViTConfig):
        raise ConfigError(f"{origin.name} is a {origin.bundle.config.family} model, and images are for a vit")
    base: ModelConfig = preset(wish.preset or USUAL_PRESET) if origin is None else origin.bundle.config
    if not isinstance(base, ViTConfig):
        raise ConfigError(
            f"preset {wish.preset!r} is a {base.family} model, and images are for a vit: preset={USUAL_PRESET!r}"
        )
    model = take_sizes(base.replace(labels=()), wish.changes)[0]
    assert isinstance(model, ViTConfig)
    return model


def _settings(
    model: ViTConfig, parts: Parts[LabelledImages], request: ImagesRequest, origin: Origin | None, say: OnRemark
) -> tuple[ModelConfig, TrainConfig]:
    wish, given = request.wish, take_sizes(model, request.wish.changes)[1]
    if request.recipe is None:
        config = TrainConfig().change(**{**_USUAL, **learning_rates(model.d_model), **given})
    else:  # by name: to the letter
        config = recipe(request.recipe, **given)
    made: ModelConfig = model if config.dropout is None else model.replace(dropout=config.dropout)
    check_settings(made, config)
    if config.lora is not None or config.best_by != "loss":
        raise ConfigError("lora and best_by are for texts; leave them out")
    if origin is not None:
        origin.check(made, None)
    if wish.timed:
        say("measuring this machine …")
        choice = fit_to_minutes(wish, made, config, given, positions(made, 0))
        say(choice.sentence)
        return made, choice.settings
    if request.recipe is not None:
        return made, warmed_in_time(config, given)
    per_pass = len(parts.train) / config.batch_size
    steps = config.steps if "steps" in given else max(1, round(_PASSES * per_pass))
    pace = {**pace_of(steps), "warmup_steps": steps // 10}
    return made, config.change(**{name: value for name, value in pace.items() if name not in given})


def learning_rates(d_model: int) -> dict[str, float]:
    """The largest learning rates for a width.

    >>> learning_rates(256)
    {'learning_rate': 0.0025, 'muon_learning_rate': 0.01}
    """
    return {name: rate * (_RATE_WIDTH / d_model) ** 0.5 for name, rate in _RATES.items()}


def _training(
    model: ModelConfig,
    config: TrainConfig,
    parts: Parts[LabelledImages],
    folder: RunFolder,
    on_event: OnEvent | None,
    fill: Any = None,
) -> Training:
    assert isinstance(model, ViTConfig)
    number = {label: place for place, label in enumerate(model.class_names)}
    learned, chosen = (
        (part.images, [number[label] for label in part.labels]) for part in (parts.train, parts.validation)
    )
    task = ImageClasses(model, config, *learned, *chosen)
    return examples.training_of(model, config, task, folder, None, on_event=on_event, fill=fill)


def _finish(training: Training, parts: Parts[LabelledImages], folder: RunFolder, say: OnRemark) -> dict[str, Any]:
    """Train to the end; then, and only then, look at the held-out part."""

    def measure(best: Bundle) -> dict[str, Any]:
        score = evaluate_images(best, parts.test, parts.train)
        lead = f"Measured on {counted(score.examples, 'image')} that were kept out of training and out of every choice."
        title = f"{folder.path.name}: {len(score.labels):,} classes"
        write_whole(folder.path / PAGE, classes_page(score, title, lead, called="image"))
        return score.to_dict()

    return examples.finish(training, measure, say)


def _write_parts(place: Path, parts: Parts[LabelledImages]) -> None:
    for part in PARTS:
        some: LabelledImages = getattr(parts, part)
        with whole_path(place / f"{part}.npz") as partial, partial.open("wb") as file:
            np.savez_compressed(file, images=some.images, labels=np.array(some.labels))


def _read_part(file: Path) -> LabelledImages:
    try:
        with np.load(file, allow_pickle=False) as archive:
            return LabelledImages(archive["images"], tuple(str(label) for label in archive["labels"].tolist()))
    except (OSError, ValueError, KeyError) as error:
        raise CheckpointError(f"{file} cannot be read: {error}; a run needs its examples to go on") from error
