"""The headline run: the best model for the news data in ten minutes on one H200, compared with the course's model.

    python benchmarks/headline.py all ../shared/data WORK [--seeds 0 1 2]    everything, one after the other

    python benchmarks/headline.py data ../shared/data WORK    WORK/news-8192, and WORK/news with the course's vocabulary
    python benchmarks/headline.py trials WORK [--seeds 0]     WORK/headline.json, for a machine with a GPU
    python benchmarks/learning.py WORK/headline.json WORK/trained --at-once 2
    python benchmarks/headline.py figure RESULTS.json …       benchmarks/results/headline.json, docs/images/headline.svg

Three teachers of two sizes are trained, two of them on data in which half of the sequences are reversed, and then one
student of all three. The reported time is the total of the four training runs, without evaluations.
"""

import argparse
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT / "src"))

VOCABULARIES = {"news-8192": 8192, "news": 32_100}
WIDE = {"n_layers": 12, "d_model": 768, "n_heads": 12, "d_ff": 2048}


def prepare_news(news: Path, work: Path) -> None:
    """Prepare the training and validation articles with our vocabulary, and with one of the course's size."""
    import kotha

    for name, size in VOCABULARIES.items():
        tokenizer = kotha.train_tokenizer([news / "train.jsonl.zst"], vocab_size=size)
        kotha.prepare([news / "train.jsonl.zst"], tokenizer, work / name, validation=news / "validation.jsonl.zst")


def trials(work: Path, seeds: list[int]) -> list[dict[str, Any]]:
    """Return the trials for each seed: the course's model, three teachers, and their student."""
    made = []
    for seed in seeds:
        news, names = str(work / "news-8192"), [f"{name}-{seed}" for name in ("wide", "backwards", "plain")]
        others = 10 * seed  # all models have different initial weights, within a seed and between seeds
        made += [
            {"name": names[0], "data": news, "model": WIDE}
            | {"set": _set(4000, 0.005, others, backwards=0.5, dropout=0.35, weight_decay=0.8)},
            {"name": names[1], "data": news, "set": _set(4800, 0.006, others + 1, backwards=0.5)},
            {"name": names[2], "data": news, "set": _set(2400, 0.006, others + 2)},
            {"name": f"course-{seed}", "data": str(work / "news"), "preset": "bangla-58m", "recipe": "course"}
            | {"set": {"seed": seed, "patience": 5, "checkpoint_every": 20_000}},
            {"name": f"student-{seed}", "data": news, "model": WIDE, "teachers": names}
            | {"set": _set(5000, 0.005, others + 3, dropout=0.2)},
        ]
    return made


def _set(steps: int, muon_learning_rate: float, seed: int, **more: float) -> dict[str, Any]:
    """Return the settings of one training run; the learning rate decays over five sixths of it."""
    pace = {"steps": steps, "evaluate_every": steps // 8, "decay_steps": 5 * steps // 6, "checkpoint_every": 20_000}
    return {**pace, "muon_learning_rate": muon_learning_rate, "seed": seed, **more}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("stage", choices=["all", "data", "trials", "figure"])
    parser.add_argument("paths", nargs="+", type=Path)
    parser.add_argument("--seeds", nargs="+", type=int, default=[0])
    options = parser.parse_args()
    work = options.paths[-1]
    if options.stage in ("all", "data"):
        prepare_news(options.paths[0] / "news", work)
    if options.stage in ("all", "trials"):
        work.mkdir(parents=True, exist_ok=True)
        (work / "headline.json").write_text(json.dumps(trials(work, options.seeds), indent=1))
    if options.stage == "all":
        words = [work / "headline.json", work / "trained", "--at-once", "2"]
        subprocess.run([sys.executable, ROOT / "benchmarks" / "learning.py", *words], check=True)
    if options.stage in ("all", "figure"):
        from headline_figure import show

        show([work / "trained" / "results.json"] if options.stage == "all" else options.paths)


if __name__ == "__main__":
    main()
