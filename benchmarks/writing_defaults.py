"""Choose the default sampling settings by comparing generated texts with human ones.

    python benchmarks/writing_defaults.py WORK [MODEL]

WORK is the folder of ``bundled_model.py``. The model continues the first words of held-out passages, and its texts are
compared with the actual continuations, cut to the same number of words: how varied they are, how much they repeat, and
whether their words occur in the training text (``writing_figures.py``). The best settings are those that generate texts
closest to human ones.
"""

import argparse
import sys
from dataclasses import asdict
from pathlib import Path
from statistics import fmean
from typing import Any

import torch
from bundled_measure import PROMPT_WORDS, SOURCES, TOKENS, beginning, texts_of
from record import save
from writing_figures import Figures, words_of

import kotha
from kotha.api.model import LanguageModel
from kotha.generation.request import Request
from kotha.generation.settings import SamplingSettings

# Number of passages from each source, and number of words of each text; shorter texts are excluded.
PASSAGES, WORDS = 20, 60
ROUNDS, LOOKED_AT = 1, 64
OFF: dict[str, Any] = {"top_k": None, "repetition_penalty": None}
SETTINGS: list[dict[str, Any]] = [
    *({"temperature": heat} for heat in (0.6, 0.8, 1.0)),
    {"temperature": 0.8, "top_k": 40},  # the default before these measurements
    *({"temperature": heat, "top_k": 40, "repetition_penalty": 1.1} for heat in (0.5, 0.6, 0.7)),
    {"temperature": 0.6, "top_k": 40, "repetition_penalty": 1.15},
    *({"temperature": 0.8, "top_k": top, "repetition_penalty": 1.1} for top in (40, None)),
    {"temperature": 0.7, "min_p": 0.1, "repetition_penalty": 1.1},
]


def human(work: Path) -> list[tuple[str, list[str]]]:
    """Return beginnings of held-out passages with their continuations."""
    found = []
    for source in SOURCES:
        long = [text for text in texts_of(work / "text" / "held_out" / f"{source}.jsonl") if len(text.split()) > 80]
        for text in long[:PASSAGES]:
            start = beginning(text)
            found.append((start, words_of(text[len(start) :])[:WORDS]))
    return found


def written(lm: LanguageModel, prompts: list[str], how: dict[str, Any]) -> list[list[str]]:
    """Return the words that the model generates after each prompt; each text has its own seed."""
    engine = lm.engine(len(prompts), "int8")
    found = []
    for turn in range(ROUNDS):
        settings = [SamplingSettings(seed=turn * len(prompts) + place, **OFF | how) for place in range(len(prompts))]
        pairs = zip(prompts, settings, strict=True)
        requests = [Request(prompt=each, tokens=TOKENS, settings=drawn) for each, drawn in pairs]
        found += [words_of(result.text)[:WORDS] for result in engine.generate(requests)]
    return [words for words in found if len(words) == WORDS]


def vocabulary_of(work: Path) -> set[str]:
    """Return all words in the training text."""
    learned = (text for source in SOURCES for text in texts_of(work / "text" / "train" / f"{source}.jsonl"))
    return {word for text in learned for word in words_of(text)}


def beside_people(lm: LanguageModel, work: Path, how: dict[str, Any]) -> dict[str, Any]:
    """Return the figures for texts generated with one group of settings, and for human texts."""
    vocabulary, pairs = vocabulary_of(work), human(work)
    texts = written(lm, [start for start, _ in pairs], how)
    return {
        "settings": how,
        "people": {"texts": len(pairs), **asdict(Figures.of([words for _, words in pairs], vocabulary))},
        "written": {"texts": len(texts), **asdict(Figures.of(texts, vocabulary))},
    }


def nats_after_a_beginning(lm: LanguageModel, texts: list[str]) -> dict[str, float]:
    """Return the mean loss on held-out passages after three words, with and without the start-of-document token."""
    model, tokenizer = lm.gpt
    start, found = tokenizer.special["eos"], {}
    for name, first in (("behind the start of a document", [start]), ("bare", [])):
        sums = []
        for text in texts:
            given, ids = len(tokenizer.encode(beginning(text))), tokenizer.encode(text)[:LOOKED_AT]
            nats = -model(torch.tensor([first + ids]))[0].log_softmax(dim=-1)
            places = range(given, len(ids))
            sums += [float(nats[place - 1 + len(first), ids[place]]) for place in places]
        found[name] = fmean(sums)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("work", type=Path)
    parser.add_argument("model", nargs="?", default="box")
    options = parser.parse_args()
    lm = kotha.load(options.model)
    vocabulary = vocabulary_of(options.work)
    pairs = human(options.work)
    people = Figures.of([words for _, words in pairs], vocabulary)
    held_out = [text for source in SOURCES for text in texts_of(options.work / "text/held_out" / f"{source}.jsonl")]
    with torch.no_grad():
        nats = nats_after_a_beginning(lm, held_out)
    print(nats, people, file=sys.stderr, flush=True)
    rows = []
    for how in SETTINGS:
        texts = written(lm, [start for start, _ in pairs], how)
        figures = Figures.of(texts, vocabulary)
        rows.append({"settings": how, "texts": len(texts), **asdict(figures), "distance": figures.distance(people)})
        print(rows[-1], file=sys.stderr, flush=True)
    save(
        "writing_defaults",
        {
            "prompt_words": PROMPT_WORDS,
            "words": WORDS,
            "nats_after_a_beginning": nats,
            "people": {"texts": len(pairs), **asdict(people)},
            "rows": rows,
        },
        ["torch"],
    )


if __name__ == "__main__":
    main()
