"""The page of ``kotha demo``: the loss curve, samples from before and after training, and what to try next.

The demo page is the first page that a new user opens, so it begins with the results. The training data is in a
collapsed section at the end.
"""

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from kotha.api.data import prepared_table
from kotha.i18n.message import Message, Text
from kotha.i18n.numbers import Count, Duration
from kotha.report.document import (
    Block,
    Code,
    Columns,
    Folded,
    Heading,
    Headline,
    Links,
    Pieces,
    Quote,
    Report,
)
from kotha.text.stories import corpus
from kotha.text.tokenizer.view import view
from kotha.training.reporting.report import loss_chart

_SAMPLE_WORDS = 28
# The fixed texts of the demo: its steps, its pages, and what to try next.
TEXTS: dict[str, Any] = json.loads(Path(__file__).with_name("demo.json").read_text(encoding="utf-8"))
# The pages that the report links to: file, name and description.
PAGES: list[tuple[str, Text, Text]] = [(file, Message(name), Message(about)) for file, name, about in TEXTS["pages"]]


def demo_page(demo: Any, folder: str, commands: Sequence[tuple[Message, str]]) -> str:
    """Return the report as HTML; ``folder`` holds the demo, ``commands`` are descriptions with commands to copy."""
    learned: list[Block] = [Heading(Message("How it learned"))]
    if chart := loss_chart(demo.record):
        learned.append(chart)
    before: list[Block] = [Heading(Message("The same words, before and after"))]
    before += [Quote(text, label, demo.prompts[0]) for label, text in _samples(demo)]
    unseen = [
        [Quote(text, Message("{what}; the prompt is in bold", what=Message(name)), prompt)]
        for name, prompt, text in zip(TEXTS["kinds"].values(), demo.prompts, demo.texts, strict=True)
    ]
    texts = [next(document.text for document in demo.written if document.kind == kind) for kind in TEXTS["kinds"]]
    title = "Its training data: a sample story, news item and encyclopaedia entry, with totals"
    table = replace(prepared_table(demo.shards), remarks=())
    in_python: list[Block] = [
        Code(TEXTS["python"].format(folder=folder), Message("The same from Python")),
        Heading(Message("How it splits text: tokens are whole grapheme clusters")),
        Pieces([(token.text, token.part) for token in view(demo.tokenizer, sample_of(demo.written))]),
    ]
    blocks: list[Block] = [
        Headline(_figures(demo)),
        Columns([learned, before]),
        Heading(Message("Look inside it")),
        Links(PAGES),
        Heading(Message("Continuations of texts that it was not trained on")),
        Columns(unseen),
        Heading(Message("What to try next")),
        Columns([[Code(command, words) for words, command in commands], in_python]),
        Folded(Message(title), [table, *map(Quote, texts)]),
    ]
    credit = Message("Created by `kotha demo` on this machine, without a network connection.")
    signs = Message("␣ stands for a space, and ◌ for the missing base letter of a sign.")
    return Report(Message("কথা: your first language model"), [_lead(demo)], blocks, [credit, signs]).html()


def sample_of(written: list[corpus.Story]) -> str:
    """Return the beginning of the first story."""
    first = next(document for document in written if document.kind == "story")
    return " ".join(first.text.split()[:_SAMPLE_WORDS])


def _lead(demo: Any) -> Message:
    learned = Message("and learned to write its own")
    if demo.score.bits_per_byte >= _unigram(demo):
        learned = Message("which is not enough yet: token frequencies alone predict them better")
    return Message(
        "In {time} on this machine it was trained on {tokens} tokens from {documents:,} Bangla texts, {learned}.",
        time=Duration(demo.record.summary["seconds"]),
        tokens=Count(demo.record.summary["tokens"]),
        documents=demo.shards.train_documents,
        learned=learned,
    )


def _figures(demo: Any) -> list[tuple[str, Text]]:
    """Return the score, the unigram baseline and the lower bound, all for the same texts."""
    unseen = Message("bits per byte on {n:,} held-out texts; lower is better", n=demo.score.documents)
    return [
        (f"{demo.score.bits_per_byte:.3f}", unseen),
        (f"{_unigram(demo):.3f}", Message("on the same texts, from token frequencies alone")),
        (f"{demo.floor:.3f}", Message("the lower bound: the entropy of the texts themselves")),
    ]


def _unigram(demo: Any) -> float:
    """Return a unigram model's bits per byte on the held-out texts."""
    return float(demo.score.baselines["unigram"]["bits_per_byte"])


def _samples(demo: Any) -> list[tuple[Text, str]]:
    """Return samples for the same prompt: with random weights, halfway, and at the end."""
    rows: list[dict[str, Any]] = [row for row in demo.record.evaluations if row.get("sample")]
    chosen = [rows[len(rows) // 2], rows[-1]] if len(rows) > 1 else rows
    steps = demo.record.summary["steps"]
    found = [(Message("step {step:,} of {steps:,}", step=row["step"], steps=steps), row["sample"]) for row in chosen]
    return [(Message("step 0: random weights"), demo.before), *found]
