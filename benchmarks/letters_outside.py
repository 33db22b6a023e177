"""Letters that a corpus lacks: vocabularies learned from stories, on other stories and on news.

    python benchmarks/letters_outside.py ../shared/data

Each kind twice: with the letters of the corpus alone ("before"), as the vocabularies were, and with those of common
Bangla ("after"). Writes benchmarks/results/letters_outside.json and prints a table.
"""

import sys
from collections import Counter
from dataclasses import asdict
from itertools import islice
from pathlib import Path
from typing import Any
from unittest.mock import patch

import regex
from record import save

from kotha.text.akshara import units
from kotha.text.corpus.documents import read_documents
from kotha.text.normalize import normalize
from kotha.text.stories.corpus import stories
from kotha.text.tokenizer import letters, trainers
from kotha.text.tokenizer.card import measure
from kotha.text.tokenizer.common_letters import common_letters

KINDS = ("unigram", "bpe", "wordpiece")
VOCABULARY = 8192
STORIES, OTHER_STORIES = 3000, 300
COUNTS = (300, 500, 1000, 1500)
# What a code point was worth, below the worst piece, before it was moved out of reach.
OUT_BEFORE = -10.0


def train(texts: list[str], kind: str, common: bool) -> Any:
    if common:
        return trainers.train(texts, kind, VOCABULARY)
    with (
        patch.object(letters, "common_letters", tuple),
        patch.object(trainers, "common_letters", tuple),
        patch.object(trainers, "_OUT", OUT_BEFORE),
    ):
        return trainers.train(texts, kind, VOCABULARY)


def coverage(texts: list[str]) -> dict[str, dict[str, float]]:
    """The share of a text's Bangla letters among the first common ones, and among its own most frequent."""
    bangla = regex.compile(r"\p{Bengali}")
    counts = Counter(unit for text in texts for unit in units(normalize(text)) if bangla.match(unit))
    best = [letter for letter, _ in counts.most_common()]
    return {
        name: {str(n): sum(counts[letter] for letter in chosen[:n]) / counts.total() for n in COUNTS}
        for name, chosen in (("common letters", common_letters()), ("the best choice", best))
    }


def read(folder: Path, pattern: str) -> list[str]:
    return [document.text for document in read_documents(sorted(folder.glob(pattern)))]


def main(data: Path) -> None:
    news = read(data / "news", "validation.jsonl.zst")
    learned_from = [story.text for story in islice(stories(0), STORIES)]
    texts = {"stories": [story.text for story in islice(stories(1), OTHER_STORIES)], "news": news}
    rows = []
    for kind in KINDS:
        for letters_of in ("the corpus", "common Bangla"):
            tokenizer = train(learned_from, kind, letters_of == "common Bangla")
            for name, sample in texts.items():
                rows.append({"letters of": letters_of, "on": name, **asdict(measure(kind, tokenizer, sample))})
                print(kind, "|", letters_of, "|", name, "|", end=" ")
                print(f"{rows[-1]['tokens_per_word']:.3f}, {rows[-1]['split_aksharas']:.2%}")
    covered = {"news": coverage(news), "prose": coverage(read(data / "prose", "*.jsonl.zst"))}
    save("letters_outside", {"cards": rows, "coverage": covered}, ["tokenizers", "regex"])


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path("../shared/data"))
