"""Classification of images and texts: shapes, slices, scores, and rejected inputs."""

import math
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
import torch
from tests.text.conftest import trained

from kotha.errors import ConfigError, DataError
from kotha.model.config import BERTConfig, GPTConfig, TextConfig, ViTConfig, classifying
from kotha.model.presets import preset
from kotha.training.config import TrainConfig
from kotha.training.tasks.classification import ImageClasses, TextClasses, augmented

VIT = ViTConfig(image_size=4, patch_size=2, n_channels=1, n_classes=3, n_layers=1, d_model=8, n_heads=1)
CONFIG = TrainConfig(batch_size=4, seed=2)
# Each image has one brightness, which identifies it.
IMAGES = np.broadcast_to(np.arange(10, dtype=np.uint8)[:, None, None, None], (10, 1, 4, 4)).copy()
LABELS = np.array([0, 1, 1, 2, 1, 0, 1, 2, 1, 0])


def images(pixels: Any = IMAGES) -> ImageClasses:
    return ImageClasses(VIT, CONFIG, pixels, LABELS, IMAGES[:6], LABELS[:6])


def test_bytes_are_scaled_and_keep_their_labels() -> None:
    tensors = images().batch(0, 0, 4).tensors
    assert tensors["images"].shape == (4, 1, 4, 4)
    shown = ((tensors["images"][:, 0, 0, 0] + 1) * 127.5).round().long()
    assert torch.equal(tensors["labels"], torch.from_numpy(LABELS)[shown])


def test_every_image_once_per_epoch_and_slices_of_a_batch() -> None:
    made = images()
    read = [example for step in range(5) for example in made._order.examples(step)]
    assert sorted(read[:10]) == sorted(read[10:]) == list(range(10))
    assert read[:10] != read[10:]
    full, part = made.batch(2, 0, 4), made.batch(2, 1, 2)
    assert all(torch.equal(part.tensors[name], full.tensors[name][1:3]) for name in full.tensors)
    assert (part.targets, part.tokens) == ({"examples": 2}, 2 * 5)


@pytest.mark.parametrize("augment", ["move", "mirror"])
def test_augmentation_depends_on_the_turn_alone(augment: Any) -> None:
    chance = np.random.default_rng(0)
    noisy = chance.integers(0, 255, (10, 1, 8, 8)).astype(np.uint8)
    config = CONFIG.change(augment=augment)
    made = ImageClasses(VIT.replace(image_size=8), config, noisy, LABELS, noisy, LABELS)
    full, part = made.batch(2, 0, 4).tensors["images"], made.batch(2, 1, 2).tensors["images"]
    assert torch.equal(part, full[1:3]) and torch.equal(full, made.batch(2, 0, 4).tensors["images"])
    assert full.min() >= -1 and full.max() <= 1, "no values from outside the image"
    plain = ImageClasses(VIT.replace(image_size=8), CONFIG, noisy, LABELS, noisy, LABELS)
    assert not torch.equal(full, plain.batch(2, 0, 4).tensors["images"])
    assert torch.equal(made.validation()[0].tensors["images"], plain.validation()[0].tensors["images"])


def test_identity_changes_nothing_and_mirroring_does(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("_TURN", "_SHIFT", "_SCALE"):
        monkeypatch.setattr(f"kotha.training.tasks.classification.{name}", 0.0)
    image = torch.rand(1, 2, 6, 6)
    chances = [np.random.default_rng(seed) for seed in range(8)]
    moved = augmented(image.expand(8, -1, -1, -1), chances, flip=True)
    mirrored = [bool(torch.allclose(each, image[0].flip(-1), atol=1e-5)) for each in moved]
    same = [bool(torch.allclose(each, image[0], atol=1e-5)) for each in moved]
    assert all(a != b for a, b in zip(mirrored, same, strict=True)) and any(mirrored) and any(same)


def test_scores_and_references() -> None:
    made = images()
    score = made.score({"examples": 3.0, "right": 4.0}, {"examples": 6})
    # The most frequent class in training is 1, which is the class of three of the six held-out images.
    assert score == pytest.approx({"loss_nats": 0.5, "accuracy": 4 / 6, "majority": 0.5, "examples": 6})
    # The training counts are 3, 5 and 2 out of ten, each plus one; the held-out counts are 2, 3 and 1.
    frequencies = -(2 * math.log(4 / 13) + 3 * math.log(6 / 13) + math.log(3 / 13)) / 6
    assert made.references() == pytest.approx({"uniform over classes": math.log(3), "class frequencies": frequencies})


def test_images_of_another_size_are_rejected() -> None:
    with pytest.raises(DataError, match=r"images have shape \(10, 1, 3, 4\), but the model expects \(N, 1, 4, 4\)"):
        images(IMAGES[:, :, :3])


def texts(model: TextConfig, kind: str, given: list[str], labels: list[int]) -> TextClasses:
    return TextClasses(classifying(model, "abc"), CONFIG, given, labels, given, labels, trained(kind))


@pytest.mark.parametrize(("family", "kind"), [(BERTConfig, "wordpiece"), (GPTConfig, "unigram")])
def test_texts_get_special_tokens_and_long_ones_are_split(family: type[TextConfig], kind: str) -> None:
    tokenizer = trained(kind)
    model = family(vocab_size=tokenizer.vocab_size, context_length=6, n_layers=1, d_model=8, n_heads=1)
    given = ["আমি", "আমার সোনার বাংলা আমি তোমায় ভালোবাসি", "তুমি", ""]
    made = texts(model, kind, given, [0, 1, 2, 0])
    ids = tokenizer.encode(given[1])
    assert made.too_long == 0
    batch = made.batch(0, 0, CONFIG.batch_size).tensors
    before = [tokenizer.special["cls"]] if family is BERTConfig else []
    after = [tokenizer.special["sep" if family is BERTConfig else "eos"]]
    room = 6 - len(before) - len(after)
    count = -(-len(ids) // room)
    cuts = [part * len(ids) // count for part in range(count + 1)]
    long = [ids[start:end] for start, end in pairwise(cuts)]
    assert count > 1 and [each for some in long for each in some] == ids, "nothing is lost, nothing is read twice"
    wanted = [
        ([*before, *some, *after], label)
        for label, stretches in (
            (0, [tokenizer.encode(given[0])]),
            (1, long),
            (2, [tokenizer.encode("তুমি")]),
            (0, [[]]),
        )
        for some in stretches
    ]
    seen = [
        (tokens[real].tolist(), int(label))
        for tokens, real, label in zip(batch["tokens"], batch["real"], batch["labels"], strict=True)
    ]
    assert all(each in wanted for each in seen)
    part = made.batch(0, 1, 2).tensors
    assert all(torch.equal(part[name], batch[name][1:3]) for name in batch)


def test_unusable_texts_are_rejected() -> None:
    tokenizer = trained("unigram")
    bert = BERTConfig(vocab_size=tokenizer.vocab_size, context_length=8, n_layers=1, d_model=8, n_heads=1)
    with pytest.raises(
        DataError, match=r"no cls token, which this model requires for classification; .* of kind 'wordpiece'"
    ):
        texts(bert, "unigram", ["আমি"], [0])
    with pytest.raises(ConfigError, match="a vit model cannot classify text; use bert or gpt"):
        texts(VIT, "unigram", ["আমি"], [0])
    with pytest.raises(ConfigError, match="use vocab_size="):
        texts(bert.replace(vocab_size=9), "unigram", ["আমি"], [0])


def test_rare_classes_weigh_more_and_macro_f1_selects() -> None:
    tokenizer = trained("unigram")
    model = classifying(preset("pocket").replace(vocab_size=tokenizer.vocab_size, context_length=16), "abc")
    labels = [0, 0, 0, 0, 1, 2]
    config = CONFIG.change(class_weights="balanced", batch_size=6)
    task = TextClasses(model, config, ["আমি"] * 6, labels, ["আমি"] * 6, labels, tokenizer)
    batch = task.batch(0, 0, 6).tensors
    assert {(int(label), float(weight)) for label, weight in zip(batch["labels"], batch["weights"], strict=True)} == {
        (0, 0.5),
        (1, 2.0),
        (2, 2.0),
    }, "scikit-learn's n / (K count)"
    logits = torch.tensor([[3.0, 0.0, 0.0]]).repeat(6, 1)
    weighted = torch.nn.functional.cross_entropy(logits, batch["labels"], torch.tensor([0.5, 2.0, 2.0]))
    torch.testing.assert_close(task.losses(lambda *_: logits, batch)["examples"], weighted)
    sums = task.measure(lambda *_: logits, batch)
    score = task.score({name: float(each) for name, each in sums.items()}, {"examples": 6})
    assert score["accuracy"] == pytest.approx(4 / 6) and score["macro_f1"] == pytest.approx(0.8 / 3)
    assert task.error(score) == pytest.approx(1 - 0.8 / 3)
    with pytest.raises(DataError, match="class 2 has no training example"):
        TextClasses(model, config, ["আমি"] * 2, [0, 1], ["আমি"], [0], tokenizer)
