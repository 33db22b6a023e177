"""Measure retrieval over 1,516 passages (../shared/data/qa), the speed of a large index, and unanswerable questions.

    python benchmarks/retrieval.py [--model FOLDER] [--every 1] [--large 100000] [--data ../shared/data/qa]

The settings (endings, k1, the weights, the layer, the weight of meaning) were chosen on every third and every fifth
question in the training split. The figures are measured on the other questions and on the validation split, using every
``every``-th question. The results are compared with those of SQLite's FTS5, with its default tokenizer and with
combining marks kept. Both elapsed and CPU seconds are reported, because other processes may be running.
"""

import argparse
import json
import random
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import zstandard
from record import save
from retrieval_score import evaluate_fts5, evaluate_search

from kotha.retrieval.answer import answer, best_sentence
from kotha.retrieval.documents import IndexOptions
from kotha.retrieval.index import PassageEmbedder, search, update
from kotha.retrieval.sqlite_store import SqliteStore
from kotha.retrieval.stemming import fold

MARKS_KEPT = "unicode61 categories 'L* N* Co Mn Mc'"
WHOLE = 10_000  # characters: no passage in the data is longer


def read(path: Path) -> list[dict[str, str]]:
    with zstandard.open(path, "rt", encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def held_apart(questions: list[dict[str, str]], every: int) -> list[dict[str, str]]:
    """Return the questions that were not used to choose settings."""
    training = [each for each in questions if each["split"] == "train"]
    rest = [each for number, each in enumerate(training) if number % 3 and number % 5]
    return [*rest, *(each for each in questions if each["split"] == "validation")][::every]


def timed(work: Callable[[], Any]) -> tuple[Any, dict[str, float]]:
    wall, cpu = time.perf_counter(), time.process_time()
    result = work()
    return result, {
        "seconds": round(time.perf_counter() - wall, 3),
        "cpu_seconds": round(time.process_time() - cpu, 3),
    }


def quality(
    folder: Path,
    data: Path,
    questions: list[dict[str, str]],
    passages: list[dict[str, str]],
    embed: PassageEmbedder | None,
) -> list[dict[str, Any]]:
    first: dict[str, int] = {}
    for number, each in enumerate(passages):
        first.setdefault(each["text"], number)
    right = {each["doc"]: first[each["text"]] for each in passages}  # the first of equal ones
    numbered = [(each["question"], right[each["doc"]]) for each in questions]
    texts = [each["text"] for each in passages]
    rows: list[dict[str, Any]] = []

    def keep(name: str, score: Any) -> None:
        rows.append({"ranking": name, **{key: round(value, 4) for key, value in asdict(score).items()}})
        print(rows[-1], file=sys.stderr, flush=True)

    keep("FTS5 as it comes", evaluate_fts5(texts, numbered))
    keep("FTS5, marks kept", evaluate_fts5(texts, numbered, MARKS_KEPT))
    store = SqliteStore(folder / "quality", write=True)
    update(store, [data / "passages.jsonl.zst"], IndexOptions(passage_length=WHOLE), embed)
    placed = [(question, f"line {number + 1}") for question, number in numbered]
    keep("words", evaluate_search(store, placed, "words"))
    if embed is not None:
        keep("meaning", evaluate_search(store, placed, "meaning", embed))
        keep("both", evaluate_search(store, placed, "both", embed))
    store.close()
    return rows


def not_found(
    folder: Path, questions: list[dict[str, str]], passages: list[dict[str, str]], embed: PassageEmbedder | None
) -> dict[str, Any]:
    """Remove half of the passages; return how many questions are correctly and wrongly reported as unanswerable."""
    kept = set(random.Random(0).sample(sorted({each["doc"] for each in passages}), len(passages) // 2))
    source = folder / "half.jsonl"
    lines = (json.dumps(each, ensure_ascii=False) for each in passages if each["doc"] in kept)
    source.write_text("\n".join(lines), encoding="utf-8")
    store = SqliteStore(folder / "half", write=True)
    update(store, [source], IndexOptions(passage_length=WHOLE), embed)
    counts = {"there": 0, "there_found": 0, "absent": 0, "absent_found": 0, "sentence_holds_answer": 0}
    for each in questions:
        kind = "there" if each["doc"] in kept else "absent"
        found = search(store, each["question"], 5, "words")
        said = answer(found, None)
        counts[kind] += 1
        counts[f"{kind}_found"] += said.found
        if kind == "there" and said.found:
            words = [word.form for word in fold(best_sentence(each["question"], found.hits)[0])]
            wanted = [word.form for word in fold(each["answer"])]
            spans = (words[at : at + len(wanted)] for at in range(len(words)))
            counts["sentence_holds_answer"] += any(span == wanted for span in spans)
    store.close()
    return counts


def large(folder: Path, passages: list[dict[str, str]], questions: list[str], size: int) -> dict[str, Any]:
    """Index and search this number of passages, composed of random sentences from the real passages."""
    drawn = random.Random(0)
    sentences = [part.strip() for each in passages for part in each["text"].split("।") if 20 < len(part) < 200]
    source = folder / "large.jsonl"
    with source.open("w", encoding="utf-8") as file:
        for _ in range(size):
            text = "। ".join(drawn.choices(sentences, k=4)) + "।"
            file.write(json.dumps({"text": text[:600]}, ensure_ascii=False) + "\n")
    store = SqliteStore(folder / "large", write=True)
    report, took = timed(lambda: update(store, [source], IndexOptions()))
    store.close()
    opened = SqliteStore(folder / "large")
    search(opened, questions[0])
    times = [timed(lambda question=question: search(opened, question))[1] for question in questions]
    opened.close()
    middle = {key: sorted(each[key] for each in times)[len(times) // 2] for key in ("seconds", "cpu_seconds")}
    slow = {key: sorted(each[key] for each in times)[int(len(times) * 0.95)] for key in ("seconds", "cpu_seconds")}
    return {
        "passages": report.passages,
        "indexing": took,
        "file_bytes": (folder / "large").stat().st_size,
        "questions": len(times),
        "query_median": middle,
        "query_95th": slow,
    }


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--model")
    parser.add_argument("--every", type=int, default=1)
    parser.add_argument("--large", type=int, default=100_000)
    parser.add_argument("--data", type=Path, default=Path("../shared/data/qa"))
    parser.add_argument("--out", default="retrieval")
    arguments = parser.parse_args()
    passages = read(arguments.data / "passages.jsonl.zst")
    questions = held_apart(read(arguments.data / "bangla_factoid_qa.jsonl.zst"), arguments.every)
    embed = None
    libraries = ["numpy", "regex"]
    if arguments.model:
        import kotha

        embed, libraries = kotha.load(arguments.model).embedder(), [*libraries, "torch"]
    figures: dict[str, Any] = {"model": arguments.model, "questions": len(questions)}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        if arguments.large:
            figures["large"] = large(folder, passages, [each["question"] for each in questions[:100]], arguments.large)
            print(figures["large"], file=sys.stderr, flush=True)
        figures["rankings"] = quality(folder, arguments.data, questions, passages, embed)
        figures["not_found"] = not_found(folder, questions, passages, None)
    save(arguments.out, figures, libraries)


if __name__ == "__main__":
    main()
