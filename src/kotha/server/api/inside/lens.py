"""``/api/inside/lens``: what each layer would say."""

from fastapi import Request, Response
from pydantic import Field

from kotha.api.asked import read_asked
from kotha.i18n.message import Message, OnProgress
from kotha.inside.heads.importance import silence
from kotha.inside.lens import lens_view
from kotha.model.vit import ViT
from kotha.server.api.inside.looking import LikelyAnswer, LinePiece, WatchRequest, inside_router
from kotha.server.api.requests import WireAnswer, looked, refuse_family
from kotha.server.model_registry import Served
from kotha.server.state import state_of
from kotha.server.wire import InEnglish

router = inside_router()


class LayerOpinion(WireAnswer):
    """What one layer would say at one position, and how far that is from the model's own answer."""

    best: list[LikelyAnswer] = Field(description="What it would say, the likeliest first.")
    rank_of_answer: int = Field(description="Where the final answer stands in this layer's order; 1 is first.")
    probability_of_answer: float = Field(description="How likely it finds the final answer.")
    kl_nats: float = Field(description="How far the final distribution is from this one.")
    entropy_nats: float = Field(description="How unsure it is.")


class LensLayer(WireAnswer):
    """A layer's opinions, position by position; the first one is the embedding."""

    layer: str = Field(description="Its name; embedding comes first.")
    positions: list[LayerOpinion] = Field(description="In the order of the line.")


class LogitLens(WireAnswer):
    """Every layer's opinion at every position of the line that speaks."""

    family: str = Field(description="Of the model.")
    question: str = Field(description="What each position is asked.")
    positions: list[LinePiece] = Field(description="The line that speaks.")
    layers: list[LensLayer] = Field(description="From the embedding to the last.")
    remarks: list[InEnglish] = Field(description="What to know about how it was taken.")


@router.post("/lens", response_model=LogitLens)
async def lens(request: Request, body: WatchRequest) -> Response:
    """What each layer would say next, as if the model ended there: the logit lens, at every position."""
    limits = state_of(request).settings.limits

    def work(served: Served, _: OnProgress) -> LogitLens:
        if isinstance(served.model.model, ViT):
            raise refuse_family(
                served, Message("the lens reads words, and it has classes; look at its attention instead")
            )
        wanted, bundle = body.to_input(served, limits), served.apart
        with silence(bundle.model, body.silenced):
            view = lens_view(bundle, read_asked(bundle, wanted))
        return LogitLens.model_validate({**view.to_dict(), "remarks": list(map(str, view.remarks))})

    return await looked(request, body.model, work)
