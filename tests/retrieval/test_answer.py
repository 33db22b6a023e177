"""Answers: from a sentence of the documents, from a model with citations, or none."""

import pytest
from tests.retrieval.conftest import DOCUMENTS

from kotha.generation.engine import Engine
from kotha.model.family import build
from kotha.model.presets import preset
from kotha.retrieval.answer import NO_CHAT_MODEL, NOT_FOUND, ChatWriter, answer, why_not_found
from kotha.retrieval.hybrid import Hit
from kotha.retrieval.index import SearchResult, search
from kotha.retrieval.passages import Excerpt
from kotha.retrieval.sqlite_store import SqliteStore
from kotha.text.tokenizer.trainers import train


@pytest.fixture(scope="module")
def engine() -> Engine:
    tokenizer = train(DOCUMENTS, "char", 120)
    sizes = {"n_layers": 1, "d_model": 16, "n_heads": 2, "context_length": 64, "vocab_size": tokenizer.vocab_size}
    return Engine(build(preset("char").replace(**sizes)).eval(), tokenizer)


class Says:
    """A writer of a fixed answer, whose context is a number of characters."""

    def __init__(self, text: str, letters: int = 10_000) -> None:
        self.text, self.letters, self.asked = text, letters, ""

    def fits(self, text: str) -> bool:
        return len(text) <= self.letters

    def say(self, text: str) -> str:
        self.asked = text
        return self.text


def ask(store: SqliteStore, question: str) -> SearchResult:
    return search(store, question, 3, "words")


def test_without_a_chat_model_the_best_sentence_is_the_answer(store: SqliteStore) -> None:
    result = answer(ask(store, "বাঘের গায়ে কী আছে?"), None)
    assert result.found and result.answer == "বাঘের গায়ে ডোরা আছে। [1]" and result.cited == [1]
    assert result.remark == NO_CHAT_MODEL


def test_generated_sentences_cite_their_passages(store: SqliteStore) -> None:
    writer = Says("বাঘের গায়ে ডোরা আছে। চাঁদে মানুষ হেঁটেছে।")
    result = answer(ask(store, "বাঘের গায়ে কী আছে?"), writer)
    assert result.answer == "বাঘের গায়ে ডোরা আছে। [1] চাঁদে মানুষ হেঁটেছে। [?]"
    assert result.cited == [1] and result.remark is None
    assert writer.asked.startswith("[1] সুন্দরবনে") and writer.asked.endswith("\nবাঘের গায়ে কী আছে?")


def test_a_prompt_holds_as_many_passages_as_fit(store: SqliteStore) -> None:
    result = ask(store, "পদ্মা নদীর তীরে রাজশাহী শহর আর বাঘ")
    assert len(result.hits) > 1
    writer = Says("আম।", letters=len(result.hits[0].passage.text) + 40)
    answer(result, writer)
    assert "[1]" in writer.asked and "[2]" not in writer.asked


@pytest.mark.parametrize(
    ("question", "why"),
    [
        ("মঙ্গল গ্রহের উপগ্রহ কয়টি?", "no passage contains any word of the question"),
        ("where do tigers live?", "no passage contains any word of the question"),
        ("মঙ্গলে ফোবোস ডিমোস ঘোরে বেশি", "of the question"),
    ],
)
def test_unanswerable_questions_get_no_answer(store: SqliteStore, question: str, why: str) -> None:
    writer = Says(DOCUMENTS[0])
    result = answer(ask(store, question), writer)
    assert (result.answer, result.found, result.cited, writer.asked) == (NOT_FOUND, False, [], "")
    assert result.remark is not None and why in str(result.remark)


def test_a_share_below_the_threshold_is_rounded_down() -> None:
    almost = Hit(Excerpt(DOCUMENTS[0], "a.txt", "line 1"), score=1.0, words=0.397)
    result = why_not_found(SearchResult("বাঘ", "words", [almost]))
    assert str(result) == "the best passage covers 39% of the question; at least 40% is needed"


def test_only_a_chat_model_writes_and_prompts_leave_room_for_the_answer(engine: Engine) -> None:
    assert ChatWriter.of(engine, 10) is None, "a fresh model was taught nothing"
    writer = ChatWriter(engine, tokens=10)
    assert writer.fits("ক" * (64 - 10 - 3)) and not writer.fits("ক" * (64 - 10 - 2))
    assert writer.say("বাঘ") == writer.say("বাঘ"), "always the best token, so always the same"
