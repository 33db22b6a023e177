"""Documents cut into passages: whole sentences, a few hundred letters each (chunking), each with its source and place.

A passage ends where a sentence does, at a danda as at a full stop. A sentence longer than a passage is cut between
words, and a word longer than that between letters; joined, the passages of a document give all of its words back.
Passages do not overlap: what stands between two of them is found by the words of either.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import regex

from kotha.text.akshara import aksharas

LETTERS = 600  # of a passage at most, as code points: about a hundred words, so that several fit a small context
FEWEST_LETTERS = 40
# The end of a sentence: its mark, what closes after it, then white space; or an empty line.
_SENTENCE = regex.compile(r""".*?(?:[।॥৷.!?…]["'”’»)\]]*(?=\s|$)|।|\n\s*\n|$)""", regex.DOTALL)


@dataclass(frozen=True)
class Excerpt:
    """What is found and cited: a text, its source, and where it begins there, as "line 3", "row 3" or "page 3".

    A document that has not been cut yet is one too.
    """

    text: str
    source: str
    place: str


def sentences(text: str) -> list[str]:
    """A text's sentences, without the white space around them.

    >>> sentences("মা হাসেন। কেন? ৩.৫ মাইল দূরে, ড. করিম বলেন…")
    ['মা হাসেন।', 'কেন?', '৩.৫ মাইল দূরে, ড.', 'করিম বলেন…']
    """
    found = (each.strip() for each in _SENTENCE.findall(text))
    return [each for each in found if each]


def cut(text: str, letters: int = LETTERS) -> list[str]:
    """A document's passages: sentences in their order, as many in each as fit.

    >>> cut("নদীর ধারে একটি গ্রাম। সেখানে থাকে মিনা। মিনা স্কুলে যায় রোজ সকালে।", letters=50)
    ['নদীর ধারে একটি গ্রাম। সেখানে থাকে মিনা।', 'মিনা স্কুলে যায় রোজ সকালে।']
    """
    return list(_packed((piece for each in sentences(text) for piece in _pieces(each, letters)), letters))


def gather(texts: Iterable[Excerpt], letters: int = LETTERS) -> Iterator[Excerpt]:
    """Paragraphs of one source joined until they are worth being found: a heading stays with what it is over.

    >>> parts = [Excerpt("নদী", "a.md", "line 1"), Excerpt("নদীর ধারে একটি গ্রাম।" * 20, "a.md", "line 3")]
    >>> [(each.place, each.text[:9]) for each in gather(parts)]
    [('line 1', 'নদী\\n\\nনদীর')]
    """
    waiting: Excerpt | None = None
    for each in texts:
        if waiting is not None:
            each = Excerpt(f"{waiting.text}\n\n{each.text}", waiting.source, waiting.place)
        waiting = each
        if len(each.text) * 2 >= letters:
            yield each
            waiting = None
    if waiting is not None:
        yield waiting


def _packed(pieces: Iterable[str], letters: int) -> Iterator[str]:
    passage = ""
    for piece in pieces:
        joined = f"{passage} {piece}" if passage else piece
        if len(joined) > letters:
            yield passage
            joined = piece
        passage = joined
    if passage:
        yield passage


def _pieces(sentence: str, letters: int) -> Iterator[str]:
    """A sentence, or what must be made of one that no passage can hold."""
    if len(sentence) <= letters:
        yield sentence
        return
    for word in sentence.split():
        if len(word) <= letters:
            yield word
            continue
        part = ""
        for letter in aksharas(word):
            if part and len(part) + len(letter) > letters:
                yield part
                part = ""
            part += letter
        yield part
