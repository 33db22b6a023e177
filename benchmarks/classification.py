"""Is pre-training worth it for telling texts apart? Scratch, pre-trained, LoRA and TF-IDF, side by side.

    python benchmarks/classification.py ../shared/data/classify [BASE] [--tasks sentiment news] [--seeds 0 1 2]
        [--ways scratch pre-trained lora] [--epochs 8] [--limit 200] [--set learning_rate=1e-4] [--name classification]
        [--out FOLDER]

BASE is a trained model (a run or model folder), GPT or BERT; without one, the baselines alone are measured, into
classification_baselines.json. Pre-train it first, on a GPU, for as long as it takes:

    kotha prepare ../shared/data/prose ../shared/data/news/train.jsonl.zst --tokenizer TOK --out WORK/data
    kotha train WORK/data --preset bangla-58m --minutes 60 --out WORK/base

For each task and seed the same model is fine-tuned from chance, from BASE, and from BASE by LoRA, by ``kotha finetune
classify`` as it is; TF-IDF (words and letters) with logistic regression learns from the same examples in the same run.
Sentiment has its own validation and test sets. News categories are divided here: stratified, by the seed, and without
the texts that hold most of a held-out one. ``--limit`` takes that many examples of each set, to try the script.
Figures are of the held-out part; the mean over seeds and the largest distance from it come last.
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
_FROM_CHANCE = 3  # times the rate for a model that has nothing to lose
WAYS = ["scratch", "pre-trained", "lora"]
TASKS = {
    "sentiment": ("sentiment_mixed_train", "sentiment_mixed_dev", "sentiment_mixed_test"),
    "emotion": ("emotion_train", "emotion_dev", "emotion_test"),
    "news": ("news_category",),
}


def read(folder: Path, task: str, limit: int | None) -> list[LabelledTexts]:
    """The files of a task; of each the first so many of a fixed shuffle."""
    found = [read_labelled(next(folder.glob(f"{name}.jsonl*")), "text", "label") for name in TASKS[task]]
    if limit is None:
        return found
    order = torch.Generator().manual_seed(0)
    return [each.chosen(torch.randperm(len(each), generator=order)[:limit].tolist()) for each in found]


def from_chance(base: Origin, seed: int) -> Origin:
    """A model of the same sizes that has learned nothing."""
    torch.manual_seed(1000 + seed)
    return Origin("chance", Bundle(build(base.bundle.config), base.bundle.tokenizer))


def figures(summary: dict[str, Any]) -> dict[str, Any]:
    """What is kept of a run: the held-out part's scores, and the validation part's to choose settings by."""
    chosen = {"validation": summary["validation"], "best_step": summary["best_step"]}
    return {name: round(summary[name], 4) for name in ("accuracy", "macro_f1")} | {"steps": summary["steps"]} | chosen


def compare(folder: Path, base: Origin, task: str, seed: int, given: argparse.Namespace) -> dict[str, Any]:
    """One task with one seed: each way's figures."""
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
    """What needs no model, on the parts that a run would have."""
    parts = read(folder, task, limit)
    splits = divide(*parts, seed=seed)
    found = baselines(splits.labels, splits.train, splits.test)
    print(
        f"{task}, seed {seed}: {len(splits.train):,} to learn from, {len(splits.test):,} held out: {found}", flush=True
    )
    return {name: {key: round(value, 4) for key, value in each.items()} for name, each in found.items()}


def means(runs: list[dict[str, Any]]) -> dict[str, dict[str, float]]:
    """Mean macro-F1 and accuracy of each way, and how far a seed is from it at most."""
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
