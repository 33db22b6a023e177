"""Create the format fixtures for a release: folders and files that it writes, with the expected output.

    python -m tests.format_fixtures.curate tests/format_fixtures/0.1.0

This is done once for each release and never repeated, because the fixtures must be written by that release. Everything
is created by commands, with relative paths, and is as small as possible but complete.
"""

import contextlib
import json
import os
import shutil
import sys
from pathlib import Path
from typing import Any

import numpy as np
import torch
from tests.format_fixtures.guide import ADAPTED, MODELS, SENTENCE, TOKENIZERS, answers
from tests.prepared import write_pairs

import kotha
from kotha.cli.main import main

_SIZES = ["n_layers=1", "d_model=16", "n_heads=2", "d_ff=32", "context_length=32"]
_PACE = ["--steps", "6", "--set", "batch_size=2", "precision=float32", "warmup_steps=2", "evaluate_every=3"]
_KEEP = ["checkpoint_every=3", "evaluate_tokens=256"]


def run(*words: str) -> None:
    assert main(list(words)) == 0, words


def make() -> None:
    """Make all fixtures in the current folder."""
    run("corpus", "stories", "--documents", "30", "--out", "stories.jsonl")
    for kind in TOKENIZERS:
        run("tokenizer", "train", "stories.jsonl", "--kind", kind, "--vocab-size", "400", "--out", f"tokenizers/{kind}")
    for kind in ("unigram", "wordpiece"):
        run("prepare", "stories.jsonl", "--tokenizer", f"tokenizers/{kind}", "--out", f"data/{kind}")
    train = ["--recipe", "modern", *_PACE, *_KEEP]
    run("train", "data/unigram", "--preset", "pocket", "--out", "runs/gpt", *train, *_SIZES)
    run("train", "data/wordpiece", "--preset", "pocket-bert", "--out", "runs/bert", *_PACE, *_KEEP, *_SIZES)
    write_pairs(Path("pairs.tsv"), 40)
    sizes = [*_SIZES, "n_decoder_layers=1", "vocab_size=400"]
    run("train", "pairs.tsv", "--preset", "pocket-seq2seq", "--out", "runs/seq2seq", *_PACE, *_KEEP[:1], *sizes)
    images = np.random.default_rng(0).integers(0, 256, (40, 28, 28), dtype=np.uint8)
    np.save("digit.npy", images[0])
    np.savez("digits.npz", images=images, labels=np.arange(40) % 4)
    run("train", "digits.npz", "--preset", "vit-digits", "--out", "runs/vit", *_PACE, *_KEEP[:1], *_SIZES[:-1])
    Path("classes.csv").write_text(
        "text,label\n" + "".join(f"নদী {n} আর মাছ,জল\nপাহাড় {n} আর পাথর,মাটি\n" for n in range(20)), encoding="utf-8"
    )
    adapt = ["--set", "batch_size=2", "precision=float32", "warmup_steps=2", "steps=6"]
    run("finetune", "classify", "classes.csv", "--from", "runs/bert", "--out", "runs/classifier", *adapt)
    run("finetune", "classify", "classes.csv", "--from", "runs/gpt", "--lora", "2", "--out", f"runs/{ADAPTED}", *adapt)
    run("index", "stories.jsonl", "--out", "index.db")
    for page in Path("runs").rglob("*.html"):  # never read back
        page.unlink()
    for folder in Path("runs").glob("*/checkpoints"):  # one checkpoint is enough to resume
        for each in folder.iterdir():
            if folder.parent.name != "gpt" or each.name != "step-00000006":
                shutil.rmtree(each)


def main_() -> None:
    room = Path(sys.argv[1])
    room.mkdir(parents=True)
    torch.set_num_threads(1)
    os.chdir(room)
    with contextlib.redirect_stdout(sys.stderr):
        make()
    result: dict[str, Any] = {"release": kotha.__version__, "sentence": SENTENCE, **answers(Path())}
    Path("expected.json").write_text(json.dumps(result, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")
    size = sum(each.stat().st_size for each in Path().rglob("*") if each.is_file())
    print(f"{len(MODELS)} models and {size:,} bytes in {room}")


if __name__ == "__main__":
    main_()
