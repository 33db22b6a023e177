"""``/api/inside/heads``: what each head does, with the evidence, and what it is worth."""

from fastapi import Request, Response
from pydantic import Field

from kotha.artifacts.run_folder import find_data, run_config
from kotha.errors import DataError
from kotha.i18n.message import Message, OnProgress
from kotha.inside.heads.measuring import TextSource
from kotha.inside.heads.study import heads_view
from kotha.model.bert import BERT
from kotha.model.gpt import GPT
from kotha.server.api.inside.looking import inside_router
from kotha.server.api.requests import AboutModel, WireAnswer, check_length, check_reads, looked, refuse_family
from kotha.server.errors import RefusedError, refusing
from kotha.server.model_registry import Served
from kotha.server.state import state_of

router = inside_router()
_TOKENS = 512


class HeadsRequest(AboutModel):
    """The text to study heads on; left out, what the run held out, if its data are still there."""

    text: str | None = Field(None, description="Left out, what the run held out.")
    tokens: int | None = Field(
        None, ge=9, le=1_000_000, description="So many of the text's are read, 512 if left out; each head takes a pass."
    )


class HeadOverlap(WireAnswer):
    """How much two heads have in common: what they notice (QK), where they write (OV), each beside chance."""

    qk: float = Field(description="What both notice in the tokens looked at, 0 to 1.")
    ov: float = Field(description="Where both write, 0 to 1.")
    qk_chance: float = Field(description="The same of random heads of this size.")
    ov_chance: float = Field(description="The same of random heads of this size.")


class SimilarHead(WireAnswer):
    """The head of the same attention that looks most alike."""

    head: str = Field(description="Its name.")
    alike: float = Field(description="1: they look at the very same places.")
    overlap: HeadOverlap = Field(description="What their weights have in common.")


class HeadStudied(WireAnswer):
    """A head: its kind, the evidence in words, and what the loss rises by without it."""

    head: str = Field(description="Its name: blocks.0.attention.0.")
    kind: str = Field(description="What it does; unclear, where nothing stands out.")
    score: float | None = Field(
        description="Of that kind, from chance (0) to always (1); null where there was too little text."
    )
    threshold: float | None = Field(description="The score from which the kind is named.")
    evidence: str = Field(description="In words.")
    example: str = Field(description="The clearest case: who looks at whom.")
    scores: dict[str, float] = Field(description="Of every kind.")
    distance: float = Field(description="How far it looks, in tokens, on average.")
    ablation_nats: float = Field(description="What the loss rises by without it.")
    gradient_nats: float = Field(description="How steeply the loss falls with it.")
    symmetry: float = Field(description="1: A looks at B as B at A; a half by chance.")
    most_similar: SimilarHead | None = Field(description="Null for a head alone.")


class NeededDirections(WireAnswer):
    """Directions that hold nine tenths of a matrix; as many in a random one; as many as there could be."""

    needed: int = Field(description="For nine tenths of the matrix.")
    random: int = Field(description="As many in a random one.")
    size: int = Field(description="As many as there could be.")


class SharedDirections(WireAnswer):
    """How many directions the heads of an attention need together."""

    attention: str = Field(description="Its name.")
    queries: NeededDirections = Field(description="Of all heads together.")
    keys: NeededDirections = Field(description="Of all heads together.")
    values: NeededDirections = Field(description="Of all heads together.")


class HeadsStudied(WireAnswer):
    """Every head, and the loss of the whole model on this text."""

    text: str = Field(description="Which text was read.")
    loss_nats: float = Field(description="Of the whole model.")
    passages: int = Field(description="That the text was read in.")
    tokens: int = Field(description="That were read.")
    heads: list[HeadStudied] = Field(description="Every one.")
    sharing: list[SharedDirections] = Field(description="For each attention.")


@router.post("/heads", response_model=HeadsStudied)
async def heads(request: Request, body: HeadsRequest) -> Response:
    """What each head does, how much it matters, and which one it resembles; a pass over the text for each head."""
    limits = state_of(request).settings.limits

    def work(served: Served, on_progress: OnProgress) -> HeadsStudied:
        check_reads(served)
        if not isinstance(served.model.model, GPT | BERT):
            raise refuse_family(served, Message("heads are measured on a text, by a GPT or a BERT"))
        tokens = body.tokens or min(_TOKENS, limits.studied)
        if tokens > limits.studied:
            raise RefusedError(
                "heads are measured on {studied:,} tokens at most", param="tokens", studied=limits.studied
            )
        if body.text is not None:
            check_length(body.text, limits)
        path = served.model.path
        if body.text is None and (path is None or find_data(run_config(path), path) is None):
            raise RefusedError("{name} knows no data that is still there; give a text", param="text", name=served.name)
        with refusing(DataError, param="text"):  # an empty text
            source = TextSource(text=body.text, run=path, tokens=tokens)
            view = heads_view(
                served.apart, source, name=served.name, weights=served.head_weights, on_progress=on_progress
            )
        where = "the text" if body.text is not None else "what the run held out"
        return HeadsStudied.model_validate({**view.to_dict(), "text": where})

    return await looked(request, body.model, work, shares=True)  # between two heads nothing is hooked in
