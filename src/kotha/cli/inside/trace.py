"""``kotha inside trace``: what was recorded at every named place, as a table or as numbers."""

from pathlib import Path
from typing import Annotated

from kotha.cli import spoken
from kotha.cli.flags import InLanguage, Json, Run, flag, written
from kotha.cli.inside.opening import Image, Second, Target, TextGiven, open_model, tell
from kotha.cli.terminal import print_json, results, table
from kotha.errors import UsageError
from kotha.i18n.message import Message
from kotha.storage import bundled


def trace(
    run: Run = bundled.FOLDER,
    /,
    *,
    text: TextGiven = None,
    second: Second = None,
    target: Target = None,
    image: Image = None,
    layer: Annotated[tuple[str, ...], flag("Only this layer: 0, or decoder.1; may be given again.")] = (),
    place: Annotated[tuple[str, ...], flag("Only this place, or a pattern: '*.weights'.")] = (),
    npz: Annotated[Path | None, written("Write the numbers themselves to this .npz file.")] = None,
    language: InLanguage = "en",
    as_json: Json = False,
) -> None:
    """Record one pass at every named place: shapes and figures, or the numbers themselves."""
    from kotha.api.asked import Asked, read_asked
    from kotha.inside.hook_points import choose_layers
    from kotha.inside.trace import record, write_arrays

    if npz is not None and npz.suffix != ".npz":
        raise UsageError("--npz {npz} would not be found as what it is; name it {name}.npz", npz=npz, name=npz.name)
    opened = open_model(run)
    given = read_asked(opened, Asked(text=text, second=second, target=target, image=image))
    tell(given.remarks)
    found = record(opened.model, given, choose_layers(opened.model, layer), place or None)
    if npz is not None:
        write_arrays(npz, found)
        spoken.tell(Message("{n_found} arrays in {npz}", n_found=len(found), npz=npz))
    if as_json:
        print_json({"lines": given.lines_to_dict(), "places": [each.to_dict() for each in found]})
    elif npz is None:
        names = ["mean", "std", "min", "max"]
        header = [Message("place"), Message("shape"), Message("mean"), Message("std"), Message("min"), Message("max")]
        rows = []
        for seen in (each.to_dict() for each in found):
            figures = ("-" if seen[name] is None else f"{seen[name]:.4f}" for name in names)
            rows.append([seen["place"], " x ".join(map(str, seen["shape"])), *figures])
        results().print(table(Message("what was seen at each place"), header, rows))
