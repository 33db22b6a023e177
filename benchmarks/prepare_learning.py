"""The data folders that ``learning.py`` and ``question_12b.py`` read, made from the news set and other prose.

    python benchmarks/prepare_learning.py ../shared/data OUT [--only choose news question]

``choose``: OUT/choose-8192, the training articles less 200 that are kept aside for choosing, which are its validation.
``news``: OUT/news-8192, all training articles with the validation articles. ``question``: what question 12b needs, with
the course's vocabulary of 32,100: OUT/news, OUT/part-909, -1817, -3635, OUT/prose, OUT/segments.
"""

import argparse
import json
import math
import random
import shutil
import sys
import tempfile
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "src"))

import numpy as np

from kotha.text.corpus.documents import read_documents
from kotha.text.prepare import PrepareOptions, prepare
from kotha.text.shards import DATASET_FILE, Dataset, SplitWriter
from kotha.text.tokenizer.tokenizer import Tokenizer
from kotha.text.tokenizer.trainers import train

KEPT_ASIDE, SEED = 200, 0
PARTS = {909: "an eighth", 1817: "a quarter", 3635: "a half"}
PROSE = ("tagore-000", "wiki_concepts-000", "travel_health-000")
# Sampled segmentations: versions of the text, how many of its words are cut by chance, and how freely.
VERSIONS, CHANCE, SHARPNESS, CUTS = 2, 0.3, 0.3, 8
_CODE_POINTS = -50  # pieces below this score are what is left when nothing else fits


def write(path: Path, texts: list[str]) -> Path:
    path.write_text("".join(json.dumps({"text": text}, ensure_ascii=False) + "\n" for text in texts), encoding="utf-8")
    return path


def make(train_on: list[Path], held_out: Path, tokenizer: Tokenizer, out: Path) -> None:
    shutil.rmtree(out, ignore_errors=True)
    prepare(train_on, tokenizer, out, PrepareOptions(validation=held_out))
    print(out, f"{Dataset(out)['train'].info.tokens:,} tokens", flush=True)


def cuts_by_chance(pieces: dict[str, tuple[int, float]], draw: random.Random) -> Callable[[str], list[list[int]]]:
    """Ways to cut a word, each drawn as likely as the unigram says, its scores made flatter."""
    longest = max(map(len, pieces))

    def cuts(word: str) -> list[list[int]]:
        ends: list[list[tuple[int, int, float]]] = [[] for _ in range(len(word) + 1)]
        total = [0.0] + [-math.inf] * len(word)
        for end in range(1, len(word) + 1):
            for start in range(max(0, end - longest), end):
                found = pieces.get(word[start:end])
                if found and found[1] > _CODE_POINTS and total[start] > -math.inf:
                    ends[end].append((start, found[0], SHARPNESS * found[1]))
            if ends[end]:
                terms = [total[start] + score for start, _, score in ends[end]]
                total[end] = max(terms) + math.log(sum(math.exp(each - max(terms)) for each in terms))
        if total[-1] == -math.inf:
            return []
        return [_walk_back(ends, total, draw) for _ in range(CUTS)]

    return cuts


def _walk_back(ends: list[list[tuple[int, int, float]]], total: list[float], draw: random.Random) -> list[int]:
    place, ids = len(ends) - 1, []
    while place:
        weights = [math.exp(total[start] + score - total[place]) for start, _, score in ends[place]]
        place, token, _ = draw.choices(ends[place], weights)[0]
        ids.append(token)
    return ids[::-1]


def cut_by_chance(source: Path, out: Path) -> None:
    """A data folder whose training text has some words cut otherwise, in several versions."""
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True)
    data, draw = Dataset(source), random.Random(SEED)
    state = json.loads((source / "tokenizer.json").read_text(encoding="utf-8"))
    pieces = {piece: (token, score) for token, (piece, score) in enumerate(state["model"]["vocab"])}
    splitter = data.tokenizer.backend.pre_tokenizer
    texts = [data.tokenizer.decode(document[:-1].tolist()) for document in data["train"]]
    words = [[word for word, _ in splitter.pre_tokenize_str(text)] for text in texts]
    known = sorted({word for line in words for word in line})
    usual = dict(zip(known, data.tokenizer.encode_batch(known, normalized=True), strict=True))
    cuts = cuts_by_chance(pieces, draw)
    others = {word: cuts(word) or [usual[word]] for word in known}
    for file in source.iterdir():
        if not file.name.startswith("train"):
            shutil.copy(file, out)
    with SplitWriter(out, "train", "uint16", data.tokenizer.special["eos"]) as writer:
        for _ in range(VERSIONS):
            for text, line in zip(texts, words, strict=True):
                chosen = (draw.choice(others[word]) if draw.random() < CHANCE else usual[word] for word in line)
                ids = np.array([token for some in chosen for token in some], np.uint16)
                writer.add(ids, len(text.encode()), len(text))
        info = writer.close()
    description = json.loads((source / DATASET_FILE).read_text(encoding="utf-8"))
    description["splits"]["train"] = asdict(info)
    (out / DATASET_FILE).write_text(json.dumps(description, ensure_ascii=False), encoding="utf-8")
    print(out, f"{Dataset(out)['train'].info.tokens / VERSIONS / data['train'].info.tokens:.3f} times the tokens")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("data", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--only", nargs="*", default=["choose", "news", "question"])
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    news = options.data / "news"
    held_out = news / "validation.jsonl.zst"
    texts = [document.text for document in read_documents([news / "train.jsonl.zst"])]
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder)
        articles = write(work / "articles.jsonl", texts)
        if "choose" in options.only:
            aside = set(random.Random(SEED).sample(range(len(texts)), KEPT_ASIDE))
            rest = [text for place, text in enumerate(texts) if place not in aside]
            kept = write(work / "kept.jsonl", [texts[place] for place in sorted(aside)])
            first = write(work / "rest.jsonl", rest)
            make([first], kept, train(rest, "unigram", 8192), options.out / "choose-8192")
        if {"news", "question"} & set(options.only):
            make([articles], held_out, train(texts, "unigram", 8192), options.out / "news-8192")
        if "question" in options.only:
            tokenizer = train(texts, "unigram", 32_100)
            make([articles], held_out, tokenizer, options.out / "news")
            for count in PARTS:
                part = write(work / f"{count}.jsonl", texts[:count])
                make([part], held_out, tokenizer, options.out / f"part-{count}")
            prose = [options.data / "prose" / f"{name}.jsonl.zst" for name in PROSE]
            make([articles, *prose], held_out, tokenizer, options.out / "prose")
            cut_by_chance(options.out / "news", options.out / "segments")


if __name__ == "__main__":
    main()
