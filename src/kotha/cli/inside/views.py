"""What happens as a model reads: ``kotha inside attention``, ``flow``, ``lens`` and ``trace``."""

from pathlib import Path
from typing import Annotated, Any

from kotha.cli.flags import BOX, InLanguage, Json, Run, flag, written
from kotha.cli.inside.opening import Generate, Html, OfInput, OfText, RunOrNone, hand_over
from kotha.cli.spoken import tell
from kotha.cli.terminal import Table, print_json, print_parts
from kotha.errors import UsageError
from kotha.i18n.message import Message, Plural


def attention(
    run: Run = BOX,
    /,
    *,
    reading: OfInput = OfInput(),  # noqa: B008 - frozen
    generate: Generate = None,
    temperature: Annotated[float, flag("Of what it adds: 0 takes the best token each time.")] = 0.0,
    seed: Annotated[int, flag("Of what it adds, above temperature 0.")] = 0,
    layers: Annotated[
        tuple[str, ...],
        flag("Only these: 0, or decoder.1; all if left out.", consume_multiple=True),
    ] = (),
    html: Html = None,
    language: InLanguage = "en",
    as_json: Json = False,
) -> None:
    """Show who looks at whom: a table of the strongest looks, or with --html a page of every head."""
    import kotha
    from kotha.api.views import attention_table

    writing: dict[str, Any] = {"generate": generate, "temperature": temperature, "seed": seed}
    view = kotha.load(run, "cpu").attention(layers=layers, **vars(reading), **writing)
    n_heads = sum(len(each.weights) for each in view.found.maps)
    about = Plural("{n} head", "{n:,} heads", n=n_heads)
    hand_over(view, html, as_json, about, attention_table(view.found), indent=None)  # a line for each weight is long
    if html is None and not as_json:
        tell(Message("add --html FILE for a page of every head"))


def flow(
    run: RunOrNone = None,
    /,
    *,
    preset: Annotated[str | None, flag("Instead of a run: a preset with fresh weights, for its shapes.")] = None,
    reading: OfInput = OfInput(),  # noqa: B008 - frozen
    html: Html = None,
    language: InLanguage = "en",
    as_json: Json = False,
) -> None:
    """Follow a text through the model: shapes and figures at every station, and the answer."""
    import kotha
    from kotha.api.asked import Asked
    from kotha.api.views import flow_tables, preset_flow

    if run is not None and preset is not None:
        raise UsageError("name a run, or --preset NAME without one")
    asked = vars(reading)
    view = kotha.load(run or BOX, "cpu").flow(**asked) if preset is None else preset_flow(preset, Asked(**asked))
    tables = flow_tables(view)
    hand_over(view, html, as_json, Message("{n} stations", n=len(tables[0].cells)), *tables)


def lens(
    run: Run = BOX,
    /,
    *,
    reading: OfText = OfText(),  # noqa: B008 - frozen
    generate: Generate = None,
    html: Html = None,
    language: InLanguage = "en",
    as_json: Json = False,
) -> None:
    """Show what each layer would say at each position, as if the model ended there."""
    import kotha
    from kotha.api.views import lens_table

    view = kotha.load(run, "cpu").lens(**vars(reading), generate=generate)
    layers, positions = len(view.found.layers), len(view.found.positions)
    about = Message(
        "{layers}, {positions}",
        layers=Plural("{n} layer", "{n:,} layers", n=layers),
        positions=Plural("{n} position", "{n:,} positions", n=positions),
    )
    hand_over(view, html, as_json, about, lens_table(view))


def trace(
    run: Run = BOX,
    /,
    *,
    reading: OfInput = OfInput(),  # noqa: B008 - frozen
    layer: Annotated[tuple[str, ...], flag("Only this layer: 0, or decoder.1; may be given again.")] = (),
    place: Annotated[tuple[str, ...], flag("Only this place, or a pattern: '*.weights'.")] = (),
    npz: Annotated[Path | None, written("Write the numbers themselves to this .npz file.")] = None,
    language: InLanguage = "en",
    as_json: Json = False,
) -> None:
    """Record one pass at every named place: shapes and figures, or the numbers themselves."""
    from kotha.api.views import record_pass, to_json, write_arrays

    if npz is not None and npz.suffix != ".npz":
        raise UsageError("--npz {npz} would not be found as what it is; name it {name}.npz", npz=npz, name=npz.name)
    given, found = record_pass(run, layers=layer, places=place, **vars(reading))
    for remark in given.remarks:
        tell(remark)
    if npz is not None:
        write_arrays(npz, found)
        tell(Message("{n_found} arrays in {npz}", n_found=len(found), npz=npz))
    seen = [each.to_dict() for each in found]
    if as_json:
        print_json({"lines": to_json(given.lines), "places": seen})
    elif npz is None:
        names = ["mean", "std", "min", "max"]
        header = [Message("place"), Message("shape"), Message("mean"), Message("std"), Message("min"), Message("max")]
        rows = []
        for each in seen:
            figures = ("-" if each[name] is None else f"{each[name]:.4f}" for name in names)
            rows.append([each["place"], " x ".join(map(str, each["shape"])), *figures])
        print_parts(Table(Message("what was seen at each place"), header, rows))
