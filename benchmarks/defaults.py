"""What `kotha train DATA --minutes 2` reaches with nothing else said, beside counting.

    python benchmarks/defaults.py --shared ../shared/data --minutes 2

Three sets of about 300 kB, 3 MB and 30 MB are drawn from the news, each with a tokenizer of the size that the rules
advise, and the demo's stories; each is trained by the defaults and measured on held-out documents beside Kneser-Ney
5-grams counted in all of its training text.
"""

import argparse
import itertools
import json
import random
import tempfile
import time
from pathlib import Path
from typing import Any

from record import save

from kotha.artifacts import model_folder as bundle
from kotha.artifacts.run_folder import RunFolder
from kotha.evaluation.baselines import count_baselines
from kotha.evaluation.perplexity import evaluate_text
from kotha.text.corpus.documents import read_documents
from kotha.text.held_out import read_held_out
from kotha.text.prepare import PrepareOptions, prepare
from kotha.text.shards import Dataset
from kotha.text.stories.corpus import stories
from kotha.text.tokenizer.trainers import train as train_tokenizer
from kotha.training.plan.rules import choose_vocabulary
from kotha.training.settings import TrainRequest
from kotha.training.start import train_run

SIZES = {"news 300 kB": 300_000, "news 3 MB": 3_000_000, "news 30 MB": 30_000_000}
HELD_OUT_BYTES = 300_000
STORIES, HELD_OUT_STORIES, STORY_PIECES = 3000, 150, 8192


def some(texts: list[str], n_bytes: int) -> list[str]:
    """The first texts that have so many bytes together."""
    counted = itertools.accumulate(len(text.encode()) for text in texts)
    return [text for text, before in zip(texts, itertools.chain([0], counted), strict=False) if before < n_bytes]


def write(path: Path, texts: list[str]) -> Path:
    """Texts as JSON lines."""
    path.write_text("".join(json.dumps({"text": text}, ensure_ascii=False) + "\n" for text in texts), encoding="utf-8")
    return path


def reach(folder: Path, learned: list[str], held_out: list[str], minutes: float, pieces: int) -> dict[str, Any]:
    """Train on some texts by the defaults, and measure on others."""
    folder.mkdir(parents=True)
    texts, unseen = write(folder / "train.jsonl", learned), write(folder / "held-out.jsonl", held_out)
    tokenizer = train_tokenizer(iter(learned), "unigram", pieces)
    prepare([texts], tokenizer, folder / "data", PrepareOptions(validation=unseen))
    data, said = Dataset(folder / "data"), []
    start = time.perf_counter()
    summary = train_run(data, RunFolder(folder / "run"), TrainRequest(minutes=minutes), on_remark=said.append)
    seconds = time.perf_counter() - start
    best = bundle.load(folder / "run")
    text = read_held_out(str(unseen), data.tokenizer)
    score = evaluate_text(best.model, text)
    counted = {row.name: row.bits_per_byte for row in count_baselines(data, text, data.tokenizer.vocab_size).rows}
    keys = ("steps", "best_step", "tokens", "tokens_per_second", "precision")
    return {
        "pieces": data.tokenizer.vocab_size,
        "bits_per_byte": score.bits_per_byte,
        "counting": counted,
        "seconds": seconds,
        "said": said,
        **{key: summary[key] for key in keys},
    }


def main() -> None:
    """Run all sets and write down what came out."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--shared", type=Path, default=Path("../shared/data"))
    parser.add_argument("--minutes", type=float, default=2.0)
    parser.add_argument("--only", nargs="*", help="names of sets; all without")
    given = parser.parse_args()
    news, unseen = ([document.text for document in read_documents([str(given.shared / "news" / name)])]
                    for name in ("train.jsonl.zst", "validation.jsonl.zst"))  # fmt: skip
    random.Random(0).shuffle(news)
    sets = {name: (some(news, n), some(unseen, HELD_OUT_BYTES), choose_vocabulary(n)) for name, n in SIZES.items()}
    told = [
        [each.text for each in itertools.islice(stories(seed), count)]
        for seed, count in ((0, STORIES), (1, HELD_OUT_STORIES))
    ]
    sets = {"stories": (told[0], told[1], STORY_PIECES), **sets}
    found: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as folder:
        for name, (learned, held_out, pieces) in sets.items():
            if given.only and name not in given.only:
                continue
            found[name] = reach(Path(folder) / name.replace(" ", "-"), learned, held_out, given.minutes, pieces)
            print(name, json.dumps(found[name], ensure_ascii=False), flush=True)
    save("defaults", {"minutes": given.minutes, "sets": found}, ["torch", "tokenizers"])


if __name__ == "__main__":
    main()
