"""The page that ``kotha demo`` leaves behind: the curve, what the model wrote before and after, and where to go on.

It is the first page that a newcomer opens, so it begins with what came out. What was read to get there is folded away
at its end.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import regex

from kotha.i18n.message import Text
from kotha.i18n.wording import count, duration
from kotha.report.page import Page
from kotha.text.prepare import PrepareReport
from kotha.text.stories.corpus import Story
from kotha.text.tokenizer import card
from kotha.text.tokenizer.view import view
from kotha.training.show.curves import loss_chart

if TYPE_CHECKING:
    from kotha.api.demo import Demonstration

_SAMPLE_WORDS = 28
_WORD = regex.compile(r"[\p{L}\p{M}\u200c\u200d]+")
# The pages that the demo makes beside its report: file, name, and what is to be seen there in both languages.
PAGES = [
    ("attention.html", "Attention", "Who looks at whom, in every head, while it writes.", "কোন টোকেন কোনটিকে দেখে"),
    ("flow.html", "Flow", "One text through the whole model, station by station.", "মডেলের ভেতর একটি লেখার পথ"),
    ("lens.html", "Lens", "What each layer would say, if the model ended there.", "কোন স্তর পরের টোকেন কী ভাবে"),
    ("heads.html", "Heads", "What each head does, and what it is worth.", "কোন হেড কী করে, কতটা কাজে লাগে"),
    ("run/report.html", "The training", "All its curves, samples and settings.", "প্রশিক্ষণের সব লেখচিত্র ও সেটিংস"),
]
_PYTHON = """import kotha

lm = kotha.load("{folder}/run")
print(lm.generate("নদীর ধারে", tokens=40, seed=1))
print(lm.evaluate("{folder}/held-out.jsonl").bits_per_byte)
lm.attention("নদীর ধারে").save("{folder}/mine.html")"""
_NAMES = {"story": "a story", "news": "a news item", "entry": "an encyclopaedia entry"}


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


def demo_page(demo: "Demonstration", folder: str, commands: Sequence[tuple[Text, str]]) -> str:
    """The report; ``folder`` is where all of it lies, ``commands`` what to try next, in words and to copy."""
    page = Page("কথা: your first language model", _lead(demo), bangla="আপনার প্রথম ভাষা-মডেল")
    page.headline(_figures(demo))
    with page.box("columns"):
        with page.box("column"):
            page.heading("How it learned", "যেভাবে শিখল")
            if chart := loss_chart(demo.record):
                page.figure(*chart)
        with page.box("column"):
            page.heading("The same words, before and after", "শেখার আগে ও পরে")
            for label, text in _samples(demo):
                page.story(text, label, demo.prompts[0])
    page.heading("Look inside it", "ভেতরে দেখুন")
    page.links(PAGES)
    page.heading("It goes on with texts that it has never seen", "না-দেখা লেখার শুরু পেয়ে মডেল যা লেখে")
    with page.box("columns three"):
        for name, prompt, text in zip(_NAMES.values(), demo.prompts, demo.told.texts, strict=True):
            with page.box("column"):
                page.story(text, f"{name}; bold: given", prompt)
    page.heading("Beside it, the model in the box", "পাশে রাখুন বাক্সের মডেলটি")
    page.paragraph("It came with the package, has read other texts too, and goes on with the same words:")
    page.story(demo.from_the_box, "the model in the box; bold: given", demo.prompts[0])
    _add_next(page, demo, folder, commands)
    with page.folded("What it has read: a story, a news item, an encyclopaedia entry, and how many there are"):
        page.table(["", "train", "validation"], shard_rows(demo.shards), {}, labels=[0])
        for kind in _NAMES:
            page.story(next(document.text for document in demo.written if document.kind == kind))
    return page.html(
        "Made by `kotha demo`, on this machine, with no network. ␣ is a space, ◌ a sign without its letter."
    )


def shard_rows(report: PrepareReport) -> list[list[str]]:
    """The two splits as rows of a table."""
    return [
        ["documents", f"{report.train_documents:,}", f"{report.validation_documents:,}"],
        ["tokens", f"{report.train_tokens:,}", f"{report.validation_tokens:,}"],
        ["bytes", f"{report.train_bytes:,}", f"{report.validation_bytes:,}"],
    ]


def fewer_pieces(cards: list[card.Card]) -> list[str]:
    """Why the second tokenizer's vocabulary is smaller than the first's, where it is."""
    wanted, found = (each.vocab_size for each in cards)
    reason = "it cuts words at every vowel sign, and between its cuts these texts have nothing more to join"
    return [f"{cards[1].name}: {found:,} pieces of {wanted:,}, because {reason}."] if found < wanted else []


def sample_of(written: list[Story]) -> str:
    """The beginning of the first story."""
    first = next(document for document in written if document.kind == "story")
    return " ".join(first.text.split()[:_SAMPLE_WORDS])


def _lead(demo: "Demonstration") -> str:
    summary, counted = demo.record.summary, _unigram(demo)
    learned = "and learned to write its own"
    if demo.score.bits_per_byte >= counted:
        learned = "too little yet: whoever only counts how often each token occurs foretells them better"
    elif demo.told.share < 0.5:
        learned = "too little yet: most of what it writes are no words that it has read"
    times = summary["tokens"] / max(1, demo.shards.train_tokens)
    read = f"{times:.2g} times" if times >= 1 else f"{times:.0%} of"
    return (
        f"In {duration(summary['seconds'])} on this machine it read {count(summary['tokens'])} tokens ({read} the "
        f"{demo.shards.train_documents:,} Bangla texts it was given), {learned}."
    )


def _figures(demo: "Demonstration") -> list[tuple[str, str]]:
    """The result, between what mere counting reaches and what nothing can pass, all on the same texts."""
    share = f"{demo.told.share:.1%}" if demo.told.words else "–"
    return [
        (
            f"{demo.score.bits_per_byte:.3f}",
            f"bits per byte of {demo.score.documents:,} texts that it has never seen; lower is better",
        ),
        (f"{_unigram(demo):.3f}", "on the same texts, if it only knew how often each token occurs"),
        (f"{demo.floor:.3f}", "the floor: so much is chance in the texts themselves"),
        (share, "of the words that it writes are words that it has read" if demo.told.words else "no whole word yet"),
    ]


def _unigram(demo: "Demonstration") -> float:
    """Bits per byte of the held-out texts for one who knows how often each token occurs."""
    assert demo.score.baselines is not None, "measured beside what counting reaches"
    return next(row.bits_per_byte for row in demo.score.baselines.rows if row.name == "unigram")


def _samples(demo: "Demonstration") -> list[tuple[str, str]]:
    """What it wrote after the same words: with random weights, halfway, and at the end."""
    rows: list[dict[str, Any]] = [row for row in demo.record.evaluations if row.get("sample")]
    chosen = [rows[len(rows) // 2], rows[-1]] if len(rows) > 1 else rows
    found = [(f"step {row['step']:,} of {demo.record.summary['steps']:,}", row["sample"]) for row in chosen]
    return [("step 0: random weights", demo.before), *found]


def _add_next(page: Page, demo: "Demonstration", folder: str, commands: Sequence[tuple[Text, str]]) -> None:
    page.heading("What to try next", "এবার কী করা যায়")
    with page.box("columns"):
        with page.box("column"):
            for words, command in commands:
                page.code(command, words)
        with page.box("column"):
            page.code(_PYTHON.format(folder=folder), "The same from Python")
            _add_tokenizer(page, demo)


def _add_tokenizer(page: Page, demo: "Demonstration") -> None:
    page.heading("How it reads: pieces of whole letters", "যেভাবে পড়ে: আস্ত অক্ষরের টুকরা")
    page.pieces((token.text, token.is_part) for token in view(demo.tokenizer, sample_of(demo.written)))
    titles = [title for _, title in card.COLUMNS]
    rows = list(zip(titles, *(card.cells(entry) for entry in demo.cards), strict=True))  # a column for each tokenizer
    marks = {(column - 1, row + 1): mark for (row, column), mark in card.marks(demo.cards).items()}
    page.table(rows[0], rows[1:], marks, labels=[0])
    page.paragraph("A cut inside a letter separates a vowel sign, or half of a conjunct, from its letter.")
    for remark in fewer_pieces(demo.cards):
        page.paragraph(remark)
