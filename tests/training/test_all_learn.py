"""Every training task learns: each family overfits a small batch, and beats the trivial baseline on held-out data.

The fast tests use smaller versions of the pocket presets, so the file takes less than a minute on two cores. The slow
test uses the presets themselves, with the vocabulary of the data.
"""

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.prepared import prepared, some_stories

from kotha.artifacts.run_folder import RunFolder
from kotha.model.config import ModelConfig, classifying
from kotha.model.presets import preset
from kotha.text.shards import Dataset
from kotha.text.tokenizer.tokenizer import Tokenizer
from kotha.text.tokenizer.trainers import train as train_tokenizer
from kotha.training.config import TrainConfig
from kotha.training.loop import Training
from kotha.training.tasks.classification import ImageClasses, TextClasses
from kotha.training.tasks.examples import TextPair, Translation
from kotha.training.tasks.masked_words import MaskedWords
from kotha.training.tasks.task import Batch, NextToken, Task

Make = Callable[[ModelConfig, TrainConfig], Task]

SMALL = {"n_layers": 2, "d_model": 64, "n_heads": 2, "d_ff": 128}
QUICK = TrainConfig(
    batch_size=32, warmup_steps=10, learning_rate=3e-3, precision="float32", evaluate_every=10_000, evaluate_tokens=8192
)

# Reaches the goal in a third of the steps.
BOLD: dict[str, Any] = {"optimizer": "muon", "learning_rate": 1e-2, "muon_learning_rate": 2e-2}


class OneBatch:
    """A task with a single batch, used for training and evaluation."""

    def __init__(self, task: Task, batch_size: int) -> None:
        self._task, self._batch_size = task, batch_size

    def __getattr__(self, name: str) -> Any:
        return getattr(self._task, name)

    def batch(self, step: int, first: int, count: int) -> Batch:
        return self._task.batch(0, first, count)

    def validation(self) -> list[Batch]:
        return [self._task.batch(0, 0, self._batch_size)]


def learn(model: ModelConfig, config: TrainConfig, task: Task, path: Path) -> dict[str, Any]:
    """Train as a user would; return the score of the best weights."""
    folder = RunFolder(path / "run")
    folder.start(model, config.to_dict())
    return Training(model, config, task, folder).run()


# -- the data ---------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def unigrams(tmp_path_factory: pytest.TempPathFactory) -> Dataset:
    texts = some_stories(seed=5, n_documents=150)
    return prepared(tmp_path_factory.mktemp("data"), texts, train_tokenizer(texts, "unigram", 700), validation=0.1)


@pytest.fixture(scope="module")
def wordpieces(tmp_path_factory: pytest.TempPathFactory) -> Dataset:
    texts = some_stories(seed=5, n_documents=400, kinds=["entry"])
    return prepared(tmp_path_factory.mktemp("data"), texts, train_tokenizer(texts, "wordpiece", 500), validation=0.1)


TOPICS = [
    ["আম", "জাম", "লিচু", "কলা", "পেঁপে", "বেল"],
    ["গরু", "ছাগল", "ভেড়া", "মহিষ", "হাঁস", "মুরগি"],
    ["লাল", "নীল", "সবুজ", "হলুদ", "সাদা", "কালো"],
    ["নদী", "খাল", "বিল", "পুকুর", "দিঘি", "সাগর"],
]


@pytest.fixture(scope="module")
def topics(tmp_path_factory: pytest.TempPathFactory) -> Dataset:
    """Documents with random words from one topic each: a masked word is one of six, whatever its context."""
    chance = np.random.default_rng(0)
    texts = [" ".join(chance.choice(TOPICS[chance.integers(4)], 60)) for _ in range(400)]
    options = {"validation": 0.1, "leak_threshold": None}
    return prepared(tmp_path_factory.mktemp("data"), texts, train_tokenizer(texts, "wordpiece", 300), **options)


DIGITS = "০১২৩৪৫৬৭৮৯"
NAMES = ["শূন্য", "এক", "দুই", "তিন", "চার", "পাঁচ", "ছয়", "সাত", "আট", "নয়"]


def numbers() -> tuple[list[TextPair], Tokenizer]:
    """Numbers in Bangla digits and the names of their digits, each number once: ৪২০৭, "চার দুই শূন্য সাত"."""
    values = [str(value) for value in np.random.default_rng(0).permutation(np.arange(1000, 10_000))[:2200]]
    pairs = [("".join(DIGITS[int(d)] for d in value), " ".join(NAMES[int(d)] for d in value)) for value in values]
    tokenizer = train_tokenizer([" ".join(pair) for pair in pairs], "char", 100)
    return [(tokenizer.encode(a), tokenizer.encode(b)) for a, b in pairs], tokenizer


# Seven-segment digits: (top, bottom, left, right) of each segment, and the segments that are lit in the digits 0 to 9.
SEGMENTS = {
    "a": (0, 2, 0, 10),
    "b": (0, 10, 8, 10),
    "c": (8, 18, 8, 10),
    "d": (16, 18, 0, 10),
    "e": (8, 18, 0, 2),
    "f": (0, 10, 0, 2),
    "g": (8, 10, 0, 10),
}
LIT = ["abcdef", "bc", "abged", "abgcd", "fgbc", "afgcd", "afgedc", "abc", "abcdefg", "abcdfg"]


def drawn_digits(seed: int, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Digits near the centre of a noisy image: (n, 1, 28, 28) and (n,)."""
    chance = np.random.default_rng(seed)
    labels = chance.integers(10, size=n)
    images = np.zeros((n, 1, 28, 28))
    for image, label in zip(images, labels, strict=True):
        y, x = chance.integers(4, 6), chance.integers(8, 10)
        for top, bottom, left, right in (SEGMENTS[segment] for segment in LIT[label]):
            image[0, y + top : y + bottom, x + left : x + right] = 200
    return np.clip(images + chance.normal(0, 20, images.shape), 0, 255).astype(np.uint8), labels


# -- next tokens ------------------------------------------------------------------------------------------------------


def test_gpt_beats_the_unigram(unigrams: Dataset, tmp_path: Path) -> None:
    model = preset("pocket").replace(vocab_size=700, context_length=32, **{**SMALL, "n_layers": 1})
    config = QUICK.change(steps=80, batch_size=16, **BOLD)
    task = NextToken(model, config, unigrams)
    assert learn(model, config, task, tmp_path)["loss_nats"] < task.references()["unigram"] - 0.4


# -- masked words -----------------------------------------------------------------------------------------------------


def test_bert_beats_the_unigram_and_learns_sentence_pairs(topics: Dataset, tmp_path: Path) -> None:
    model = preset("pocket-bert").replace(vocab_size=topics.tokenizer.vocab_size, context_length=32, **SMALL)
    config = QUICK.change(steps=120, **{**BOLD, "muon_learning_rate": 4e-2})
    task = MaskedWords(model, config, topics)
    score = learn(model, config, task, tmp_path)
    assert score["words_nats"] < task.references()["unigram"] - 1
    assert math.log(6) - 0.2 < score["words_nats"] < math.log(6) + 0.15, "only the topic can be known"
    # One in four unrelated documents has the same topic and cannot be recognized: at most 7 of 8 on average.
    assert score["pairs_accuracy"] > 0.8
    assert score["pairs_nats"] < task.references()["coin flip"] - 0.2


# -- translation ------------------------------------------------------------------------------------------------------


def test_seq2seq_reads_held_out_numbers(tmp_path: Path) -> None:
    pairs, tokenizer = numbers()
    model = preset("pocket-seq2seq").replace(vocab_size=tokenizer.vocab_size, context_length=32, **SMALL)
    config = QUICK.change(steps=80, label_smoothing=0.1, **BOLD)
    task = Translation(model, config, pairs[:2000], pairs[2000:], tokenizer)
    score = learn(model, config, task, tmp_path)
    # A model that ignores the source has to guess the first letters of each name.
    assert score["loss_nats"] < task.references()["unigram"] / 10
    assert score["accuracy"] > 0.97


# -- classes ----------------------------------------------------------------------------------------------------------


def test_vit_beats_the_majority(tmp_path: Path) -> None:
    model = preset("vit-digits").replace(**SMALL)
    config = QUICK.change(steps=90, optimizer="muon", learning_rate=4e-3)
    task = ImageClasses(model, config, *drawn_digits(0, 2000), *drawn_digits(1, 300))
    score = learn(model, config, task, tmp_path)
    assert score["accuracy"] > 4 * score["majority"]
    assert score["loss_nats"] < task.references()["class frequencies"] - 0.8


@pytest.mark.parametrize(("name", "kind"), [("pocket-bert", "wordpiece"), ("pocket", "unigram")])
def test_a_text_classifier_beats_the_majority(name: str, kind: str, tmp_path: Path) -> None:
    chance = np.random.default_rng(0)
    labels = chance.integers(3, size=260).tolist()
    texts = [" ".join(chance.choice(TOPICS[label], 12)) for label in labels]
    tokenizer = train_tokenizer(texts, kind, 400)
    model = preset(name).replace(vocab_size=tokenizer.vocab_size, context_length=32, **SMALL)
    config = QUICK.change(steps=80, learning_rate=2e-3, batch_size=24)
    sets = texts[:200], labels[:200], texts[200:], labels[200:]
    classifier = classifying(model, "abc")
    task = TextClasses(classifier, config, *sets, tokenizer)
    score = learn(classifier, config, task, tmp_path)
    assert score["loss_nats"] < task.references()["class frequencies"] - 0.6
    assert score["accuracy"] > score["majority"] + 0.5


# -- the presets as they are ------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_the_pocket_presets_beat_their_baselines(
    unigrams: Dataset, wordpieces: Dataset, tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    pairs, tokenizer = numbers()
    config = QUICK.change(batch_size=16, steps=100, learning_rate=1e-3)
    gpt, bert = preset("pocket").replace(vocab_size=700), preset("pocket-bert").replace(vocab_size=500)
    seq2seq = preset("pocket-seq2seq").replace(vocab_size=tokenizer.vocab_size)
    short = config.change(context_length=64)
    runs: list[tuple[ModelConfig, TrainConfig, Task, str]] = [
        (gpt, short, NextToken(gpt, short, unigrams), "loss_nats"),
        (bert, short.change(steps=250), MaskedWords(bert, short.change(steps=250), wordpieces), "words_nats"),
        (seq2seq, config, Translation(seq2seq, config, pairs[:2000], pairs[2000:], tokenizer), "loss_nats"),
    ]
    for model, settings, task, figure in runs:
        summary = learn(model, settings, task, tmp_path / task.name)
        record_property(task.name, {name: summary[name] for name in (figure, "seconds")})
        assert summary[figure] < task.references()["unigram"] - 0.05, task.name
