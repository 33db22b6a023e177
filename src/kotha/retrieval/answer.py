"""Answers from passages, with citations (retrieval-augmented generation).

Before any text is generated, the best passage must cover a minimum share of the question's words; otherwise no answer
is returned. The threshold was measured on questions whose own passage had been removed. A chat model then gets the
question and as many passages as fit its context. Each sentence that the model writes is followed by a citation of the
passage that best supports it, or marked as unsupported. Without a chat model, the answer is the sentence in the
passages that best matches the question, with a note to the user.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from kotha.i18n.message import Message, Text
from kotha.i18n.short_repr import ShortRepr
from kotha.retrieval.hybrid import Hit
from kotha.retrieval.index import SearchResult
from kotha.retrieval.lexical import weigh
from kotha.retrieval.passages import sentences
from kotha.retrieval.stemming import FoldedWord, fold

if TYPE_CHECKING:
    from kotha.generation.engine import Engine

NOT_FOUND = Message("not found in these documents")
NO_CHAT_MODEL = Message("no chat model was given, so the answer is the sentence that best matches the question")
_THRESHOLD = 0.4  # share of the question that the best passage must cover
_SUPPORTED = 0.3  # share of a generated sentence that a passage must cover to be cited for it
_LOOKED_AT = 3  # number of best passages from which a sentence is taken
_UNSUPPORTED = "[?]"


class ChatWriter:
    """Answers questions from passages with a chat model, greedily and without a repetition penalty."""

    def __init__(self, engine: "Engine", tokens: int) -> None:
        self._engine, self._tokens = engine, tokens

    @classmethod
    def of(cls, engine: "Engine", tokens: int) -> "ChatWriter | None":
        """Return the writer for a model; None if it is not a chat model."""
        return None if engine.chat is None else cls(engine, tokens)

    def fits(self, text: str) -> bool:
        """Return whether the context has room for a turn and an answer."""
        tokenizer = self._engine.tokenizer
        assert tokenizer is not None, "a chat model has a tokenizer"
        n_marks = 3  # user, end, assistant
        context: int = self._engine.model.config.context_length
        return len(tokenizer.encode(text)) + n_marks + min(self._tokens, context // 2) <= context

    def say(self, text: str) -> str:
        """Generate the answer to a turn."""
        from kotha.generation.conversation import Conversation

        conversation = Conversation(self._engine)
        return conversation.say(text, tokens=self._tokens, temperature=0.0, repetition_penalty=None).strip()


@dataclass(frozen=True, repr=False)
class CitedAnswer(ShortRepr):
    """An answer with the hits that support it; ``cited`` contains the numbers of the cited hits, counted from 1."""

    question: str
    answer: Text
    found: bool
    cited: list[int]
    hits: list[Hit]
    remark: Message | None = None


def answer(result: SearchResult, write: ChatWriter | None) -> CitedAnswer:
    """Answer a question from its search result, with a chat model if ``write`` is given."""
    hits = result.hits
    if (reason := why_not_found(result)) is not None:
        return CitedAnswer(result.question, NOT_FOUND, False, [], hits, reason)
    if write is None:
        sentence, number = best_sentence(result.question, hits)
        return CitedAnswer(result.question, f"{sentence} [{number}]", True, [number], hits, NO_CHAT_MODEL)
    shown = list(hits)  # at least one; if it is too long, the model sees only its end
    while len(shown) > 1 and not write.fits(prompt(result.question, shown)):
        shown.pop()
    text, cited = cite(write.say(prompt(result.question, shown)), shown)
    return CitedAnswer(result.question, text, True, cited, hits)


def why_not_found(result: SearchResult) -> Message | None:
    """Return the reason why the hits cannot answer the question; None if they may."""
    best = max((hit.words or 0.0 for hit in result.hits), default=0.0)
    if best >= _THRESHOLD:
        return None
    if best == 0.0:
        return Message("no passage contains any word of the question")
    share = math.floor(100 * best)  # rounded down, so that it does not seem sufficient
    return Message(
        "the best passage covers {share}% of the question; at least {least:.0%} is needed",
        share=share,
        least=_THRESHOLD,
    )


def best_sentence(question: str, hits: Sequence[Hit]) -> tuple[str, int]:
    """Return the sentence in the best passages that best matches the question, and the number of its passage, from 1.

    >>> from kotha.retrieval.passages import Excerpt
    >>> hit = Hit(Excerpt("মিনা থাকে গ্রামে। তার ভাই থাকে শহরে।", "a.txt", "line 1"), score=1.0)
    >>> best_sentence("ভাই কোথায় থাকে?", [hit])
    ('তার ভাই থাকে শহরে।', 1)
    """
    query = fold(question)
    found = [
        (number, sentence, fold(sentence))
        for number, hit in enumerate(hits[:_LOOKED_AT], 1)
        for sentence in sentences(hit.passage.text)
    ]
    worth = _worth([words for _, _, words in found])
    mean = sum(len(words) for _, _, words in found) / max(1, len(found))
    # Weighted by the score of its passage; in a tie, the first one wins.
    number, sentence, _ = max(found, key=lambda each: weigh(query, each[2], worth, mean) * (hits[each[0] - 1].score))
    return sentence, number


def prompt(question: str, hits: Sequence[Hit]) -> str:
    """Return the prompt: numbered passages, then the question."""
    numbered = [f"[{number}] {hit.passage.text}" for number, hit in enumerate(hits, 1)]
    return "\n".join([*numbered, question])


def cite(text: str, hits: Sequence[Hit]) -> tuple[str, list[int]]:
    """Add a citation, chosen by shared words, after each sentence of a text; return the text and the cited numbers."""
    passages = [fold(hit.passage.text) for hit in hits]
    worth = _worth(passages)
    cited_sentences, cited = [], []
    for sentence in sentences(text):
        words = fold(sentence)
        total = weigh(words, words, worth, len(words))
        shares = [weigh(words, passage, worth, len(passage)) / total if total else 0.0 for passage in passages]
        best = max(range(len(shares)), key=lambda index: shares[index], default=None)
        if best is None or shares[best] < _SUPPORTED:
            cited_sentences.append(f"{sentence} {_UNSUPPORTED}")
        else:
            cited_sentences.append(f"{sentence} [{best + 1}]")
            cited.append(best + 1)
    return " ".join(cited_sentences), sorted(set(cited))


def _worth(texts: Sequence[Sequence[FoldedWord]]) -> dict[str, float]:
    """Return the weight of each stem: 1, or 0.5 if it occurs in all texts and so cannot distinguish them."""
    everywhere = set.intersection(*({word.stem for word in text} for text in texts)) if len(texts) > 1 else set()
    stems = {word.stem for text in texts for word in text}
    return {stem: 0.5 if stem in everywhere else 1.0 for stem in stems}
