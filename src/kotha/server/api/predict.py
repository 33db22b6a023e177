"""What models are put to: classes (``/api/classify``), gaps (``/api/fill``), translations (``/api/translate``), and
questions to documents, answered with citations (``/api/ask``, ``/api/indexes``).
"""

from dataclasses import dataclass
from pathlib import PurePath
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Request
from pydantic import Field

from kotha.errors import DataError
from kotha.generation.classify import Classified, Classifier, classify_pixels
from kotha.generation.fill_mask import GAP, Filled
from kotha.i18n.message import OnProgress, Text
from kotha.model.vit import ViT
from kotha.retrieval.sqlite_store import Measures
from kotha.server.api.requests import (
    AboutModel,
    WireAnswer,
    check_count,
    check_texts,
    count_tokens,
    picture,
    route,
    tokenizer_of,
)
from kotha.server.errors import RefusedError, by_name, refusing
from kotha.server.json_requests import MOST_TOKENS, JsonObject, WireRequest
from kotha.server.model_registry import Served
from kotha.server.state import State, state_of

router = APIRouter(prefix="/api", tags=["Uses"])


class ClassesRequest(AboutModel):
    """Texts for a text classifier, or images for a ViT."""

    texts: list[str] = Field([])
    images: list[str] = Field([])
    why: bool = False


class ClassifyAnswer(WireAnswer):
    """An answer for each text or image."""

    results: list[Classified]
    truncated: int


@route(router, "/classify", ClassifyAnswer)
def classify(served: Served, body: ClassesRequest) -> JsonObject:
    """Of which class texts or images are, with probabilities; of texts on request why."""
    bundle = served.model.bundle
    if isinstance(bundle.model, ViT):
        check_count(served, body.images, "images")
        pictures = [picture(served, each, "images") for each in body.images]
        return {"results": [classify_pixels(bundle, each) for each in pictures], "truncated": 0}
    check_texts(served, body.texts, "texts")
    room = served.limits.positions
    for text in body.texts if body.why else ():  # a pass through the model for each token
        room -= count_tokens(served, text, room, "texts")
    classifier = Classifier(bundle)
    return {"results": classifier.classify(body.texts, body.why), "truncated": classifier.truncated}


class FillRequest(AboutModel):
    """A text with ``[MASK]`` wherever a word is missing."""

    text: Annotated[str, Field(examples=[f"নদীর ধারে {GAP} থাকে।"])]
    words: int = Field(5, ge=1, le=100)


@route(router, "/fill", Filled)
def fill(served: Served, body: FillRequest) -> Filled:
    """The likeliest words for each ``[MASK]`` of a text; a BERT does this."""
    check_texts(served, [body.text], "text")
    if body.text.count(GAP) * body.words * len(body.text) > served.limits.numbers:
        raise RefusedError("the answer would be too long; request fewer words, or shorten the text")
    return served.model.fill(body.text, words=body.words)


class TranslateRequest(AboutModel):
    """Texts to be translated."""

    texts: list[str] = Field(min_length=1)
    beams: int = Field(4, ge=1, le=16)


class TranslateAnswer(WireAnswer):
    """A translation for each."""

    texts: list[str]


@route(router, "/translate", TranslateAnswer)
def translate(served: Served, on_progress: OnProgress, body: TranslateRequest) -> dict[str, list[str]]:
    """Texts in the other language, by beam search; a Seq2Seq does this."""
    check_count(served, body.texts, "texts")
    tokenizer_of(served)
    config: Any = served.model.config
    for text in body.texts:  # the library would read the beginning alone
        count_tokens(served, text, config.context_length - 1, "texts")
    with refusing(DataError, param="model"):  # a tokenizer without the marks
        return {"texts": served.model.translate(body.texts, beams=body.beams, on_progress=on_progress)}


@dataclass(frozen=True)
class IndexSize(Measures):
    """An index of this server."""

    name: str
    title: str


class IndexList(WireAnswer):
    """Those that can be asked."""

    indexes: list[IndexSize]


@route(router, "/indexes", IndexList, method="GET")
def indexes(state: State) -> JsonObject:
    """The indexes that can be asked, and how much each holds."""
    found = []
    for name, (title, _) in state.indexes.all().items():
        with state.indexes.opened(name) as opened:
            found.append(IndexSize(**vars(opened.measures), name=name, title=title))
    return {"indexes": found}


class AskRequest(WireRequest):
    """A question to an index; with a model, passages are also found by meaning, and it may answer."""

    index: str = Field(max_length=300, examples=["stories"])
    question: str = Field(min_length=1, max_length=2000)
    model: str | None = None
    limit: int = Field(5, ge=1, le=50)
    by: Literal["words", "meaning", "both"] | None = None
    tokens: int = Field(100, ge=1, le=MOST_TOKENS)


class FoundPassage(WireAnswer):
    """A passage: the file's name and the place in it, how much of the question it repeats, and the cosine."""

    text: str
    source: str
    place: str
    score: float
    words: float | None
    meaning: float | None


class AskAnswer(WireAnswer):
    """What is said to a question, and what it stands on; ``cited`` are the numbers of passages, from 1."""

    question: str
    answer: Text
    found: bool
    cited: list[int]
    passages: list[FoundPassage]
    remark: Text | None


@route(router, "/ask", AskAnswer, reads=True)
def ask(served: Served | None, request: Request, body: AskRequest) -> JsonObject:
    """Find the passages that fit a question, and answer from them with citations, or say that nothing is found."""
    state = state_of(request)
    model = None if served is None else served.model
    places = {str(place): name for name, place in state.registry.named.items()}  # an index knows its model by that
    with by_name(places), state.indexes.opened(body.index, model) as opened:
        said = opened.ask(body.question, body.limit, body.by, tokens=body.tokens)

    def called(source: str) -> str:
        # Where files are is nobody's business but the server's: their names are told, and no folders.
        file = PurePath(source)
        return (state.jobs.uploads.name(file.stem) if state.jobs is not None else "") or file.name

    passages = [{**vars(hit), **vars(hit.passage), "source": called(hit.passage.source)} for hit in said.hits]
    return {**vars(said), "passages": passages}
