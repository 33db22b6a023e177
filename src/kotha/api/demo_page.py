"""The page that ``kotha demo`` leaves behind: the curve, what the model wrote before and after, and where to go on.

It is the first page that a newcomer opens, so it begins with what came out. What was read to get there is folded away
at its end.
"""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import regex

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
    Paragraph,
    Pieces,
    Quote,
    Report,
)
from kotha.report.table import Table
from kotha.text.stories import corpus
from kotha.text.tokenizer import card
from kotha.text.tokenizer.view import view
from kotha.training.show.curves import loss_chart

_SAMPLE_WORDS = 28
_WORD = regex.compile(r"[\p{L}\p{M}\u200c\u200d]+")
# What is said of the demo, around what it finds: its steps, its pages, and what to try next.
TOLD: dict[str, Any] = json.loads(Path(__file__).with_name("demo.json").read_text(encoding="utf-8"))
# The pages that the demo makes beside its report: file, name, and what is to be seen there.
PAGES: list[tuple[str, Text, Text]] = [(file, Message(name), Message(about)) for file, name, about in TOLD["pages"]]


@dataclass(frozen=True)
class Told:
    """What the model wrote, and how many of its words it has read."""

    texts: list[str]
    words: int
    known: int

    @classmethod
    def read(cls, texts: list[str], prompts: list[str], corpus: Iterable[str]) -> "Told":
        """Count the words that follow, or end, the prompts; not the last of a text, which may be cut off."""
        vocabulary = {word for text in corpus for word in _WORD.findall(text)}
        words: list[str] = []
        for text, prompt in zip(texts, prompts, strict=True):
            words += [word[0] for word in _WORD.finditer(text) if word.end() > len(prompt)][:-1]
        return cls(texts, len(words), sum(word in vocabulary for word in words))

    @property
    def share(self) -> float:
        """The share of known words."""
        return self.known / max(1, self.words)


def demo_page(demo: Any, folder: str, commands: Sequence[tuple[Message, str]]) -> str:
    """The report; ``folder`` is where all of it lies, ``commands`` what to try next, in words and to copy."""
    learned: list[Block] = [Heading(Message("How it learned"))]
    if chart := loss_chart(demo.record):
        learned.append(chart)
    before: list[Block] = [Heading(Message("The same words, before and after"))]
    before += [Quote(text, label, demo.prompts[0]) for label, text in _samples(demo)]
    unseen = [
        [Quote(text, _given(Message(name)), prompt)]
        for name, prompt, text in zip(TOLD["kinds"].values(), demo.prompts, demo.told.texts, strict=True)
    ]
    texts = [next(document.text for document in demo.written if document.kind == kind) for kind in TOLD["kinds"]]
    read = "What it has read: a story, a news item, an encyclopaedia entry, and how many there are"
    table = replace(prepared_table(demo.shards), remarks=())
    box = Message("It came with the package, has read other texts too, and goes on with the same words:")
    blocks: list[Block] = [
        Headline(_figures(demo)),
        Columns([learned, before]),
        Heading(Message("Look inside it")),
        Links(PAGES),
        Heading(Message("It goes on with texts that it has never seen")),
        Columns(unseen),
        Heading(Message("Beside it, the model in the box")),
        Paragraph(box),
        Quote(demo.from_the_box, _given(Message("the model in the box")), demo.prompts[0]),
        *_next(demo, folder, commands),
        Folded(Message(read), [table, *map(Quote, texts)]),
    ]
    made = Message("Made by `kotha demo`, on this machine, with no network.")
    signs = Message("␣ is a space, ◌ a sign without its letter.")
    return Report(Message("কথা: your first language model"), [_lead(demo)], blocks, [made, signs]).html()


def _given(what: Message) -> Message:
    return Message("{what}; bold: given", what=what)


def fewer_pieces(cards: list[card.Card]) -> list[Text]:
    """Why the second tokenizer's vocabulary is smaller than the first's, where it is."""
    wanted, found = (each.vocab_size for each in cards)
    told = (
        "{name}: {n:,} pieces of {wanted:,}, because it cuts words at every vowel sign, and between its cuts these "
        "texts have nothing more to join."
    )
    return [Message(told, name=cards[1].name, n=found, wanted=wanted)] if found < wanted else []


def sample_of(written: list[corpus.Story]) -> str:
    """The beginning of the first story."""
    first = next(document for document in written if document.kind == "story")
    return " ".join(first.text.split()[:_SAMPLE_WORDS])


def _lead(demo: Any) -> Message:
    summary = demo.record.summary
    learned = Message("and learned to write its own")
    if demo.score.bits_per_byte >= _unigram(demo):
        learned = Message("too little yet: whoever only counts how often each token occurs foretells them better")
    elif demo.told.share < 0.5:
        learned = Message("too little yet: most of what it writes are no words that it has read")
    times = summary["tokens"] / max(1, demo.shards.train_tokens)
    read = Message("{n:,.0f} times" if times >= 10 else "{n:.2g} times" if times >= 1 else "{n:.0%} of", n=times)
    return Message(
        "In {time} on this machine it read {tokens} tokens ({read} the {documents:,} Bangla texts it was given), "
        "{learned}.",
        time=Duration(summary["seconds"]),
        tokens=Count(summary["tokens"]),
        read=read,
        documents=demo.shards.train_documents,
        learned=learned,
    )


def _figures(demo: Any) -> list[tuple[str, Text]]:
    """The result, between what mere counting reaches and what nothing can pass, all on the same texts."""
    unseen = Message("bits per byte of {n:,} texts that it has never seen; lower is better", n=demo.score.documents)
    told: tuple[str, Text] = ("–", Message("no whole word yet"))
    if demo.told.words:
        told = (f"{demo.told.share:.1%}", Message("of the words that it writes are words that it has read"))
    return [
        (f"{demo.score.bits_per_byte:.3f}", unseen),
        (f"{_unigram(demo):.3f}", Message("on the same texts, if it only knew how often each token occurs")),
        (f"{demo.floor:.3f}", Message("the floor: so much is chance in the texts themselves")),
        told,
    ]


def _unigram(demo: Any) -> float:
    """Bits per byte of the held-out texts for one who knows how often each token occurs."""
    return float(demo.score.baselines["unigram"]["bits_per_byte"])


def _samples(demo: Any) -> list[tuple[Text, str]]:
    """What it wrote after the same words: with random weights, halfway, and at the end."""
    rows: list[dict[str, Any]] = [row for row in demo.record.evaluations if row.get("sample")]
    chosen = [rows[len(rows) // 2], rows[-1]] if len(rows) > 1 else rows
    steps = demo.record.summary["steps"]
    found = [(Message("step {step:,} of {steps:,}", step=row["step"], steps=steps), row["sample"]) for row in chosen]
    return [(Message("step 0: random weights"), demo.before), *found]


def _next(demo: Any, folder: str, commands: Sequence[tuple[Message, str]]) -> list[Block]:
    titles = [title if isinstance(title, Message) else Message(title) for _, title in card.COLUMNS]
    rows = list(zip(titles, *(card.cells(entry) for entry in demo.cards), strict=True))  # a column for each tokenizer
    marks = {(column - 1, row + 1): mark for (row, column), mark in card.marks(demo.cards).items()}
    cuts = Message("A cut inside a letter separates a vowel sign, or half of a conjunct, from its letter.")
    tried: list[Block] = [Code(command, words) for words, command in commands]
    shown: list[Block] = [
        Code(TOLD["python"].format(folder=folder), Message("The same from Python")),
        Heading(Message("How it reads: pieces of whole letters")),
        Pieces([(token.text, token.part) for token in view(demo.tokenizer, sample_of(demo.written))]),
        Table("", rows[0], rows[1:], [cuts, *fewer_pieces(demo.cards)], marks),
    ]
    return [Heading(Message("What to try next")), Columns([tried, shown])]
