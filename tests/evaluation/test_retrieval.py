"""Recall and MRR computed by hand, and search compared with FTS5 alone."""

from pathlib import Path

import pytest
from benchmarks.retrieval_score import evaluate_fts5, evaluate_search, score_ranks

from kotha.errors import UsageError
from kotha.retrieval.documents import IndexOptions
from kotha.retrieval.index import update
from kotha.retrieval.sqlite_store import SqliteStore

PASSAGES = ["কৃষি আমাদের পেশা। ধান হয়।", "কষ থেকে রং হয়। গাছের কষ।", "নদীতে নৌকা চলে।"]
QUESTIONS = ["কৃষি কার পেশা?", "কষ থেকে কী হয়?", "নদীগুলোর নৌকা"]


def test_ranks_by_hand() -> None:
    score = score_ranks([1, 3, 6, None, 11])
    assert (score.recall_at_1, score.recall_at_5) == (1 / 5, 2 / 5)
    assert score.mrr == pytest.approx((1 + 1 / 3 + 1 / 6) / 5), "beyond the tenth is not found"
    with pytest.raises(UsageError, match="no questions"):
        score_ranks([])


def test_a_search_is_scored_by_the_rank_of_the_right_passage(tmp_path: Path) -> None:
    file = tmp_path / "passages.jsonl"
    file.write_text("\n".join(f'"{text}"' for text in PASSAGES), encoding="utf-8")
    store = SqliteStore(tmp_path / "index", write=True)
    update(store, [file], IndexOptions())
    right = [(question, f"line {number}") for number, question in enumerate(QUESTIONS, 1)]
    assert evaluate_search(store, right, "words").recall_at_1 == 1.0
    wrong = [(question, "line 9") for question in QUESTIONS]
    assert evaluate_search(store, wrong, "words").mrr == 0.0
    store.close()


def test_the_baseline_is_fts5_itself() -> None:
    score = evaluate_fts5(PASSAGES, list(zip(QUESTIONS, range(3), strict=True)))
    assert score.questions == 3 and score.recall_at_5 == 1.0
    assert evaluate_fts5(PASSAGES, [('an "odd" one', 0)]).recall_at_1 == 0.0
