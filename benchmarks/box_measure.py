"""What the model in the box is worth: on held-out text beside counting, what int8 costs, and whether it recites."""

import json
from pathlib import Path
from typing import Any

from record import save
from writing_figures import hashes, share_found, words_of

import kotha
from kotha.api.model import LanguageModel

SOURCES = ("tagore", "wikipedia", "stories")
# Runs of so many words of what it writes are looked for in what it has read.
RECITED = 12
PROMPT_WORDS, TOKENS, SEEDS = 3, 150, 2


def texts_of(path: Path) -> list[str]:
    """The texts of a file of JSON lines."""
    return [json.loads(line)["text"] for line in path.read_text(encoding="utf-8").splitlines()]


def beginning(text: str) -> str:
    """The first words of a text, and how it goes on from there is its own business."""
    return " ".join(text.split()[:PROMPT_WORDS])


def scores(lm: LanguageModel, work: Path, baselines: Path | None) -> dict[str, Any]:
    """Bits per byte and per character on what was held out: all of it, and each source; n-grams beside all of it."""
    found: dict[str, Any] = {}
    for name, path in {"all": "held_out.jsonl", **{each: f"held_out/{each}.jsonl" for each in SOURCES}}.items():
        score = lm.evaluate(work / "text" / path, baselines=baselines)
        found[name] = {"bits_per_byte": score.bits_per_byte, "bits_per_character": score.bits_per_character}
        found[name] |= {"documents": score.documents, "bytes": score.bytes, "tokens": score.tokens}
        if score.baselines is not None:
            found[name]["baselines"] = {row.name: row.bits_per_byte for row in score.baselines.rows}
    return found


def recitation(lm: LanguageModel, work: Path) -> dict[str, Any]:
    """The share of its runs of twelve words that its training text has, beside what held-out text shares with it."""
    learned = [text for source in SOURCES for text in texts_of(work / "text" / "train" / f"{source}.jsonl")]
    known = hashes(learned, RECITED)
    found: dict[str, Any] = {"words": RECITED}
    for source in SOURCES:
        held_out = texts_of(work / "text" / "held_out" / f"{source}.jsonl")
        prompts = [beginning(text) for text in held_out]
        written = [text for seed in range(SEEDS) for text in lm.generate(prompts, tokens=TOKENS, seed=seed)]
        found[source] = {
            "texts": len(written),
            "written": share_found([words_of(text) for text in written], RECITED, known),
            "held_out": share_found([words_of(text) for text in held_out], RECITED, known),
        }
    return found


def measure(work: Path) -> None:
    """Everything that the card says, as one results file."""
    whole, packed = kotha.load(work / "float32"), kotha.load()
    trials = json.loads((work / "trained" / "results.json").read_text())
    texts = {source: texts_of(work / "text" / "train" / f"{source}.jsonl") for source in SOURCES}
    figures = {
        "parameters": sum(weight.numel() for weight in packed.model.parameters()),
        "bytes": {path.name: path.stat().st_size for path in sorted((work / "int8").iterdir())},
        "model": packed.config.to_dict(),
        "trials": {each["name"]: each for each in trials},
        "data": json.loads((work / "data" / "dataset.json").read_text()),
        "sources": {
            source: {"passages": len(every), "bytes": sum(len(text.encode()) for text in every)}
            for source, every in texts.items()
        },
        "float32": scores(whole, work, None),
        "int8": scores(packed, work, work / "data"),
        "recitation": recitation(packed, work),
    }
    save("box_model", figures, ["torch"])
