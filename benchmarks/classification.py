"""Compare text classifiers: trained from scratch, fine-tuned from a pre-trained model, with LoRA, and TF-IDF.

    python benchmarks/classification.py ../shared/data/classify [BASE] [--tasks sentiment news] [--seeds 0 1 2]
        [--ways scratch pre-trained lora] [--epochs 8] [--limit 200] [--set learning_rate=1e-4] [--name classification]
        [--out FOLDER]

BASE is a trained model (a run or model folder), GPT or BERT; without it, only the baselines are measured, and written
to classification_baselines.json. Pre-train it first, on a GPU:

    kotha prepare ../shared/data/prose ../shared/data/news/train.jsonl.zst --tokenizer TOK --out WORK/data
    kotha train WORK/data --preset bangla-58m --minutes 60 --out WORK/base

For each task and seed, ``kotha finetune classify`` trains the same model from random weights, from BASE, and from BASE
with LoRA; logistic regression on TF-IDF (words and characters) is trained on the same examples in the same run. The
sentiment data has its own validation and test sets. The news categories are split here, stratified and seeded; training
texts that contain most of a held-out text are removed. ``--limit`` uses only this many examples from each set, to test
the script. Scores are measured on the held-out part; their means over seeds and the largest deviations are printed
last.
"""

import argparse
import statistics
import sys
import tempfile
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent.parent / "src"))
sys.path.insert(0, str(Path(__file__).parent))

import record
import torch

from kotha.api.examples import measure_texts
from kotha.api.run import origin_at
from kotha.artifacts.model_folder import Bundle
from kotha.artifacts.run_folder import RunFolder
from kotha.evaluation.classification import baselines
from kotha.finetune.classify import ClassifyTexts
from kotha.finetune.examples import ExamplesRequest, learning_rate, start
from kotha.finetune.splits import divide
from kotha.model.family import build
from kotha.text.corpus.labelled import LabelledTexts, read_labelled
from kotha.training.initial_weights import Origin

LORA = 8
_FROM_CHANCE = 3  # multiple of the learning rate for a model with random weights
WAYS = ["scratch", "pre-trained", "lora"]
TASKS = {
    "sentiment": ("sentiment_mixed_train", "sentiment_mixed_dev", "sentiment_mixed_test"),
    "emotion": ("emotion_train", "emotion_dev", "emotion_test"),
    "news": ("news_category",),
}


def read(folder: Path, task: str, limit: int | None) -> list[LabelledTexts]:
    """Read the files of a task; from each, take the first examples in a fixed random order."""
    found = [read_labelled(next(folder.glob(f"{name}.jsonl*")), "text", "label") for name in TASKS[task]]
    if limit is None:
        return found
    order = torch.Generator().manual_seed(0)
    return [each.chosen(torch.randperm(len(each), generator=order)[:limit].tolist()) for each in found]


def from_chance(base: Origin, seed: int) -> Origin:
    """Return a model of the same sizes with random weights."""
    torch.manual_seed(1000 + seed)
    return Origin("chance", Bundle(build(base.bundle.config), base.bundle.tokenizer))


def figures(summary: dict[str, Any]) -> dict[str, Any]:
    """Return the scores of a run on the held-out part, and on the validation part for choosing settings."""
    chosen = {"validation": summary["validation"], "best_step": summary["best_step"]}
    return {name: round(summary[name], 4) for name in ("accuracy", "macro_f1")} | {"steps": summary["steps"]} | chosen


def compare(folder: Path, base: Origin, task: str, seed: int, given: argparse.Namespace) -> dict[str, Any]:
    """Compare all methods on one task with one seed."""
    parts = read(folder, task, given.limit)
    held_out = {"validation": parts[1], "test": parts[2]} if len(parts) == 3 else {}
    chance = from_chance(base, seed) if "scratch" in given.ways else base
    ways: dict[str, tuple[Origin, dict[str, Any]]] = {
        "scratch": (chance, {"learning_rate": _FROM_CHANCE * learning_rate(base.bundle.config.d_model)}),
        "pre-trained": (base, {}),
        "lora": (base, {"lora": LORA}),
    }
    found: dict[str, Any] = {"seed": seed}
    for way in given.ways:
        origin, settings = ways[way]
        changes = {**settings, **record.from_words(given.set), "seed": seed}
        about: dict[str, Any] = {**held_out, "epochs": given.epochs, "changes": changes}
        request = ExamplesRequest(data=parts[0], origin=origin, **about)
        with tempfile.TemporaryDirectory() as place:
            summary = start(ClassifyTexts(measure_texts), request, RunFolder(Path(place) / "run"))
        found[way] = figures(summary)
        found |= {
            name: {key: round(value, 4) for key, value in each.items()} for name, each in summary["baselines"].items()
        }
        print(f"{task}, seed {seed}, {way}: {found[way]}", flush=True)
    return found


def baselines_alone(folder: Path, task: str, seed: int, limit: int | None) -> dict[str, Any]:
    """Measure the baselines, which need no model, on the same parts as in a run."""
    parts = read(folder, task, limit)
    splits = divide(*parts, seed=seed)
    found = baselines(splits.labels, splits.train, splits.test)
    counted = f"{len(splits.train):,} training examples, {len(splits.test):,} held out"
    print(f"{task}, seed {seed}: {counted}: {found}", flush=True)
    return {name: {key: round(value, 4) for key, value in each.items()} for name, each in found.items()}


def means(runs: list[dict[str, Any]]) -> dict[str, dict[str, float]]:
    """Return the mean macro-F1 and accuracy of each method, and the largest deviation of a seed from the mean."""
    found = {}
    for way in [name for name in runs[0] if name != "seed"]:
        for figure in ("macro_f1", "accuracy"):
            values = [run[way][figure] for run in runs]
            mean = statistics.mean(values)
            found.setdefault(way, {})[figure] = round(mean, 4)
            found[way][f"{figure}_spread"] = round(max(abs(value - mean) for value in values), 4)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("base", nargs="?")
    parser.add_argument("--tasks", nargs="+", choices=list(TASKS), default=["sentiment", "news"])
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--ways", nargs="+", choices=WAYS, default=WAYS)
    parser.add_argument("--set", nargs="+", default=[])
    parser.add_argument("--name", default="classification")
    parser.add_argument("--epochs", type=float, default=8.0)
    parser.add_argument("--limit", type=int)
    parser.add_argument("--out", type=Path, default=record.RESULTS)
    given = parser.parse_args()
    base = None if given.base is None else origin_at(given.base)
    result: dict[str, Any] = {"limit": given.limit, "tasks": {}}
    if base is not None:
        count = sum(parameter.numel() for parameter in base.bundle.model.parameters())
        result |= {"base": base.name, "parameters": count}
    for task in given.tasks:
        seeds = given.seeds if base is not None or len(TASKS[task]) == 1 else given.seeds[:1]  # a split has one answer
        runs = [
            baselines_alone(given.data, task, seed, given.limit)
            if base is None
            else compare(given.data, base, task, seed, given)
            for seed in seeds
        ]
        result["tasks"][task] = {"means": means(runs), "seeds": runs}
        for way, each in result["tasks"][task]["means"].items():
            print(f"{task:<12} {way:<32} macro-F1 {each['macro_f1']:.4f} (±{each['macro_f1_spread']:.4f})")
    name = given.name if base is not None else "classification_baselines"
    record.save(name, result, ["torch"] if base is not None else ["torch", "scikit-learn"], given.out)


if __name__ == "__main__":
    main()
