"""Measure how many questions about unseen stories a model answers before and after instruction tuning.

    python benchmarks/instruct.py [--from box] [--stories 200] [--test-stories 50] [--epochs 3] [--seeds 0] [--lora 8]

The model is trained on questions about some of the built-in stories (``kotha corpus questions``) and evaluated on
questions about others. The results contain the share of correct answers before and after, overall and for each kind of
question, the most common answer as a baseline, and the accuracy on misspelled or romanized questions. On two cores, 200
stories take about a quarter of an hour; 5,000 stories, 4 epochs and 3 seeds require a GPU.
"""

import argparse
import json
import sys
import tempfile
import time
from collections import defaultdict
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent.parent / "src"))
sys.path.insert(0, str(Path(__file__).parent))

import record

import kotha

# The test stories have their own seed, so that none of them is a training story.
_UNSEEN = 1_000_003
_PERTURBED = ("spelling", "typos", "latin")


def by_kind(file: Path, replies: list[dict[str, Any]]) -> dict[str, dict[str, float]]:
    """Count the correct answers to each kind of question."""
    kinds = [json.loads(line)["kind"] for line in file.read_text(encoding="utf-8").splitlines()]
    found: dict[str, list[bool]] = defaultdict(list)
    for kind, reply in zip(kinds, replies, strict=True):
        found[kind].append(reply["correct"])
    return {kind: {"questions": len(right), "right": sum(right) / len(right)} for kind, right in sorted(found.items())}


def one_seed(start: str, seed: int, folder: Path, asked: argparse.Namespace) -> dict[str, Any]:
    learned, unseen = folder / "learned.jsonl", folder / "unseen.jsonl"
    _, n_learned = kotha.write_questions(learned, asked.stories, seed=seed, per_story=asked.per_story)
    kotha.write_questions(unseen, asked.test_stories, seed=_UNSEEN, per_story=asked.per_story)
    began = time.perf_counter()
    settings = {} if asked.lora is None else {"lora": asked.lora}
    run = kotha.finetune_instruct(
        learned,
        start=start,
        out=folder / "run",
        test=unseen,
        epochs=asked.epochs,
        seed=seed,
        on_remark=lambda text: print(text, file=sys.stderr, flush=True),
        **settings,
    )
    seconds = time.perf_counter() - began
    summary = run.summary
    figures = ("exact_match", "low", "high", "word_f1", "examples")
    perturbed = run.model.evaluate(unseen, perturb=_PERTURBED).falls if asked.perturb else ()
    return {
        "seed": seed,
        "learned_questions": n_learned,
        "before": {name: summary["before"][name] for name in figures},
        "after": {name: summary[name] for name in figures},
        "most_frequent_answer": summary["baselines"]["most frequent answer"],
        "by_kind": by_kind(unseen, summary["replies"]),
        "perturbed": {fall.kind: fall.after for fall in perturbed},
        "validation": summary["validation"],
        "steps": summary["steps"],
        "seconds": seconds,
        "first_replies": summary["replies"][:10],
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--from", dest="start", default="box")
    parser.add_argument("--stories", type=int, default=200)
    parser.add_argument("--test-stories", type=int, default=50)
    parser.add_argument("--per-story", type=int, default=3)
    parser.add_argument("--epochs", type=float, default=3.0)
    parser.add_argument("--lora", type=int, default=None)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0])
    parser.add_argument("--perturb", action="store_true")
    parser.add_argument("--out", type=Path, default=record.RESULTS)
    asked = parser.parse_args()
    found = []
    for seed in asked.seeds:
        with tempfile.TemporaryDirectory() as folder:
            found.append(one_seed(asked.start, seed, Path(folder), asked))
        last = found[-1]
        print(
            f"seed {seed}: {last['before']['exact_match']:.3f} before, {last['after']['exact_match']:.3f} after",
            flush=True,
        )
    record.save("instruct", {"start": asked.start, "runs": found}, ["torch"], asked.out)


if __name__ == "__main__":
    main()
