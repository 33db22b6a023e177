"""Small versions of the benchmark data: the same files with a few lines each."""

import io
import json
from collections.abc import Iterable
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zstandard

import kotha
from kotha.text.stories.corpus import stories

TEXTS = [story.text for story in islice(stories(seed=0), 60)]
LABELS = ("positive", "negative")


def _write(path: Path, lines: Iterable[str]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(zstandard.ZstdCompressor().compress("".join(f"{line}\n" for line in lines).encode()))


def _rows(rows: Iterable[dict[str, Any]]) -> list[str]:
    return [json.dumps(row, ensure_ascii=False) for row in rows]


@pytest.fixture(scope="session")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the layout described in the help of the benchmarks."""
    folder = tmp_path_factory.mktemp("data")
    texts = _rows({"text": text} for text in TEXTS)
    _write(folder / "news" / "train.jsonl.zst", texts[:50])
    _write(folder / "news" / "validation.jsonl.zst", texts[50:])
    for part in ("news_category", *(f"sentiment_mixed_{part}" for part in ("train", "dev", "test"))):
        rows = ({"text": text[:80], "label": LABELS[place % 2]} for place, text in enumerate(TEXTS))
        _write(folder / "classify" / f"{part}.jsonl.zst", _rows(rows))
    passages = _rows({"doc": f"{place}.txt", "text": text} for place, text in enumerate(TEXTS))
    _write(folder / "qa" / "passages.jsonl.zst", passages)
    questions = (
        {"question": " ".join(text.split()[:5]), "answer": text.split()[1], "doc": f"{place}.txt", "split": "train"}
        for place, text in enumerate(TEXTS)
    )
    _write(folder / "qa" / "bangla_factoid_qa.jsonl.zst", _rows(questions))
    pairs = [f"{'tatoeba' if place < 60 else 'supara_test'}\tword {place}\tশব্দ {place}" for place in range(66)]
    _write(folder / "parallel" / "en-bn.tsv.zst", ["source\ten\tbn", *pairs])
    for name in ("tagore-000", "wiki_concepts-000"):
        _write(folder / "prose" / f"{name}.jsonl.zst", texts[: 30 if name.startswith("t") else 60 : 2])
    images = np.random.default_rng(0).integers(0, 255, (80, 28, 28), dtype=np.uint8)
    buffer = io.BytesIO()
    np.savez(buffer, images=images, labels=np.arange(80) % 10)
    (folder / "digits.npz").write_bytes(buffer.getvalue())
    (folder / "text.jsonl").write_text("\n".join(texts), encoding="utf-8")
    return folder


@pytest.fixture(scope="session")
def prepared(data: Path) -> Path:
    """The news corpus as shards."""
    tokenizer = kotha.train_tokenizer([data / "text.jsonl"], vocab_size=400)
    kotha.prepare([data / "text.jsonl"], tokenizer, data / "prepared")
    return data / "prepared"
