"""What happens as a model reads: ``kotha inside attention``, ``flow``, ``lens`` and ``trace``."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from kotha.cli.flags import BOX, Page, Run, Several, group, written
from kotha.cli.spoken import tell
from kotha.cli.terminal import Output, Table
from kotha.errors import UsageError
from kotha.i18n.message import Message, Plural, Text

if TYPE_CHECKING:
    from kotha.api.views import View

Generate = Annotated[int | None, Parameter(help="Let the model add so many tokens, and look there too.")]
Html = Annotated[Page, Parameter(help="Write one offline page to this file.")]


@group
class OfText:
    """What a model reads."""

    text: str | None = None
    """What the model reads; [MASK] hides a word from a BERT."""
    second: str | None = None
    """The second sentence of a pair, for a BERT."""
    target: str | None = None
    """The translation, for a Seq2Seq; left out, the model writes it."""


@group
class OfInput(OfText):
    """The same, or an image."""

    image: Path | None = None
    """A PNG, JPEG, PGM, .npy or .json image, for a ViT."""


def viewed(view: "View[Any]", html: Path | None, about: Text, *parts: Table | Text, **how: Any) -> Output:
    """Tell a view's remarks; then its JSON, or the page that was written, or its tables."""
    for remark in view.remarks:
        tell(remark)
    if html is None:
        return Output(view, *parts, **how)
    view.save(html)
    return Output(view, Message("{html}: {about}; open it in a browser", html=html, about=about))


def attention(
    run: Run = BOX,
    /,
    *,
    reading: OfInput = OfInput(),  # noqa: B008 - frozen
    generate: Generate = None,
    temperature: float = 0.0,
    seed: int = 0,
    layers: Several = (),
    html: Html = None,
) -> Output:
    """Who looks at whom: a page of every head, layer by layer.

    Args:
        temperature: Of what it adds: 0 takes the best token each time.
        seed: Of what it adds, above temperature 0.
        layers: Only these: 0, or decoder.1; all if left out.
    """
    import kotha
    from kotha.api.views import attention_table

    writing: dict[str, Any] = {"generate": generate, "temperature": temperature, "seed": seed}
    view = kotha.load(run, "cpu").attention(layers=layers, **vars(reading), **writing)
    about = Plural("{n} head", "{n:,} heads", n=sum(len(each.weights) for each in view.found.maps))
    more = [Message("add --html FILE for a page of every head")]
    # A line for each weight would be long.
    return viewed(view, html, about, attention_table(view.found), indent=None, remarks=more)


def flow(
    run: Run = BOX,
    /,
    *,
    reading: OfInput = OfInput(),  # noqa: B008 - frozen
    html: Html = None,
) -> Output:
    """A text through the whole model, with shapes and figures at every station."""
    import kotha
    from kotha.api.views import flow_tables

    view = kotha.load(run, "cpu").flow(**vars(reading))
    tables = flow_tables(view)
    return viewed(view, html, Message("{n} stations", n=len(tables[0].cells)), *tables)


def lens(
    run: Run = BOX,
    /,
    *,
    reading: OfText = OfText(),  # noqa: B008 - frozen
    generate: Generate = None,
    html: Html = None,
) -> Output:
    """What each layer would say next."""
    import kotha
    from kotha.api.views import lens_table

    view = kotha.load(run, "cpu").lens(**vars(reading), generate=generate)
    layers = Plural("{n} layer", "{n:,} layers", n=len(view.found.layers))
    positions = Plural("{n} position", "{n:,} positions", n=len(view.found.positions))
    about = Message("{layers}, {positions}", layers=layers, positions=positions)
    return viewed(view, html, about, lens_table(view))


def trace(
    run: Run = BOX,
    /,
    *,
    reading: OfInput = OfInput(),  # noqa: B008 - frozen
    layer: tuple[str, ...] = (),
    place: tuple[str, ...] = (),
    npz: Annotated[Path | None, written()] = None,
) -> Output:
    """What was recorded at every named place, as a table or as numbers.

    Args:
        layer: Only this layer: 0, or decoder.1; may be given again.
        place: Only this place, or a pattern: '*.weights'.
        npz: Write the numbers themselves to this .npz file.
    """
    from kotha.api.views import record_pass, to_json, write_arrays

    if npz is not None and npz.suffix != ".npz":
        raise UsageError("--npz {npz} would not be found as what it is; name it {name}.npz", npz=npz, name=npz.name)
    given, found = record_pass(run, layers=layer, places=place, **vars(reading))
    for remark in given.remarks:
        tell(remark)
    seen = [each.to_dict() for each in found]
    told = {"lines": to_json(given.lines), "places": seen}
    if npz is not None:
        write_arrays(npz, found)
        tell(Message("{n_found} arrays in {npz}", n_found=len(found), npz=npz))
        return Output(told)
    rows = []
    for each in seen:
        figures = ("-" if each[name] is None else f"{each[name]:.4f}" for name in ("mean", "std", "min", "max"))
        rows.append([each["place"], " x ".join(map(str, each["shape"])), *figures])
    header = [Message("place"), Message("shape"), Message("mean"), Message("std"), Message("min"), Message("max")]
    return Output(told, Table(Message("what was seen at each place"), header, rows))
