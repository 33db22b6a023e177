"""An answer out of passages, with citations, or the word that there is none (retrieval-augmented generation).

Whether anything fits is decided before any model writes: by how much of the question the best passage repeats, against
a threshold that was measured on questions whose own passage had been taken out. A model that was taught to take turns
is given the question and as many passages as its context holds; each sentence that it writes is then cited with the
passage that says it best, or marked as found in none. A model that was never taught to answer would only go on writing,
so the sentence of the passages that fits the question best stands as the answer, and that is said.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from kotha.i18n.message import Message, Text
from kotha.retrieval.hybrid import Hit
from kotha.retrieval.index import SearchResult
from kotha.retrieval.lexical import weigh
from kotha.retrieval.passages import sentences
from kotha.retrieval.stemming import FoldedWord, fold

if TYPE_CHECKING:
    from kotha.generation.engine import Engine

NOT_FOUND = Message("not found in these documents")
UNTAUGHT = Message("no chat model was given, so the answer is the sentence that fits the question best")
_THRESHOLD = 0.4  # how much of the question the best passage repeats at least
_SUPPORTED = 0.3  # how much of a written sentence a passage repeats at least, to be cited for it
_LOOKED_AT = 3  # best passages, out of which a sentence is taken
_UNSUPPORTED = "[?]"


class TaughtWriter:
    """A model that was taught to take turns: always its best token: an answer from documents is no place for chance.

    Nor for a penalty on repetition: it repeats what the documents say.
    """

    def __init__(self, engine: "Engine", tokens: int) -> None:
        self._engine, self._tokens = engine, tokens

    @classmethod
    def of(cls, engine: "Engine", tokens: int) -> "TaughtWriter | None":
        """The writer of a model; None where it was never taught to answer."""
        return None if engine.chat is None else cls(engine, tokens)

    def fits(self, text: str) -> bool:
        """Whether a turn leaves room for an answer in the context."""
        tokenizer = self._engine.tokenizer
        assert tokenizer is not None, "who takes turns has a tokenizer"
        marks = 3  # user, end, assistant
        context = self._engine.model.config.context_length
        return len(tokenizer.encode(text)) + marks + min(self._tokens, context // 2) <= context

    def say(self, text: str) -> str:
        """The answer to a turn."""
        from kotha.generation.conversation import Conversation

        talk = Conversation(self._engine)
        return talk.say(text, tokens=self._tokens, temperature=0.0, repetition_penalty=None).strip()


@dataclass(frozen=True)
class CitedAnswer:
    """What is said to a question, and what it stands on; ``cited`` are the numbers of hits, from 1."""

    question: str
    answer: Text
    found: bool
    cited: list[int]
    hits: list[Hit]
    remark: Message | None = None


def answer(result: SearchResult, write: TaughtWriter | None) -> CitedAnswer:
    """Answer a question from what was found for it; ``write`` is a model that was taught to, or None."""
    hits = result.hits
    if (reason := why_not_found(result)) is not None:
        return CitedAnswer(result.question, NOT_FOUND, False, [], hits, reason)
    if write is None:
        sentence, number = best_sentence(result.question, hits)
        return CitedAnswer(result.question, f"{sentence} [{number}]", True, [number], hits, UNTAUGHT)
    shown = list(hits)  # at least one, of which a model then sees the end
    while len(shown) > 1 and not write.fits(prompt(result.question, shown)):
        shown.pop()
    said, cited = cite(write.say(prompt(result.question, shown)), shown)
    return CitedAnswer(result.question, said, True, cited, hits)


def why_not_found(result: SearchResult) -> Message | None:
    """Why these hits answer nothing; None where they may."""
    best = max((hit.words or 0.0 for hit in result.hits), default=0.0)
    if best >= _THRESHOLD:
        return None
    if best == 0.0:
        return Message("no passage contains a word of the question")
    share = math.floor(100 * best)  # rounded up it would read as enough
    return Message(
        "the best passage covers {share}% of the question; at least {least:.0%} is needed",
        share=share,
        least=_THRESHOLD,
    )


def best_sentence(question: str, hits: Sequence[Hit]) -> tuple[str, int]:
    """The sentence of the best passages that fits a question best, and the number of its passage, from 1.

    >>> from kotha.retrieval.passages import Excerpt
    >>> hit = Hit(Excerpt("মিনা থাকে গ্রামে। তার ভাই থাকে শহরে।", "a.txt", "line 1"), score=1.0)
    >>> best_sentence("ভাই কোথায় থাকে?", [hit])
    ('তার ভাই থাকে শহরে।', 1)
    """
    asked = fold(question)
    found = [
        (number, sentence, fold(sentence))
        for number, hit in enumerate(hits[:_LOOKED_AT], 1)
        for sentence in sentences(hit.passage.text)
    ]
    worth = _worth([words for _, _, words in found])
    mean = sum(len(words) for _, _, words in found) / max(1, len(found))
    # A sentence of a better passage is a better sentence; among equals the first.
    number, sentence, _ = max(found, key=lambda each: weigh(asked, each[2], worth, mean) * (hits[each[0] - 1].score))
    return sentence, number


def prompt(question: str, hits: Sequence[Hit]) -> str:
    """What a model is asked: the passages by their numbers, then the question."""
    numbered = [f"[{number}] {hit.passage.text}" for number, hit in enumerate(hits, 1)]
    return "\n".join([*numbered, question])


def cite(text: str, hits: Sequence[Hit]) -> tuple[str, list[int]]:
    """A written text with the passage of each sentence behind it, worked out from the words that they share."""
    passages = [fold(hit.passage.text) for hit in hits]
    worth = _worth(passages)
    said, cited = [], []
    for sentence in sentences(text):
        words = fold(sentence)
        whole = weigh(words, words, worth, len(words))
        shares = [weigh(words, passage, worth, len(passage)) / whole if whole else 0.0 for passage in passages]
        best = max(range(len(shares)), key=lambda index: shares[index], default=None)
        if best is None or shares[best] < _SUPPORTED:
            said.append(f"{sentence} {_UNSUPPORTED}")
        else:
            said.append(f"{sentence} [{best + 1}]")
            cited.append(best + 1)
    return " ".join(said), sorted(set(cited))


def _worth(texts: Sequence[Sequence[FoldedWord]]) -> dict[str, float]:
    """Every stem of a few texts is worth the same, but for those that all of them have, which tell little."""
    everywhere = set.intersection(*({word.stem for word in text} for text in texts)) if len(texts) > 1 else set()
    stems = {word.stem for text in texts for word in text}
    return {stem: 0.5 if stem in everywhere else 1.0 for stem in stems}
