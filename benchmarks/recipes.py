"""Do the recipes keep their order on other texts? ``course``, ``classic`` and ``modern`` on three small corpora.

    python benchmarks/recipes.py ../shared/data WORK [--steps 300] [--seeds 0] [--times 1 4 16] [--out FOLDER]

Tagore's fiction, the built-in stories, and the English side of the sentence pairs, about 1.5 MB each, with a tokenizer
of their own; one model for all (``pocket``), the same steps of 16 x 128 tokens. A recipe is written for models of 50
million parameters, and small ones bear larger rates: each is tried with its own rates and with multiples of them, and
the best counts for it. Bits a byte by ``kotha evaluate``; a warm-up is at most a tenth of the steps.
"""

import argparse
import csv
import io
import json
import sys
import tempfile
from itertools import islice
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent.parent / "src"))
sys.path.insert(0, str(Path(__file__).parent))

import record
import zstandard

import kotha
from kotha.artifacts import model_folder as bundle
from kotha.artifacts.run_folder import RunFolder
from kotha.evaluation.perplexity import evaluate_text
from kotha.model.presets import preset
from kotha.text.corpus.documents import read_documents
from kotha.text.held_out import from_dataset
from kotha.text.shards import Dataset
from kotha.text.stories.corpus import stories
from kotha.training.config import RECIPES, recipe
from kotha.training.start import start_run

BYTES = 1_500_000
RATES = ("learning_rate", "muon_learning_rate")


def texts(data: Path, name: str) -> list[str]:
    """So many bytes of a corpus, in its order."""
    if name == "stories":
        every = [each.text for each in islice(stories(0), 3000)]
    elif name == "Tagore":
        every = [each.text for each in read_documents([str(next((data / "prose").glob("tagore-000*")))])]
        every = [text[start : start + 4000] for text in every for start in range(0, len(text), 4000)]
    else:
        with zstandard.open(data / "parallel/en-bn.tsv.zst", "rb") as file:
            rows = csv.DictReader(io.TextIOWrapper(file, encoding="utf-8"), delimiter="\t", quoting=csv.QUOTE_NONE)
            sentences = [row["en"] for row in rows]
        every = [" ".join(sentences[start : start + 20]) for start in range(0, len(sentences), 20)]
    found, size = [], 0
    for text in every:
        found.append(text)
        size += len(text.encode())
        if size > BYTES:
            break
    return found


def prepared(data: Path, name: str, work: Path) -> Dataset:
    folder = work / name
    if not folder.exists():
        file = work / f"{name}.jsonl"
        lines = (json.dumps({"text": text}, ensure_ascii=False) for text in texts(data, name))
        file.write_text("\n".join(lines) + "\n", encoding="utf-8")
        tokenizer = kotha.train_tokenizer([file], kind="unigram", vocab_size=4096)
        kotha.prepare([file], tokenizer, folder, validation=0.1)
    return Dataset(folder)


def learn(data: Dataset, name: str, times: float, seed: int, steps: int) -> float:
    """Bits a byte on the held-out documents after so many steps."""
    rates = {rate: RECIPES[name][rate] * times for rate in RATES if rate in RECIPES[name]}
    sizes = {"steps": steps, "batch_size": 16, "context_length": 128, "evaluate_every": max(1, steps // 4)}
    warm_up = min(RECIPES[name]["warmup_steps"], steps // 10)
    config = recipe(name, **{**sizes, **rates, "warmup_steps": warm_up, "seed": seed})
    model = preset("pocket").replace(vocab_size=data.tokenizer.vocab_size, context_length=128)
    with tempfile.TemporaryDirectory() as place:
        run = RunFolder(Path(place) / "run")
        start_run(model, config, data, run).run()
        best = bundle.load(run.path)
        return evaluate_text(best.model, from_dataset(data, best.tokenizer)).bits_per_byte


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("work", type=Path)
    parser.add_argument("--steps", type=int, default=300)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0])
    parser.add_argument("--times", type=float, nargs="+", default=[1, 4, 16])
    parser.add_argument("--out", type=Path, default=record.RESULTS)
    given = parser.parse_args()
    given.work.mkdir(parents=True, exist_ok=True)
    found: list[dict[str, Any]] = []
    for corpus in ("stories", "Tagore", "English"):
        data = prepared(given.data, corpus, given.work)
        for name in RECIPES:
            for times in given.times:
                for seed in given.seeds:
                    bits = learn(data, name, times, seed, given.steps)
                    said = {"corpus": corpus, "recipe": name, "times": times, "seed": seed}
                    found.append({**said, "bits_per_byte": bits})
                    print(f"{corpus:8} {name:8} x{times:g} seed {seed}: {bits:.4f}", flush=True)
                    record.save("recipes", {"steps": given.steps, "runs": found}, ["torch"], given.out)


if __name__ == "__main__":
    main()
