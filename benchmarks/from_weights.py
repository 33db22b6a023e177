"""How gently should a model go on that has learned another text? And what is carried over worth?

    python benchmarks/from_weights.py TEXT.jsonl [--out FOLDER]

A ``pocket`` model learns the built-in stories, then TEXT (a few hundred kilobytes of other prose): with its own
tokenizer and with a new one of the text, at several shares of the usual rates; beside it the same model from nothing.
Bits a byte on held-out documents of TEXT, two seeds each, after few and after many steps.
"""

import argparse
import itertools
import json
import statistics
import sys
import tempfile
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent.parent / "src"))
sys.path.insert(0, str(Path(__file__).parent))

import record
import torch

from kotha.artifacts import model_folder as bundle
from kotha.artifacts.run_folder import RunFolder
from kotha.model.presets import preset
from kotha.text.corpus.documents import read_documents
from kotha.text.prepare import PrepareOptions, prepare
from kotha.text.shards import Dataset
from kotha.text.stories.corpus import stories
from kotha.text.tokenizer.trainers import train as train_tokenizer
from kotha.training.config import recipe
from kotha.training.origin import Origin
from kotha.training.start import start_run

SHARES = (1.0, 0.3, 0.1, 0.03)
FIRST_STEPS, STEPS = 1200, (100, 600)
HOW: dict[str, Any] = {
    "batch_size": 8,
    "context_length": 128,
    "dropout": 0.0,
    "weight_decay": 0.1,
    "precision": "float32",
}
RATES = {"learning_rate": 6e-3, "muon_learning_rate": 2e-2}


def learn(
    data: Dataset, folder: Path, steps: int, seed: int, share: float = 1.0, origin: Origin | None = None
) -> float:
    """Bits a byte after a training."""
    rates = {name: share * rate for name, rate in RATES.items()}
    pace = {"steps": steps, "evaluate_every": steps, "decay_steps": int(0.6 * steps), "warmup_steps": steps // 10}
    config = recipe("modern", **HOW, **rates, **pace, seed=seed)
    model = preset("pocket").replace(vocab_size=data.tokenizer.vocab_size, context_length=128)
    fill = None if origin is None else lambda new: origin.fill(new, data.tokenizer)
    return float(start_run(model, config, data, RunFolder(folder), initialize=fill).run()["bits_per_byte"])


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("text", type=Path)
    parser.add_argument("--out", type=Path, default=record.RESULTS)
    parser.add_argument("--bytes", type=int, default=600_000)
    options = parser.parse_args()
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as scratch:
        work = Path(scratch)
        known = [document.text for document in itertools.islice(stories(seed=0), 1500)]
        other, size = [], 0
        for document in read_documents([options.text]):
            other.append(document.text)
            size += len(document.text.encode())
            if size > options.bytes:
                break
        own, new = train_tokenizer(known, "unigram", 2048), train_tokenizer(other, "unigram", 2048)
        folders = {}
        for name, texts, tokenizer in (("known", known, own), ("same", other, own), ("new", other, new)):
            (work / f"{name}.jsonl").write_text("".join(json.dumps({"text": text}) + "\n" for text in texts))
            prepare([work / f"{name}.jsonl"], tokenizer, work / name, PrepareOptions(validation=0.1))
            folders[name] = Dataset(work / name)
        learn(folders["known"], work / "first", FIRST_STEPS, seed=0)
        origin = Origin("first", bundle.load(work / "first"))
        rows = []
        for tokenizer, steps in itertools.product(("same", "new"), STEPS):
            for start in (None, *SHARES):
                scores = [
                    learn(folders[tokenizer], work / f"{tokenizer}-{steps}-{start}-{seed}", steps, seed, start or 1.0,
                          None if start is None else origin)
                    for seed in (0, 1)
                ]  # fmt: skip
                row = {"tokenizer": tokenizer, "steps": steps, "share_of_rates": start, "bits_per_byte": scores}
                rows.append({**row, "mean": statistics.mean(scores)})
                print(rows[-1], flush=True)
        record.save("from_weights", rows, ["torch"], options.out)


if __name__ == "__main__":
    main()
