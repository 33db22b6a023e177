"""Question 12b of the course, measured: what narrows training 2.6 against validation 4.08?

    python benchmarks/question_12b.py trials DATA > trials.json
    python benchmarks/learning.py trials.json OUT --at-once 4
    python benchmarks/question_12b.py table OUT/results.json …       benchmarks/results/question_12b.json, and the table

DATA holds prepared folders: ``news`` (the course's vocabulary of 32,100), ``news-8192``, ``part-909``, ``part-1817``
and ``part-3635`` (the first eighth, quarter and half of the articles), ``prose`` (with other prose beside the news) and
``segments`` (words of the news cut by chance). All are validated on the same articles. Each technique is tried alone on
the course's model with the course's recipe, its cosine drawn over 4,000 steps, and all that help together, with three
seeds. A model is scored at its best evaluation. What stopping early is worth shows in the course as it was run: its
cosine over 20,000 steps, at its best and 5,500 steps after that.
"""

import argparse
import json
import statistics
import sys
from pathlib import Path
from typing import Any

import record

STEPS = 4000  # the best of the course's own model is at 3,000
MORE_STEPS, MOST_STEPS = 6000, 8000  # where there is more to learn, or less can be learned in a step
COURSE, AS_IT_RAN = "the course, 4,000 steps", "as the course ran, stopped early"
LATE = "as the course ran, 5,500 steps later"
SEEDS = (0, 1, 2)
Trial = dict[str, Any]


def conditions() -> dict[str, Trial]:
    """What is changed, by what the table calls it; the second is what the others are measured against."""

    def dropped(share: float) -> Trial:
        return {"model": {"dropout": share, "attention_dropout": share}}

    # What helped alone, or would have with more steps (its best evaluation was its last).
    kept = {"steps": MOST_STEPS, "weight_decay": 0.1, "label_smoothing": 0.1, "ema_decay": 0.999}
    together = {**dropped(0.3), "set": kept}
    return {
        AS_IT_RAN: {"set": {"steps": 20_000, "patience": 11}},
        COURSE: {},
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
        "with other prose": {"data": "prose", "set": {"steps": MORE_STEPS}},
        "together": {"data": "segments", **together},
        "together, with other prose": {"data": "prose", **together},
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


def rows(found: list[Trial]) -> list[dict[str, Any]]:
    """Gain over the course and its spread, seed by seed: the difference of pairs that share a seed; and the gap."""
    trials_of: dict[str, dict[int, Trial]] = {}
    for each in found:
        trials_of.setdefault(each["condition"], {})[each["set"]["seed"]] = each
    scores = {name: {seed: bits(each) for seed, each in some.items()} for name, some in trials_of.items()}
    course, as_it_ran = scores[COURSE], trials_of[AS_IT_RAN]
    late = {seed: bits(each) + lost(each) for seed, each in as_it_ran.items()}
    made = [_row(LATE, late, course, [losses(each, last=True) for each in as_it_ran.values()])]
    for name in conditions():
        if name in scores:
            made.append(_row(name, scores[name], course, [losses(each) for each in trials_of[name].values()]))
    return made


def _row(name: str, scores: dict[int, float], course: dict[int, float], sides: list[tuple[float, float]]) -> Trial:
    gains = [course[seed] - value for seed, value in scores.items() if seed in course]
    learned, held_out = (round(statistics.mean(side), 2) for side in zip(*sides, strict=True))
    return {
        "condition": name,
        "bits_per_byte": round(statistics.mean(scores.values()), 4),
        "gain": round(statistics.mean(gains), 4),
        "spread": round(statistics.stdev(gains), 4) if len(gains) > 1 else None,
        "training_nats": learned,
        "validation_nats": held_out,
        "seeds": len(gains),
    }


def table(made: list[Trial]) -> str:
    """The rows as Markdown."""
    lines = ["| | bits a byte | gain | spread of the gain | training | validation | seeds |", "|" + "---|" * 7]
    for row in made:
        spread = "" if row["spread"] is None else f"{row['spread']:.4f}"
        sides = f"{row['training_nats']:.2f} | {row['validation_nats']:.2f}"
        figures = f"{row['bits_per_byte']:.4f} | {row['gain']:+.4f} | {spread} | {sides} | {row['seeds']}"
        lines.append(f"| {row['condition']} | {figures} |")
    return "\n".join(lines)


def bits(trial: Trial) -> float:
    return float(trial["score"]["bits_per_byte"])


def lost(trial: Trial) -> float:
    """Bits a byte that a training lost after its best evaluation."""
    curve = [bits for *_, bits in trial["curve"]]
    return curve[-1] - min(curve)


def losses(trial: Trial, last: bool = False) -> tuple[float, float]:
    """Nats a token, of what is learned from and of what is not: at the last evaluation, or at the best."""
    step, _, held_out, _ = trial["curve"][-1] if last else min(trial["curve"], key=lambda each: each[-1])
    near = [nats for at, nats in trial["learned"] if step - 100 < at <= step]
    return statistics.mean(near), held_out


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("what", choices=["trials", "table"])
    parser.add_argument("paths", nargs="+", type=Path)
    options = parser.parse_args()
    if options.what == "trials":
        json.dump(trials(options.paths[0]), sys.stdout, indent=1)
        return
    found = [each for path in options.paths for each in json.loads(path.read_text())]
    made = rows(found)
    kept = ("condition", "machine", "set", "model", "score", "curve", "summary")
    trimmed = [{name: each[name] for name in kept} for each in found]
    record.save("question_12b", {"rows": made, "trials": trimmed}, [])
    print(table(made))


if __name__ == "__main__":
    main()
