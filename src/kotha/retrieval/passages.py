"""Split documents into passages of complete sentences, a few hundred characters each, with their source (chunking).

A passage ends at the end of a sentence (a danda or a full stop). A sentence longer than a passage is split between
words, and a word longer than a passage between grapheme clusters. The passages of a document do not overlap and contain
all of its words.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import regex

from kotha.text.akshara import aksharas

# Maximum code points in a passage: about a hundred words, so that several passages fit into a small context.
PASSAGE_LENGTH = 600
SHORTEST_PASSAGE_LENGTH, LONGEST_PASSAGE_LENGTH = 40, 10_000
# The end of a sentence: a punctuation mark, closing quotes or brackets, and white space; or an empty line.
_SENTENCE = regex.compile(r""".*?(?:[।॥৷.!?…]["'”’»)\]]*(?=\s|$)|।|\n\s*\n|$)""", regex.DOTALL)


@dataclass(frozen=True)
class Excerpt:
    """A passage, or a document before it is split: its text, its source file, and its position there ("line 3")."""

    text: str
    source: str
    place: str


def sentences(text: str) -> list[str]:
    """Return the sentences in a text, without surrounding white space.

    >>> sentences("মা হাসেন। কেন? ৩.৫ মাইল দূরে, ড. করিম বলেন…")
    ['মা হাসেন।', 'কেন?', '৩.৫ মাইল দূরে, ড.', 'করিম বলেন…']
    """
    found = (each.strip() for each in _SENTENCE.findall(text))
    return [each for each in found if each]


def cut(text: str, passage_length: int = PASSAGE_LENGTH) -> list[str]:
    """Split a document into passages, each with as many sentences as fit.

    >>> cut("নদীর ধারে একটি গ্রাম। সেখানে থাকে মিনা। মিনা স্কুলে যায় রোজ সকালে।", passage_length=50)
    ['নদীর ধারে একটি গ্রাম। সেখানে থাকে মিনা।', 'মিনা স্কুলে যায় রোজ সকালে।']
    """
    return list(_packed((piece for each in sentences(text) for piece in _pieces(each, passage_length)), passage_length))


def gather(texts: Iterable[Excerpt], passage_length: int = PASSAGE_LENGTH) -> Iterator[Excerpt]:
    """Join each short paragraph with the next one from the same source, so that a heading stays with its text.

    >>> parts = [Excerpt("নদী", "a.md", "line 1"), Excerpt("নদীর ধারে একটি গ্রাম।" * 20, "a.md", "line 3")]
    >>> [(each.place, each.text[:9]) for each in gather(parts)]
    [('line 1', 'নদী\\n\\nনদীর')]
    """
    pending: Excerpt | None = None
    for each in texts:
        if pending is not None:
            each = Excerpt(f"{pending.text}\n\n{each.text}", pending.source, pending.place)
        pending = each
        if len(each.text) * 2 >= passage_length:
            yield each
            pending = None
    if pending is not None:
        yield pending


def _packed(pieces: Iterable[str], passage_length: int) -> Iterator[str]:
    passage, length = list[str](), -1
    for piece in pieces:
        if passage and length + 1 + len(piece) > passage_length:
            yield " ".join(passage)
            passage, length = [], -1
        passage.append(piece)
        length += 1 + len(piece)
    if passage:
        yield " ".join(passage)


def _pieces(sentence: str, passage_length: int) -> Iterator[str]:
    """Yield a sentence, or its parts if it is longer than a passage."""
    if len(sentence) <= passage_length:
        yield sentence
        return
    for word in sentence.split():
        if len(word) <= passage_length:
            yield word
            continue
        part = ""
        for akshara in aksharas(word):
            if part and len(part) + len(akshara) > passage_length:
                yield part
                part = ""
            part += akshara
        yield part
