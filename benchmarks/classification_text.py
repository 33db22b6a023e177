"""Write pre-training text for a classifier, without the texts on which the classifier is evaluated.

    python benchmarks/classification_text.py ../shared/data WORK/text [--seeds 0 1 2]

The output contains all prose and news, and the training texts of the classifiers (without labels). A document is
excluded if it shares at least ``_RUNS`` sequences of ``_WORDS`` words with a held-out text: the validation and test
sets for sentiment, and the test parts of the news categories for all given seeds, as split by ``classification.py``.
Each document is written as one JSON line.
"""

import argparse
import json
import sys
from collections.abc import Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "src"))

from kotha.finetune.splits import divide
from kotha.text.corpus.documents import read_documents
from kotha.text.corpus.labelled import read_labelled

_WORDS, _RUNS = 8, 3


def runs(text: str) -> Iterator[tuple[str, ...]]:
    """Return all sequences of this number of words; a shorter text is one sequence."""
    words = text.split()
    return (tuple(words[start : start + _WORDS]) for start in range(max(1, len(words) - _WORDS + 1)))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    given = parser.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)

    classify = given.data / "classify"
    labelled = {each.name.split(".")[0]: each for each in sorted(classify.glob("*.jsonl.zst"))}
    categories = read_labelled(labelled["news_category"], "text", "label")
    held_out = [text for seed in given.seeds for text in divide(categories, seed=seed).test.texts]
    for name in ("sentiment_mixed_dev", "sentiment_mixed_test"):
        held_out += read_labelled(labelled[name], "text", "label").texts
    known = {run for text in held_out for run in runs(text)}
    whole = {" ".join(text.split()) for text in held_out}
    print(f"{len(held_out):,} held-out texts, {len(known):,} runs of {_WORDS} words")

    files = [*sorted((given.data / "prose").glob("*.zst")), given.data / "news" / "train.jsonl.zst"]
    files += [labelled["news_category"], labelled["sentiment_mixed_train"]]
    for file in files:
        name = "news" if file.parent.name == "news" else file.name.split(".")[0]
        kept = seen = size = 0
        with (given.out / f"{name}.jsonl").open("w", encoding="utf-8") as out:
            for document in read_documents([file]):
                text, seen = document.text, seen + 1
                if " ".join(text.split()) in whole or sum(run in known for run in runs(text)) >= _RUNS:
                    continue
                kept, size = kept + 1, size + len(text.encode())
                out.write(json.dumps({"text": text}, ensure_ascii=False) + "\n")
        print(f"{name}: {kept:,} of {seen:,} documents, {size:,} bytes")


if __name__ == "__main__":
    main()
