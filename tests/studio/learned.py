"""A trained model of each family, in seconds on one core.

All models are trained through the public API on the built-in encyclopaedia entries about birds and fruits: a BERT on
masked words in their first sentences, a Seq2Seq on their names in Latin letters, and a classifier on the two classes. A
ViT is trained on generated shapes. The trained GPT is the bundled model.
"""

import csv
import json
import random
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

import kotha
from kotha.text.perturb import romanized
from kotha.text.stories.corpus import stories

BIRD, FRUIT = "পাখি", "ফল"
# A sentence from the corpus with an easily predictable word, and the position of this word, counted from 0 as in Look.
BIRD_SENTENCE, BIRD_PLACE = "শালিক বাংলার একটি চেনা পাখি।", 4
FRUIT_SENTENCE = "চালতা বাংলার একটি প্রিয় ফল।"
# Names that are not adjacent in any training pair.
NAMES = ("চালতা", "শালিক", "আম", "দোয়েল")
LATIN, BANGLA = " ".join(map(romanized, NAMES)), " ".join(NAMES)
OF_A_BIRD, OF_A_FRUIT = "এর আছে হলুদ ঠোঁট।", "স্বাদে টক।"
SHAPES = ("আড়াআড়ি", "খাড়া", "চৌকো")  # horizontal bar, vertical bar, square
SIDE, PATCH = 12, 4

_SMALL: dict[str, Any] = {"d_model": 64, "n_heads": 2, "d_ff": 128}
_QUICK: dict[str, Any] = {
    "batch_size": 32,
    "warmup_steps": 10,
    "precision": "float32",
    "evaluate_every": 10_000,
    "optimizer": "muon",
    "learning_rate": 1e-2,
}

Images = NDArray[np.uint8]


def learn_all(material: Path, runs: Path) -> None:
    """Train a run of each family in a folder with its name: bert, bert-classifier, seq2seq and vit."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)  # small products are not faster on two threads
    try:
        learn_words(material, runs)
        learn_names(material, runs)
        learn_shapes(material, runs)
    finally:
        torch.set_num_threads(threads)


def entries() -> Iterator[tuple[str, str, list[str]]]:
    """Return for each entry its class (bird or fruit), its name, and the sentences of its first paragraph."""
    for document in islice(stories(seed=5, kinds=["entry"]), 600):
        name, first, *_ = document.text.split("\n")
        sentences = [f"{each.strip()}।" for each in first.split("।") if each.strip()]
        kind = next((each for each in (BIRD, FRUIT) if sentences[0].endswith(f"{each}।")), None)
        if kind is not None:
            yield kind, name, sentences


def learn_words(material: Path, runs: Path) -> None:
    """Train a BERT, and a classifier that starts from it."""
    result = list(entries())
    firsts = sorted({sentences[0] for _, _, sentences in result})
    assert {BIRD_SENTENCE, FRUIT_SENTENCE} <= {*firsts}, "the stories say it so no more; name another sentence here"
    lines = material / "firsts.jsonl"
    lines.write_text("".join(json.dumps({"text": each}) + "\n" for each in firsts), encoding="utf-8")
    tokenizer = kotha.train_tokenizer(lines, kind="wordpiece", vocab_size=500)
    data = kotha.prepare(lines, tokenizer, material / "data", validation=0.1, leak_threshold=None)
    sizes = {**_SMALL, "n_layers": 1, "context_length": 24}
    how: Any = {**_QUICK, "steps": 260, "muon_learning_rate": 4e-2}
    kotha.train(data, out=runs / "bert", preset="pocket-bert", **sizes, **how)
    others = sorted({(each, kind) for kind, _, sentences in result for each in sentences[1:]})
    with (material / "about.csv").open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([("text", "label"), *others])
    how = {**_QUICK, "steps": 60, "learning_rate": 3e-3}
    kotha.finetune_classify(material / "about.csv", start=runs / "bert", out=runs / "bert-classifier", **how)


def learn_names(material: Path, runs: Path) -> None:
    """Train a Seq2Seq on sequences of four names of birds and fruits, from Latin to Bangla letters."""
    names = sorted({name for _, name, _ in entries() if " " not in name})
    chance = random.Random(0)
    rows: set[tuple[str, ...]] = set()
    names = sorted({*NAMES, *chance.sample(names, 6)})
    while len(rows) < 1000:
        row = tuple(chance.sample(names, 4))
        if row != NAMES:
            rows.add(row)
    pairs = [(" ".join(map(romanized, row)), " ".join(row)) for row in sorted(rows)]
    chance.shuffle(pairs)
    with (material / "names.tsv").open("w", encoding="utf-8", newline="") as file:
        csv.writer(file, delimiter="\t").writerows([("latin", "bangla"), *pairs])
    lines = material / "names.jsonl"
    lines.write_text("".join(json.dumps({"text": " ".join(pair)}) + "\n" for pair in pairs), encoding="utf-8")
    tokenizer = kotha.train_tokenizer(lines, kind="wordpiece", vocab_size=400)
    sizes = {**_SMALL, "n_layers": 1, "n_decoder_layers": 1, "context_length": 16}
    how: Any = {**_QUICK, "steps": 120, "muon_learning_rate": 2e-2, "label_smoothing": 0.0, "tokenizer": tokenizer}
    kotha.train(material / "names.tsv", out=runs / "seq2seq", preset="pocket-seq2seq", **sizes, **how)


def learn_shapes(material: Path, runs: Path) -> None:
    """Train a ViT."""
    images, labels = drawn_shapes(0, 400)
    np.savez(material / "shapes.npz", images=images, labels=np.array(SHAPES)[labels])
    sizes: dict[str, Any] = {"image_size": SIDE, "patch_size": PATCH, "n_layers": 2, "d_model": 32, "n_heads": 2}
    how: Any = {**_QUICK, "steps": 80, "dropout": 0.0, "muon_learning_rate": 2e-2}
    kotha.train(material / "shapes.npz", out=runs / "vit", preset="vit-digits", d_ff=64, **sizes, **how)


def drawn_shapes(seed: int, n_images: int) -> tuple[Images, NDArray[np.int64]]:
    """Draw shapes at random positions in a noisy square: (n, 12, 12) and their classes (n,)."""
    chance = np.random.default_rng(seed)
    labels = np.arange(n_images) % len(SHAPES)
    images = np.zeros((n_images, SIDE, SIDE))
    for image, label in zip(images, labels, strict=True):
        y, x = chance.integers(1, SIDE - 7, size=2)
        if label == 2:
            image[y : y + 6, x : x + 6] = 220
            image[y + 2 : y + 4, x + 2 : x + 4] = 0
        else:
            (image.T if label else image)[y + 2 : y + 4] = 220
    return np.clip(images + chance.normal(0, 15, images.shape), 0, 255).astype(np.uint8), labels
