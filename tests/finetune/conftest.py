"""Small initial models, and a table of labelled texts that a model learns in a few steps."""

import csv
import json
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import kotha
from kotha.artifacts import model_folder as bundle
from kotha.model.family import build
from kotha.model.presets import preset
from kotha.text.tokenizer.tokenizer import Tokenizer
from kotha.text.tokenizer.trainers import train as train_tokenizer

torch.set_num_threads(1)

WORDS = {
    "ভালো": ["চমৎকার", "আনন্দ", "সুন্দর", "হাসি", "উৎসব", "মিষ্টি"],
    "মন্দ": ["বিরক্তি", "কান্না", "খারাপ", "রাগ", "ক্ষতি", "তেতো"],
    "মাঝারি": ["সাধারণ", "মোটামুটি", "চলনসই", "মাঝামাঝি", "স্বাভাবিক", "নিয়মিত"],
}
COMMON = [
    *("আজ", "কাল", "দিন", "রাত", "মানুষ", "পথ", "নদী", "গ্রাম", "শহর"),
    *("বাজার", "গাছ", "পাখি", "আকাশ", "মেঘ", "বৃষ্টি", "ঘর", "মাঠ", "ফুল"),
]
SIZES = {"n_layers": 1, "d_model": 16, "n_heads": 2, "d_ff": 32, "context_length": 24}
# Settings with which a test takes seconds.
QUICK = {"steps": 6, "batch_size": 4, "evaluate_every": 3, "learning_rate": 1e-2}


def moods(n_examples: int, seed: int = 0) -> list[tuple[str, str]]:
    chance = np.random.default_rng(seed)
    rows = []
    for place in range(n_examples):
        label = [*WORDS][place % len(WORDS)]
        words = [*chance.choice(COMMON, 5), *chance.choice(WORDS[label], 2)]
        rows.append((" ".join(chance.permutation(words)), label))
    return rows


def write_table(file: Path, rows: list[tuple[str, str]], header: tuple[str, ...] = ("id", "said", "mood")) -> Path:
    with file.open("w", encoding="utf-8", newline="") as stream:
        writer = csv.writer(stream)
        writer.writerow(header)
        writer.writerows([str(number), *row] for number, row in enumerate(rows))
    return file


def stopped_and_resumed(train: Callable[..., kotha.Run], resume: Callable[..., kotha.Run], out: Path) -> kotha.Run:
    """Stop a run in its fourth step and resume it; compare the result with that of an uninterrupted run."""

    def stop(event: dict[str, Any]) -> None:
        if event["step"] == 4 and "loss_nats" in event:
            signal.raise_signal(signal.SIGTERM)

    whole = train(out=out / "whole")
    train(out=out / "stopped", on_event=stop)
    assert json.loads((out / "stopped" / "summary.json").read_text())["stopped"]
    again = resume(out=out / "stopped", resume=True)
    ours, others = (bundle.load(each.path).model.state_dict() for each in (whole, again))
    assert all(torch.equal(ours[name], others[name]) for name in ours)
    assert whole.summary["validation"] == again.summary["validation"]
    assert whole.summary.get("confusion") == again.summary.get("confusion")
    return again


@pytest.fixture(scope="session")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_table(tmp_path_factory.mktemp("moods") / "moods.csv", moods(60))


def tokenizer_of(kind: str) -> Tokenizer:
    return train_tokenizer([text for text, _ in moods(60)], kind, 500 if kind == "unigram" else 300)


@pytest.fixture(scope="session")
def bases(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Model folders by family, with random weights."""
    folder = tmp_path_factory.mktemp("bases")
    found = {}
    for name, base, kind in (("gpt", "pocket", "unigram"), ("bert", "pocket-bert", "wordpiece")):
        torch.manual_seed(3)
        tokenizer = tokenizer_of(kind)
        model = build(preset(base).replace(vocab_size=tokenizer.vocab_size, **SIZES))
        found[name] = bundle.save(folder / name, model, tokenizer)
    return found
