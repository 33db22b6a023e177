"""``/api/ask`` and ``/api/indexes``: questions to documents, answered with citations."""

import asyncio
from collections.abc import Callable
from pathlib import PurePath
from typing import Literal

from fastapi import APIRouter, Request, Response
from pydantic import Field

from kotha.api.model import LanguageModel
from kotha.retrieval.hybrid import Hit
from kotha.server.api.requests import WireAnswer, in_turn, looked
from kotha.server.errors import RefusedError
from kotha.server.indexes import ServedIndex
from kotha.server.naming import by_name
from kotha.server.state import state_of
from kotha.server.wire import InEnglish, WireRequest

router = APIRouter(prefix="/api", tags=["Uses"])
_TOKENS = 100


class AskRequest(WireRequest):
    """A question to an index; with a model, passages are also found by meaning, and it may answer."""

    index: str = Field(
        max_length=300, examples=["stories"], description="The index, by its name; /api/indexes lists them."
    )
    question: str = Field(min_length=1, max_length=2000, description="What shall be answered.")
    model: str | None = Field(None, description="Left out, passages are found by their words alone.")
    limit: int = Field(5, ge=1, le=50, description="Passages to find.")
    by: Literal["words", "meaning", "both"] | None = Field(None, description="Left out, the best way there is.")
    tokens: int | None = Field(None, ge=1, le=4096, description="Of an answer that a model writes; 100 if left out.")


class FoundPassage(WireAnswer):
    """A passage: the file's name and the place in it, how much of the question it repeats, and the cosine."""

    text: str = Field(description="The passage itself.")
    source: str = Field(description="The name of its file.")
    place: str = Field(description="Where in the file.")
    score: float = Field(description="What it was ranked by.")
    words: float | None = Field(
        description="How much of the question it repeats, 1 for all; null where words were not looked at."
    )
    meaning: float | None = Field(description="The cosine of both vectors; null where meaning was not looked at.")


class AskAnswer(WireAnswer):
    """What is said to a question, and what it stands on; ``cited`` are the numbers of passages, from 1."""

    question: str = Field(description="As it was asked.")
    answer: str = Field(description="What is said, with the numbers of passages in brackets.")
    found: bool = Field(description="Whether the documents hold an answer.")
    cited: list[int] = Field(description="The passages that the answer stands on, from 1.")
    passages: list[FoundPassage] = Field(description="The best first.")
    remark: InEnglish | None = Field(description="What to know about the answer; null where there is nothing.")


class IndexSize(WireAnswer):
    """An index of this server."""

    name: str = Field(description="What it is asked by.")
    title: str = Field(description="What people call it.")
    passages: int = Field(description="How many it holds.")
    documents: int = Field(description="… of how many documents.")
    sources: int = Field(description="… of how many files.")


class IndexList(WireAnswer):
    """Those that can be asked."""

    indexes: list[IndexSize] = Field(description="By name.")


@router.get("/indexes", response_model=IndexList)
async def indexes(request: Request) -> Response:
    """The indexes that can be asked, and how much each holds."""
    state = state_of(request)
    return await in_turn(
        request, state.turns, lambda _: IndexList(indexes=[_size(each) for each in state.indexes.all().values()])
    )


@router.post("/ask", response_model=AskAnswer)
async def ask(request: Request, body: AskRequest) -> Response:
    """Find the passages that fit a question, and answer from them with citations, or say that nothing is found."""
    state = state_of(request)
    index = await asyncio.to_thread(state.indexes.named, body.index)
    most = state.settings.limits.tokens
    if body.tokens is not None and body.tokens > most:
        raise RefusedError(
            "{tokens:,} tokens are too many for one answer; {most:,} are allowed",
            param="tokens",
            tokens=body.tokens,
            most=most,
        )
    tokens = body.tokens or min(_TOKENS, most)

    def called(source: str) -> str:
        # Where files are is nobody's business but the server's: their names are told, and no folders.
        file = PurePath(source)
        return (state.jobs.uploads.name(file.stem) if state.jobs is not None else "") or file.name

    def answer(model: LanguageModel | None) -> AskAnswer:
        # An index knows its model by the place where it was.
        with by_name({str(place): name for name, place in state.registry.named.items()}):
            return _answer(index, body, model, tokens, called)

    if body.model is None:
        return await in_turn(request, index.turns, lambda _: answer(None))
    return await looked(request, body.model, lambda served, _: answer(served.model))


def _size(index: ServedIndex) -> IndexSize:
    with index.opened() as opened:
        found = opened.measures
    size = {"passages": found.passages, "documents": found.documents, "sources": found.sources}
    return IndexSize(name=index.name, title=index.title, **size)


def _answer(
    index: ServedIndex, body: AskRequest, model: LanguageModel | None, tokens: int, called: Callable[[str], str]
) -> AskAnswer:
    with index.opened(model) as opened:
        if not opened.measures.passages:
            raise RefusedError("the index {name} is empty; no documents are in it yet", param="index", name=index.name)
        said = opened.ask(body.question, body.limit, body.by, tokens=tokens)
    return AskAnswer(
        question=said.question,
        answer=str(said.answer),
        found=said.found,
        cited=said.cited,
        passages=[_passage(hit, called(hit.passage.source)) for hit in said.hits],
        remark=None if said.remark is None else str(said.remark),
    )


def _passage(hit: Hit, source: str) -> FoundPassage:
    scores = {"score": hit.score, "words": hit.words, "meaning": hit.meaning}
    return FoundPassage.model_validate(
        {"text": hit.passage.text, "source": source, "place": hit.passage.place, **scores}
    )
