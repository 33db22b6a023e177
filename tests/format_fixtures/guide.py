"""The output of the current version of Kotha for a release's fixtures."""

import json
from pathlib import Path
from typing import Any

import kotha
from kotha.text.shards import Dataset
from kotha.text.tokenizer.tokenizer import Tokenizer

SENTENCE = "আমি নদীর ধারে বসে মাছ ধরি।"
TOKENIZERS = ("unigram", "bpe", "wordpiece")
MODELS = ("gpt", "bert", "seq2seq", "vit", "classifier")
ADAPTED = "lora"  # an adapter, which depends on the run next to it


def answers(room: Path) -> dict[str, Any]:
    """Return the output for all fixtures of a release, as JSON types."""
    result: dict[str, Any] = {
        "tokenizers": {kind: Tokenizer.load(room / "tokenizers" / kind).encode(SENTENCE) for kind in TOKENIZERS},
        "data": {},
        "models": {name: _answer(room, name) for name in MODELS},
    }
    for folder in sorted((room / "data").iterdir()):
        data = Dataset(folder)
        result["data"][folder.name] = {split: data[split][0][:20].tolist() for split in ("train", "validation")}
    whole = kotha.load(room / "runs" / ADAPTED, device="cpu")
    leaning = kotha.load(room / "runs" / "gpt", device="cpu", adapter=room / "runs" / ADAPTED / "adapter")
    result["adapted"] = [dict(model.classify("নদী ৩ আর মাছ").probabilities) for model in (whole, leaning)]
    with kotha.Index(room / "index.db") as index:
        result["index"] = [hit.passage.text[:80] for hit in index.search("নদীর মাছ", limit=3).hits]
    metrics = (room / "runs" / "gpt" / "metrics.jsonl").read_text(encoding="utf-8").splitlines()
    result["losses"] = [row["loss_nats"] for row in map(json.loads, metrics) if "loss_nats" in row]
    return result


def _answer(room: Path, name: str) -> Any:
    model = kotha.load(room / "runs" / name, device="cpu")
    if name == "gpt":
        return [model.generate(SENTENCE, tokens=8, temperature=0.0), model.evaluate([SENTENCE]).bits_per_byte]
    if name == "bert":
        return model.fill("আমি [MASK] ধারে বসি।", words=3).to_dict()["words"]
    if name == "seq2seq":
        return str(model.translate("I eat rice"))
    if name == "vit":
        return dict(model.classify(room / "digit.npy").probabilities)
    return dict(model.classify("নদী ৩ আর মাছ").probabilities)
