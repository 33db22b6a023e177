"""``/api/inside/flow``: a text through the whole model, station by station."""

from fastapi import Request, Response
from pydantic import Field

from kotha.api.asked import read_asked
from kotha.i18n.message import OnProgress
from kotha.inside.flow import QUESTION, flow_view
from kotha.inside.heads.importance import silence
from kotha.server.api.inside.looking import Looked, ToldAnswer, WatchRequest, inside_router, read_as, spelling
from kotha.server.api.requests import WireAnswer, looked
from kotha.server.model_registry import Served
from kotha.server.state import state_of

router = inside_router()


class FlowStation(WireAnswer):
    """What passes one place: its shape and figures, and how long the vector of each position is."""

    layer: str | None = Field(description="The start and the end have none.")
    place: str = Field(description="Its name, as traces have it.")
    label: str = Field(description="The same for a reader.")
    kind: str = Field(description="value, norm, part (computes what is added) or sum (the way around joins in).")
    shape: list[int] = Field(description="Of what passes.")
    mean: float = Field(description="Of all its numbers.")
    std: float = Field(description="Their standard deviation.")
    low: float = Field(description="The smallest.")
    high: float = Field(description="The largest.")
    norm: float = Field(description="The mean of norms.")
    norms: list[float] = Field(description="The length of each position's vector.")
    entropies: dict[int, float] = Field(description="Of an attention: how widely each head looks, in bits.")
    inside: str = Field(description="Shapes that come and go inside the part.")


class FlowStations(Looked):
    """The stations in the order of the arithmetic, and the answer at the end."""

    stations: list[FlowStation] = Field(description="In the order of the arithmetic.")
    answers: list[ToldAnswer] = Field(description="What the model says in the end.")


@router.post("/flow", response_model=FlowStations)
async def flow(request: Request, body: WatchRequest) -> Response:
    """A text's or an image's way through the model: shapes and figures at every station of the residual stream."""
    limits = state_of(request).settings.limits

    def work(served: Served, _: OnProgress) -> FlowStations:
        wanted, bundle = body.to_input(served, limits), served.apart
        with silence(bundle.model, body.silenced):
            view = flow_view(bundle, read_asked(bundle, wanted, QUESTION))
        found = view.found.to_dict(spelling(bundle))
        return FlowStations.model_validate({**found, **read_as(bundle, view.found.given)})

    return await looked(request, body.model, work)
