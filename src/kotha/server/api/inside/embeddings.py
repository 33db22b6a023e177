"""``/api/inside/embeddings``: words as points, who stands near whom."""

from weakref import WeakKeyDictionary

from fastapi import Request, Response
from pydantic import Field

from kotha.i18n.message import Message, OnProgress
from kotha.inside.embeddings import Embeddings, nearest_words, open_table, word_map
from kotha.server.api.inside.looking import inside_router
from kotha.server.api.requests import AboutModel, WireAnswer, check_reads, looked, refuse_family
from kotha.server.model_registry import Served

router = inside_router()
# A table in double precision is made once for each opened model.
_tables: WeakKeyDictionary[Served, Embeddings] = WeakKeyDictionary()


class EmbeddingsRequest(AboutModel):
    """How many words shall be on the map, and which one is looked for."""

    word: str | None = Field(None, max_length=80, description="Left out, the map alone.")
    count: int = Field(300, ge=3, le=2000, description="The most frequent words that are laid out.")
    neighbours: int = Field(12, ge=1, le=100, description="Words near the one that is looked for.")


class EmbeddingDot(WireAnswer):
    """A word on the map; chosen where it was looked for, or stands near that."""

    text: str = Field(description="The word.")
    x: float = Field(description="Along the direction in which words spread most.")
    y: float = Field(description="Along the second.")
    chosen: bool = Field(description="Whether it was looked for, or stands near that.")


class EmbeddingNeighbour(WireAnswer):
    """A word near another, by cosine in all dimensions."""

    token: int = Field(description="Its id.")
    text: str = Field(description="The word.")
    cosine: float = Field(description="1: the same direction; 0: nothing in common.")


class EmbeddingWord(WireAnswer):
    """The word that was looked for, and its neighbours."""

    text: str = Field(description="As the table has it.")
    pieces: list[str] = Field(description="Its tokens; of several, their mean stands for it.")
    neighbours: list[EmbeddingNeighbour] = Field(description="The nearest first.")


class EmbeddingsMap(WireAnswer):
    """Words in the plane in which their vectors spread most, and what share of the spread that is."""

    width: int = Field(description="Numbers of a vector.")
    vocabulary: int = Field(description="Vectors of the table.")
    shares: tuple[float, float] = Field(description="Of the spread, along x and along y.")
    dots: list[EmbeddingDot] = Field(description="Words by their place.")
    word: EmbeddingWord | None = Field(description="Null where none was looked for.")


@router.post("/embeddings", response_model=EmbeddingsMap)
async def embeddings(request: Request, body: EmbeddingsRequest) -> Response:
    """A map of the most frequent words (PCA), and the neighbours of one of them by cosine, less what all share."""

    def work(served: Served, _: OnProgress) -> EmbeddingsMap:
        check_reads(served)
        if served.model.tokenizer is None:
            raise refuse_family(served, Message("it has no words; ask a model that reads text"))
        if served not in _tables:
            _tables[served] = open_table(served.apart, served.model.path)
        table = _tables[served]
        word, chosen = None, []
        if body.word is not None:
            found = table.find(body.word)
            near = nearest_words(table, found, body.neighbours)
            chosen = [found, *(table.find(each.text) for each in near)]
            word = EmbeddingWord(
                text=found.text,
                pieces=list(found.pieces),
                neighbours=[EmbeddingNeighbour.model_validate(vars(each)) for each in near],
            )
        laid = word_map(table, chosen, body.count)
        return EmbeddingsMap(
            width=int(table.vectors.shape[1]),
            vocabulary=int(table.vectors.shape[0]),
            shares=laid.shares,
            dots=[EmbeddingDot.model_validate(vars(dot)) for dot in laid.dots],
            word=word,
        )

    return await looked(request, body.model, work)
