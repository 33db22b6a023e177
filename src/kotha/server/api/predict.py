"""Tasks: classify (``/api/classify``), fill gaps (``/api/fill``), translate (``/api/translate``), and answer questions
from documents with citations (``/api/ask``, ``/api/indexes``).
"""

from dataclasses import dataclass
from pathlib import PurePath
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Request
from pydantic import Field

from kotha.errors import DataError
from kotha.generation.classify import Classification, Classifier, classify_pixels
from kotha.generation.fill_mask import GAP, Filled
from kotha.i18n.message import OnProgress, Text
from kotha.model.vit import ViT
from kotha.retrieval.sqlite_store import Measures
from kotha.server.api.requests import (
    AboutModel,
    WireResponse,
    check_count,
    check_texts,
    count_tokens,
    picture,
    route,
    tokenizer_of,
)
from kotha.server.errors import RefusedError, by_name, refusing
from kotha.server.json_requests import MOST_TOKENS, JsonObject, WireRequest
from kotha.server.model_registry import ServedModel
from kotha.server.state import State, state_of

router = APIRouter(prefix="/api", tags=["Uses"])


class ClassesRequest(AboutModel):
    """Texts for a text classifier, or images for a ViT."""

    texts: list[str] = Field([])
    images: list[str] = Field([])
    why: bool = False


class ClassifyResponse(WireResponse):
    """A result for each text or image."""

    results: list[Classification]
    truncated: int


@route(router, "/classify", ClassifyResponse)
def classify(served: ServedModel, body: ClassesRequest) -> JsonObject:
    """Classify texts or images; for texts, optionally with the influence of each token."""
    bundle = served.model.bundle
    if isinstance(bundle.model, ViT):
        check_count(served, body.images, "images")
        pictures = [picture(served, each, "images") for each in body.images]
        return {"results": [classify_pixels(bundle, each) for each in pictures], "truncated": 0}
    check_texts(served, body.texts, "texts")
    left = served.limits.positions
    for text in body.texts if body.why else ():  # a pass through the model for each token
        left -= count_tokens(served, text, left, "texts")
    classifier = Classifier(bundle)
    return {"results": classifier.classify(body.texts, body.why), "truncated": classifier.truncated}


class FillRequest(AboutModel):
    """A text with ``[MASK]`` for each missing word."""

    text: Annotated[str, Field(examples=[f"নদীর ধারে {GAP} থাকে।"])]
    words: int = Field(5, ge=1, le=100)


@route(router, "/fill", Filled)
def fill(served: ServedModel, body: FillRequest) -> Filled:
    """Return the most likely words for each ``[MASK]`` in a text; requires a BERT model."""
    check_texts(served, [body.text], "text")
    if body.text.count(GAP) * body.words * len(body.text) > served.limits.numbers:
        raise RefusedError("the response would be too long; request fewer words, or shorten the text")
    return served.model.fill(body.text, words=body.words)


class TranslateRequest(AboutModel):
    """Texts to translate."""

    texts: list[str] = Field(min_length=1)
    beams: int = Field(4, ge=1, le=16)


class TranslateResponse(WireResponse):
    """A translation for each text."""

    texts: list[str]


@route(router, "/translate", TranslateResponse)
def translate(served: ServedModel, on_progress: OnProgress, body: TranslateRequest) -> dict[str, list[str]]:
    """Translate texts by beam search; requires a Seq2Seq model."""
    check_count(served, body.texts, "texts")
    tokenizer_of(served)
    config: Any = served.model.config
    for text in body.texts:  # the library would truncate it
        count_tokens(served, text, config.context_length - 1, "texts")
    with refusing(DataError, param="model"):  # a tokenizer without the special tokens
        return {"texts": served.model.translate(body.texts, beams=body.beams, on_progress=on_progress)}


@dataclass(frozen=True)
class IndexSize(Measures):
    """An index and its size."""

    name: str
    title: str


class IndexList(WireResponse):
    """The retrieval indexes available on the server."""

    indexes: list[IndexSize]


@route(router, "/indexes", IndexList, method="GET")
def indexes(state: State) -> JsonObject:
    """Return this server's indexes and their sizes."""
    found = []
    for name, (title, _) in state.indexes.all().items():
        with state.indexes.opened(name) as opened:
            found.append(IndexSize(**vars(opened.measures), name=name, title=title))
    return {"indexes": found}


class AskRequest(WireRequest):
    """A question for an index; a model, if given, also matches passages by meaning and may write the answer."""

    index: str = Field(max_length=300, examples=["stories"])
    question: str = Field(min_length=1, max_length=2000)
    model: str | None = None
    limit: int = Field(5, ge=1, le=50)
    by: Literal["words", "meaning", "both"] | None = None
    tokens: int = Field(100, ge=1, le=MOST_TOKENS)


class FoundPassage(WireResponse):
    """A passage: its file and position, the share of the question that it covers, and its cosine similarity."""

    text: str
    source: str
    place: str
    score: float
    words: float | None
    meaning: float | None


class AskResponse(WireResponse):
    """An answer and its passages; ``cited`` lists the numbers of the passages used, from 1."""

    question: str
    answer: Text
    found: bool
    cited: list[int]
    passages: list[FoundPassage]
    remark: Text | None


@route(router, "/ask", AskResponse, reads=True)
def ask(served: ServedModel | None, request: Request, body: AskRequest) -> JsonObject:
    """Find the passages that match a question, and answer from them with citations, or report that none match."""
    state = state_of(request)
    model = None if served is None else served.model
    paths = {str(path): name for name, path in state.registry.named.items()}  # an index refers to its model by path
    with by_name(paths), state.indexes.opened(body.index, model) as opened:
        answer = opened.ask(body.question, body.limit, body.by, tokens=body.tokens)

    def display_name(source: str) -> str:
        # Clients get names of files, never their folders.
        file = PurePath(source)
        return (state.jobs.uploads.name(file.stem) if state.jobs is not None else "") or file.name

    passages = [{**vars(hit), **vars(hit.passage), "source": display_name(hit.passage.source)} for hit in answer.hits]
    return {**vars(answer), "passages": passages}
