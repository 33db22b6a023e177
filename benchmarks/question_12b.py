"""Question 12b of the course, measured: what narrows training 2.6 against validation 4.08?

    python benchmarks/question_12b.py trials DATA > trials.json
    python benchmarks/learning.py trials.json OUT --at-once 4
    python benchmarks/question_12b.py table OUT/results.json

DATA holds prepared folders: ``news`` (the course's vocabulary of 32,100), ``news-8192``, ``part-909``, ``part-1817``
and ``part-3635`` (the first eighth, quarter and half of the articles), ``prose`` (with other prose beside the news) and
``segments`` (words of the news cut by chance). All are validated on the same articles. Each technique is tried alone on
the course's model with the course's recipe, and all that help together, with three seeds. A model is scored at its
best evaluation (early stopping); what it would be without that is the end of its curve.
"""

import argparse
import json
import statistics
import sys
from pathlib import Path
from typing import Any

STEPS = 4000  # the best of the course's own model is at 3,000
SEEDS = (0, 1, 2)
Trial = dict[str, Any]


def conditions() -> dict[str, Trial]:
    """What is changed, by what the table calls it; the first is the course as it stands."""

    def dropped(share: float) -> Trial:
        return {"model": {"dropout": share, "attention_dropout": share}}

    return {
        "the course": {},
        "dropout 0": dropped(0.0),
        "dropout 0.1": dropped(0.1),
        "dropout 0.3": dropped(0.3),
        "dropout 0.5": dropped(0.5),
        "weight decay 0.1": {"set": {"weight_decay": 0.1}},
        "weight decay 1": {"set": {"weight_decay": 1.0}},
        "label smoothing 0.1": {"set": {"label_smoothing": 0.1}},
        "vocabulary 8,192": {"data": "news-8192", "model": {"vocab_size": 8192}},
        "4 layers": {"model": {"n_layers": 4}},
        "2 layers": {"model": {"n_layers": 2}},
        "EMA 0.999": {"set": {"ema_decay": 0.999}},
        "context 512": {"model": {"context_length": 512}, "set": {"batch_size": 16}},
        "sampled segmentations": {"data": "segments"},
        "1/8 of the text": {"data": "part-909"},
        "1/4 of the text": {"data": "part-1817"},
        "1/2 of the text": {"data": "part-3635"},
        "with other prose": {"data": "prose"},
        "together": {
            "data": "news-8192",
            "model": {"vocab_size": 8192, "context_length": 512, "dropout": 0.3, "attention_dropout": 0.3},
            "set": {"batch_size": 16, "weight_decay": 0.1, "ema_decay": 0.999},
        },
    }


def trials(folder: Path) -> list[Trial]:
    """All of them, seed by seed, so that an early end leaves whole rounds."""
    made = []
    for seed in SEEDS:
        for name, change in conditions().items():
            settings = {"steps": STEPS, "evaluate_every": 500, "patience": 2, "checkpoint_every": 100_000}
            made.append(
                {
                    "name": f"{name.replace('/', ' of ')} seed {seed}",
                    "condition": name,
                    "data": str(folder / change.get("data", "news")),
                    "preset": "bangla-58m",
                    "recipe": "course",
                    "model": change.get("model", {}),
                    "set": {**settings, **change.get("set", {}), "seed": seed},
                }
            )
    return made


def table(found: list[Trial]) -> str:
    """Gain over the course and its spread, seed by seed: the difference of pairs that share a seed."""
    scores: dict[str, dict[int, float]] = {}
    for each in found:
        scores.setdefault(each["condition"], {})[each["set"]["seed"]] = each["score"]["bits_per_byte"]
    course = scores["the course"]
    lines = ["| | bits a byte | gain | spread of the gain | seeds |", "|---|---|---|---|---|"]
    for name in conditions():
        of_seeds = scores.get(name, {})
        gains = [course[seed] - value for seed, value in of_seeds.items() if seed in course]
        if gains:
            spread = f"{statistics.stdev(gains):.4f}" if len(gains) > 1 else ""
            mean, gain = statistics.mean(of_seeds.values()), statistics.mean(gains)
            lines.append(f"| {name} | {mean:.4f} | {gain:+.4f} | {spread} | {len(gains)} |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("what", choices=["trials", "table"])
    parser.add_argument("path", type=Path)
    options = parser.parse_args()
    if options.what == "trials":
        json.dump(trials(options.path), sys.stdout, indent=1)
    else:
        print(table(json.loads(options.path.read_text())))


if __name__ == "__main__":
    main()
