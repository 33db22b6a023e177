"""``kotha inside flow``: a text through the whole model, station by station."""

from typing import Annotated

from kotha.cli.flags import InLanguage, Json, flag
from kotha.cli.inside.opening import Html, Image, RunOrNone, Second, Target, TextGiven, hand_over, open_model
from kotha.cli.terminal import results, table
from kotha.errors import UsageError
from kotha.i18n.message import Message
from kotha.storage import bundled


def flow(
    run: RunOrNone = None,
    /,
    *,
    preset: Annotated[str | None, flag("Instead of a run: a preset with fresh weights, for its shapes.")] = None,
    text: TextGiven = None,
    second: Second = None,
    target: Target = None,
    image: Image = None,
    html: Html = None,
    language: InLanguage = "en",
    as_json: Json = False,
) -> None:
    """Follow a text through the model: shapes and figures at every station, and the answer."""
    from kotha.inside.flow.page import HEADER, flow_view, preset_flow_view, rows
    from kotha.inside.request import Asked

    if run is not None and preset is not None:
        raise UsageError("name a run, or --preset NAME without one")
    asked = Asked(text=text, second=second, target=target, image=image)
    view = flow_view(open_model(run or bundled.FOLDER), asked) if preset is None else preset_flow_view(preset, asked)
    stations = rows(view.found)
    if not hand_over(view, html, as_json, Message("{n} stations", n=len(stations))):
        return
    results().print(table(Message("station by station"), HEADER, stations))
    for answer in view.to_dict()["answers"]:
        best = [[each["text"], f"{each['probability']:.2%}"] for each in answer["best"]]
        results().print(table(answer["question"], [Message("answer"), Message("probability")], best))
