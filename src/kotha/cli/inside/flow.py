"""``kotha inside flow``: a text through the whole model, station by station."""

from typing import Annotated

from kotha.cli.flags import InLanguage, Json, flag
from kotha.cli.inside.opening import Html, Image, RunOrNone, Second, Target, TextGiven, hand_over, open_model
from kotha.cli.terminal import print_table, results, table
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
    from kotha.api.asked import Asked, read_asked
    from kotha.inside.flow import QUESTION, flow_view, preset_flow_view

    if run is not None and preset is not None:
        raise UsageError("name a run, or --preset NAME without one")
    asked = Asked(text=text, second=second, target=target, image=image)
    if preset is None:
        bundle = open_model(run or bundled.FOLDER)
        view = flow_view(bundle, read_asked(bundle, asked, QUESTION))
    elif second is not None or target is not None:
        raise UsageError("a second sentence and a target need a tokenizer, and a preset has none; give a text alone")
    else:
        view = preset_flow_view(preset, text, image)
    if not hand_over(view, html, as_json, Message("{n} stations", n=len(view.found.stations))):
        return
    print_table(view.found.table())
    for answer, told in zip(view.found.answers, view.to_dict()["answers"], strict=True):
        best = [[each["text"], f"{each['probability']:.2%}"] for each in told["best"]]
        results().print(table(answer.question, [Message("answer"), Message("probability")], best))
