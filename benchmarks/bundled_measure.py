"""Measure the bundled model: bits per byte compared with n-grams, the effect of int8, and memorisation."""

import json
from pathlib import Path
from typing import Any

from record import save
from writing_figures import hashes, share_found, words_of

import kotha
from kotha.api.model import LanguageModel
from kotha.artifacts import model_folder as bundle

SOURCES = ("tagore", "wikipedia", "stories")
PEOPLE = SOURCES[:2]
# The trials that produced this model; the last one is the student.
TRIALS = ("box-t1", "box-t2", "box")
# Length of the word sequences that are looked up in the training data.
RECITED = 12
PROMPT_WORDS, TOKENS, SEEDS = 3, 150, 1


def texts_of(path: Path) -> list[str]:
    """Return the texts in a JSON Lines file."""
    return [json.loads(line)["text"] for line in path.read_text(encoding="utf-8").splitlines()]


def beginning(text: str) -> str:
    """Return the first words of a text."""
    return " ".join(text.split()[:PROMPT_WORDS])


def scores(lm: LanguageModel, work: Path, baselines: Path | str = "none") -> dict[str, Any]:
    """Return bits per byte and per character on held-out text, by source and in total, with n-gram baselines."""
    found: dict[str, Any] = {}
    for name in SOURCES:
        score = lm.evaluate(work / "text" / "held_out" / f"{name}.jsonl", baselines=baselines)
        found[name] = {"bits_per_byte": score.bits_per_byte, "bits_per_character": score.bits_per_character}
        found[name] |= {part: getattr(score, part) for part in ("documents", "bytes", "characters", "tokens")}
        if score.baselines:  # the card shortens "5-gram of 10,000,000 tokens" to 5-gram
            bits = {each.partition(" of ")[0]: figures["bits_per_byte"] for each, figures in score.baselines.items()}
            found[name]["baselines"] = bits
    return {"all": _together(list(found.values())), **found}


def _together(parts: list[dict[str, Any]]) -> dict[str, Any]:
    """Score several texts as one, with no window that extends beyond a document."""
    found: dict[str, Any] = {
        name: sum(part[name] for part in parts) for name in ("documents", "bytes", "characters", "tokens")
    }
    for unit in ("byte", "character"):
        bits = sum(part[f"bits_per_{unit}"] * part[f"{unit}s"] for part in parts)
        found[f"bits_per_{unit}"] = bits / found[f"{unit}s"]
    if "baselines" in parts[0]:
        found["baselines"] = {
            name: sum(part["baselines"][name] * part["bytes"] for part in parts) / found["bytes"]
            for name in parts[0]["baselines"]
        }
    return found


def recitation(lm: LanguageModel, work: Path) -> dict[str, Any]:
    """Return the share of twelve-word sequences that occur in the training data, for generated and for held-out text.

    Human text and the built-in stories are reported separately, because the story grammar repeats its sentences.
    """
    train = work / "text" / "train"
    people = hashes((text for name in PEOPLE for text in texts_of(train / f"{name}.jsonl")), RECITED)
    stories = (train / "stories.jsonl", work / "text" / "last.jsonl")
    grammar = hashes((text for path in stories for text in texts_of(path)), RECITED) - people
    found: dict[str, Any] = {"words": RECITED}
    for source in SOURCES:
        held_out = texts_of(work / "text" / "held_out" / f"{source}.jsonl")
        prompts = [beginning(text) for text in held_out]
        written = [text for seed in range(SEEDS) for text in lm.generate(prompts, tokens=TOKENS, seed=seed)]
        found[source] = {"texts": len(written)}
        for name, texts in (("written", written), ("held_out", held_out)):
            words = [words_of(text) for text in texts]
            found[source][name] = {
                "people": share_found(words, RECITED, people),
                "grammar": share_found(words, RECITED, grammar),
            }
    return found


def measure(work: Path, packed: LanguageModel, also: dict[str, Any]) -> None:
    """Write all figures in the card to one results file."""
    taught = kotha.load(work / "taught")
    rounded = work / "taught-int8"
    bundle.save(rounded, taught.model, taught.tokenizer, overwrite=True, stored="int8")
    trials = json.loads((work / "trained" / "results.json").read_text())
    texts = {source: texts_of(work / "text" / "train" / f"{source}.jsonl") for source in SOURCES}
    figures = {
        "parameters": sum(weight.numel() for weight in packed.model.parameters()),
        "bytes": {path.name: path.stat().st_size for path in sorted((work / "int8").iterdir())},
        "model": packed.config.to_dict(),
        "trials": {each["name"]: each for each in trials if each["name"] in TRIALS},
        "settled": json.loads((work / "settled" / "summary.json").read_text()),
        **{name: json.loads((work / name / "dataset.json").read_text()) for name in ("data", "last")},
        "sources": {
            source: {"passages": len(every), "bytes": sum(len(text.encode()) for text in every)}
            for source, every in texts.items()
        },
        "taught": scores(taught, work),
        "taught_int8": scores(kotha.load(rounded), work),
        "int8": scores(packed, work, baselines=work / "data"),
        "recitation": recitation(packed, work),
        **also,
    }
    save("bundled_model", figures, ["torch"])
