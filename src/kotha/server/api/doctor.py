"""``/api/doctor``: what a training curve shows, and what to try."""

from fastapi import APIRouter, Request, Response
from pydantic import Field

from kotha.artifacts.run_folder import METRICS, RunFolder, find_data
from kotha.evaluation.doctor.diagnosis import examine
from kotha.i18n.message import OnProgress
from kotha.server.api.requests import WireAnswer, in_turn
from kotha.server.api.runs import RunName, place_of
from kotha.server.errors import RefusedError
from kotha.server.state import state_of
from kotha.server.wire import WireRequest
from kotha.storage.status import is_there
from kotha.text.shards import Dataset

router = APIRouter(prefix="/api", tags=["Uses"])


class DoctorRequest(WireRequest):
    """Whose curve to read."""

    run: RunName = Field(examples=["box"])


class FindingTold(WireAnswer):
    """Something that a run shows, with its evidence; words and advice by language, en and bn."""

    kind: str = Field(description="Its name: memorising, plateau, …")
    severity: str = Field(description="alarm or notice.")
    evidence: dict[str, float | int | str] = Field(description="The figures that it was told by.")
    words: dict[str, str] = Field(description="What was seen.")
    advice: dict[str, list[str]] = Field(description="What to try.")


class DoctorAnswer(WireAnswer):
    """What was found, gravest first; where nothing is wrong, a word that says so."""

    findings: list[FindingTold] = Field(description="The gravest first.")
    healthy: dict[str, str] | None = Field(description="By language, where there are no findings.")
    looked_at_data: bool = Field(description="Whether the run's data were still there to be looked at.")


@router.post("/doctor", response_model=DoctorAnswer)
async def doctor(request: Request, body: DoctorRequest) -> Response:
    """Read the loss curve of a run and say in plain words, English and Bangla, what it shows and what to try."""
    state = state_of(request)

    def work(_: OnProgress) -> DoctorAnswer:
        place = place_of(state, body.run)
        folder = RunFolder(place)
        if not (folder.exists and is_there(place / METRICS)):
            raise RefusedError("{run} is no run with a curve; a training leaves one", param="run", run=body.run)
        config, metrics = folder.about(), folder.metrics()
        data = find_data(config, place)
        found = examine(config, metrics, None if data is None else Dataset(data, verify=False))
        return DoctorAnswer.model_validate(found.to_dict())

    return await in_turn(request, state.turns, work)
