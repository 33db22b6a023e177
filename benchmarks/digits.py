"""Classify digits with a small ViT and a CNN of equal size, compared with nearest-neighbour and majority baselines.

    python benchmarks/digits.py TRAIN [--test TEST] [--preset vit-digits] [--minutes 10] [--seeds 0 1 2]
        [--cnn-rate 2e-3] [--limit 500] [--out FOLDER] [--set augment=none]

TRAIN and TEST are archives (.npz) or folders by class, as for ``kotha train``. Without TEST, the test part of TRAIN is
used, or a tenth of it that is excluded from training. Both models are trained on the same images, with the same
augmentation, in the same batches, for the same number of steps with the same schedule; the weights with the lowest
validation loss are kept. The ViT is trained with Muon, as in ``kotha train``, and the CNN with AdamW, as is common. The
CNN has two convolutions, each with a norm and pooling, and two linear layers; its width is chosen so that it has as
many parameters as the ViT.

``--limit`` uses only this many images from each part, to test the script. The means over seeds, the largest deviations
from them, and the duration of each training run are printed last.
"""

import argparse
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent.parent / "src"))
sys.path.insert(0, str(Path(__file__).parent))

import numpy as np
import record
import torch
from torch import Tensor, nn

from kotha.api.examples import measure_images
from kotha.artifacts.run_folder import RunFolder
from kotha.finetune.examples import ExamplesRequest, start
from kotha.finetune.images import ClassifyImages
from kotha.finetune.splits import Parts
from kotha.model.config import ViTConfig, config_from_dict
from kotha.model.family import build
from kotha.model.presets import preset
from kotha.storage.images import LabelledImages, read_labelled_images
from kotha.training.config import TrainConfig
from kotha.training.device import choose_arithmetic
from kotha.training.optim import learning_rate_share
from kotha.training.tasks.classification import ImageClasses


class CNN(nn.Module):
    """Two convolutions and two linear layers: (B, n_channels, side, side) -> (B, n_classes)."""

    def __init__(self, config: ViTConfig, width: int) -> None:
        super().__init__()
        side = config.image_size // 4
        self.seen = nn.Sequential(
            nn.Conv2d(config.n_channels, width, 3, padding=1),
            nn.BatchNorm2d(width),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Conv2d(width, 2 * width, 3, padding=1),
            nn.BatchNorm2d(2 * width),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Flatten(),
            nn.Linear(2 * width * side * side, 4 * width),
            nn.ReLU(),
            nn.Dropout(config.dropout),
            nn.Linear(4 * width, config.n_classes),
        )

    def forward(self, images: Tensor) -> Tensor:
        found: Tensor = self.seen(images)
        return found


def size(model: nn.Module) -> int:
    return sum(weight.numel() for weight in model.parameters())


def cnn_of(config: ViTConfig, parameters: int) -> CNN:
    """Return the CNN whose number of parameters is closest to the given number."""
    return min((CNN(config, width) for width in range(4, 129)), key=lambda model: abs(size(model) - parameters))


def learn_cnn(
    config: ViTConfig, settings: TrainConfig, parts: Parts[LabelledImages], parameters: int, rate: float
) -> dict[str, Any]:
    """Train the CNN in a plain loop over the task's batches."""
    number = {label: place for place, label in enumerate(config.class_names)}
    labels = {
        name: torch.tensor([number[label] for label in getattr(parts, name).labels])
        for name in ("train", "validation", "test")
    }
    task = ImageClasses(
        config, settings, parts.train.images, labels["train"], parts.validation.images, labels["validation"]
    )
    arithmetic = choose_arithmetic(settings.precision, None)
    torch.manual_seed(settings.seed)
    model = cnn_of(config, parameters).to(arithmetic.device)
    optimizer = torch.optim.AdamW(
        model.parameters(), rate, (settings.beta1, settings.beta2), weight_decay=settings.weight_decay
    )
    began, best, kept = time.perf_counter(), float("inf"), {}
    for step in range(settings.steps):
        model.train()
        for group in optimizer.param_groups:
            group["lr"] = rate * learning_rate_share(step, settings)
        optimizer.zero_grad(set_to_none=True)
        with arithmetic.autocast():
            (loss,) = task.losses(model, task.batch(step, 0, settings.batch_size).to(arithmetic.device)).values()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), settings.gradient_clip or float("inf"))
        optimizer.step()
        if (step + 1) % settings.evaluate_every == 0 or step + 1 == settings.steps:
            nats = validate(model, task, arithmetic)
            if nats < best:
                best, kept = nats, {name: each.detach().clone() for name, each in model.state_dict().items()}
    seconds = time.perf_counter() - began
    model.load_state_dict(kept)
    said = answers(model.eval(), parts.test)
    right = float((said == labels["test"]).float().mean())
    return {"accuracy": round(right, 4), "parameters": size(model), "seconds": round(seconds, 1)}


@torch.no_grad()
def validate(model: CNN, task: ImageClasses, arithmetic: Any) -> float:
    model.eval()
    batches = task.validation()
    nats = sum(float(task.measure(model, batch.to(arithmetic.device))["examples"]) for batch in batches)
    return nats / sum(batch.targets["examples"] for batch in batches)


@torch.no_grad()
def answers(model: CNN, images: LabelledImages) -> Tensor:
    device = next(model.parameters()).device
    some = (images.images[start : start + 256] for start in range(0, len(images), 256))
    scaled = (torch.from_numpy(each).float() / 127.5 - 1 for each in some)
    return torch.cat([model(each.to(device)).argmax(dim=-1).cpu() for each in scaled])


def archive(given: argparse.Namespace, folder: Path) -> Path:
    """Write TRAIN and TEST to one archive with all parts."""
    changed = record.from_words(given.set)
    base = preset(given.preset)
    assert isinstance(base, ViTConfig)
    side, channels = changed.get("image_size", base.image_size), changed.get("n_channels", base.n_channels)
    parts = read_labelled_images(given.train, side, channels)
    if given.test is not None:
        found = read_labelled_images(given.test, side, channels)
        parts["test"] = found.get("test", found["train"])
    arrays = {}
    for part, images in parts.items():
        order = np.random.default_rng(0).permutation(len(images))[: given.limit]
        some = images.chosen(order.tolist())
        arrays |= {f"{part}_images": some.images, f"{part}_labels": np.array(some.labels)}
    np.savez(folder / "digits.npz", **arrays)
    return folder / "digits.npz"


def compare(given: argparse.Namespace, seed: int) -> dict[str, Any]:
    """Compare both models with one seed."""
    settings = {**record.from_words(given.set), "seed": seed}
    with tempfile.TemporaryDirectory() as place:
        digits = archive(given, Path(place))
        folder = RunFolder(Path(place) / "run")
        request = ExamplesRequest(given.preset, minutes=given.minutes, changes=settings, data=digits)
        tell = lambda said: print(f"  {said}", flush=True)
        summary = start(ClassifyImages(measure_images), request, folder, on_remark=tell)
        about = folder.about()
        config, training = config_from_dict(about["model"]), TrainConfig().change(**about["training"])
        parts = ClassifyImages().read_parts(folder.path)
    assert isinstance(config, ViTConfig)
    parameters = size(build(config, "meta"))
    found: dict[str, Any] = {"images": len(parts.train), "test": len(parts.test), "steps": training.steps}
    found["vit"] = {
        "accuracy": round(summary["accuracy"], 4),
        "parameters": parameters,
        "seconds": round(summary["seconds"], 1),
    }
    found["cnn"] = learn_cnn(config, training, parts, parameters, given.cnn_rate)
    found |= {name: {"accuracy": round(each["accuracy"], 4)} for name, each in summary["baselines"].items()}
    for name in ("vit", "cnn", "nearest neighbour", "majority"):
        print(f"seed {seed}, {name}: {found[name]}", flush=True)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("train", type=Path)
    parser.add_argument("--test", type=Path)
    parser.add_argument("--preset", default="vit-digits")
    parser.add_argument("--minutes", type=float)
    parser.add_argument("--cnn-rate", type=float, default=2e-3)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--name", default="digits")
    parser.add_argument("--limit", type=int)
    parser.add_argument("--out", type=Path, default=record.RESULTS)
    parser.add_argument("--set", nargs="+", default=[])
    given = parser.parse_args()
    runs = [compare(given, seed) for seed in given.seeds]
    means = {}
    for name in ("vit", "cnn", "nearest neighbour", "majority"):
        values = [run[name]["accuracy"] for run in runs]
        mean = statistics.mean(values)
        means[name] = [round(mean, 4), round(max(abs(value - mean) for value in values), 4)]
    print(means)
    record.save(given.name, {"means": means, "seeds": runs, "limit": given.limit}, ["torch"], given.out)


if __name__ == "__main__":
    main()
