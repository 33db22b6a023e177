"""The page that ``kotha demo`` leaves behind."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import regex

from kotha.page import Page
from kotha.text.prepare import PrepareReport
from kotha.text.stories.corpus import Document
from kotha.text.tokenizer import card
from kotha.text.tokenizer.tokenizer import Tokenizer
from kotha.text.tokenizer.view import view

_SAMPLE_WORDS = 28
_WORD = regex.compile(r"[\p{L}\p{M}\u200c\u200d]+")


@dataclass(frozen=True)
class Told:
    """What the model wrote, and how many of its words it has read."""

    texts: list[str]
    words: int
    known: int

    @classmethod
    def read(cls, texts: list[str], corpus: Iterable[str]) -> "Told":
        """Count the words of some texts that occur in a corpus; not the last of a text, which may be cut off."""
        vocabulary = {word for text in corpus for word in _WORD.findall(text)}
        words = [word for text in texts for word in _WORD.findall(text)[:-1]]
        return cls(texts, len(words), sum(word in vocabulary for word in words))

    @property
    def share(self) -> float:
        """The share of known words."""
        return self.known / max(1, self.words)


def demo_page(
    written: list[Document],
    tokenizer: Tokenizer,
    shards: PrepareReport,
    cards: list[card.Card],
    summary: dict[str, Any],
    told: Told,
) -> str:
    """All steps of the demo on one page."""
    page = Page("কথা: first steps", "From stories to a model that writes its own, on this machine, with no network.")
    page.heading("Stories to learn from")
    for kind in ("story", "news", "entry"):
        page.story(next(document.text for document in written if document.kind == kind))
    page.heading("What the model writes")
    for text in told.texts:
        page.story(text)
    page.paragraph(
        f"{told.known} of its {told.words} words ({told.share:.1%}) are words of the stories that it read. On stories "
        f"that it has never seen it needs {summary['bits_per_byte']:.3f} bits per byte. The grammar knows the "
        f"probability of every choice it made, so the floor is known: {summary['floor']:.3f}. No model can do better "
        "on fresh stories, on average. How it came there is in run/report.html."
    )
    page.heading("Cut into pieces")
    page.pieces((token.text, token.is_part) for token in view(tokenizer, sample_of(written)))
    page.heading("Shards")
    page.table(["", "train", "validation"], shard_rows(shards), {})
    page.heading("Report card")
    page.table([title for _, title in card.COLUMNS], [card.cells(entry) for entry in cards], card.marks(cards))
    page.paragraph("A cut inside a letter separates a vowel sign, or half of a conjunct, from its letter.")
    return page.html("Made by `kotha demo`. ␣ is a space, ◌ a sign without its letter.")


def shard_rows(report: PrepareReport) -> list[list[str]]:
    """The two splits as rows of a table."""
    return [
        ["documents", f"{report.train_documents:,}", f"{report.validation_documents:,}"],
        ["tokens", f"{report.train_tokens:,}", f"{report.validation_tokens:,}"],
        ["bytes", f"{report.train_bytes:,}", f"{report.validation_bytes:,}"],
    ]


def sample_of(written: list[Document]) -> str:
    """The beginning of the first story."""
    first = next(document for document in written if document.kind == "story")
    return " ".join(first.text.split()[:_SAMPLE_WORDS])
