"""Inspect a forward pass: ``kotha inside attention``, ``flow``, ``lens`` and ``trace``."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from kotha.api.options import InputOptions
from kotha.cli.language import log
from kotha.cli.model_argument import model_not_text
from kotha.cli.options import BOX, MODEL, Flat, Page, Several, written
from kotha.cli.terminal import Output, Table
from kotha.errors import UsageError
from kotha.i18n.message import Message, Text

if TYPE_CHECKING:
    from kotha.api.views import View

Inputs = Annotated[InputOptions, Flat]
Run = Annotated[
    Path, Parameter(help=MODEL, converter=lambda _, words: model_not_text(words[0].value), show_default=False)
]
Html = Annotated[Page, Parameter(help="Output file for the result as an offline HTML page.")]


def viewed(view: "View[Any]", html: Path | None, *parts: Table | Text, **options: Any) -> Output:
    """Return the output for a view; remarks about its input are always printed."""
    for remark in view.remarks:
        log(remark)
    return Output(view, *parts, page=html, **options)


def attention(
    run: Run = BOX,
    /,
    *,
    options: Inputs = InputOptions(),  # noqa: B008 - frozen
    layers: Several = (),
    html: Html = None,
) -> Output:
    """Show the attention weights of every head, layer by layer.

    Example: `kotha inside attention run --text 'নদীর ধারে' --html attention.html`

    Args:
        layers: Layers to show, such as 0 or decoder.1 (default: all).
    """
    import kotha
    from kotha.api.views import attention_table

    view = kotha.load(run, "cpu").attention(layers=layers, **vars(options))
    more = [Message("use --html FILE for a page with every head")]
    # Not indented, because one line per weight would be too long.
    return viewed(view, html, attention_table(view.found), indent=None, remarks=more)


def flow(
    run: Run = BOX,
    /,
    *,
    options: Inputs = InputOptions(),  # noqa: B008 - frozen
    html: Html = None,
) -> Output:
    """Follow a text through the model, with shapes and statistics at every stage.

    Example: `kotha inside flow run --text 'নদীর ধারে' --html flow.html`
    """
    import kotha
    from kotha.api.views import flow_tables

    view = kotha.load(run, "cpu").flow(**vars(options))
    return viewed(view, html, *flow_tables(view))


def lens(run: Run = BOX, /, *, options: Inputs = InputOptions(), html: Html = None) -> Output:  # noqa: B008
    """Show what each layer would predict next (logit lens).

    Example: `kotha inside lens run --text 'নদীর ধারে'`
    """
    import kotha
    from kotha.api.views import lens_table

    view = kotha.load(run, "cpu").lens(**vars(options))
    return viewed(view, html, lens_table(view))


def trace(
    run: Run = BOX,
    /,
    *,
    options: Inputs = InputOptions(),  # noqa: B008 - frozen
    layer: tuple[str, ...] = (),
    hook: tuple[str, ...] = (),
    npz: Annotated[Path | None, written()] = None,
) -> Output:
    """Record the activations at every hook point, as a table or as arrays.

    A hook point is a named position in the model, such as blocks.0.attention.weights.

    Example: `kotha inside trace run --text 'নদীর ধারে' --hook '*.weights' --npz weights.npz`

    Args:
        layer: Layer to record, such as 0 or decoder.1; may be repeated (default: all).
        hook: Hook point to record, or a pattern such as '*.weights'; may be repeated (default: all).
        npz: Output .npz file for the arrays.
    """
    from kotha.api.views import record_pass, to_json, write_arrays

    if npz is not None and npz.suffix != ".npz":
        raise UsageError("--npz {npz}: the file name must end in .npz; use {name}.npz", npz=npz, name=npz.name)
    given, found = record_pass(run, options, layer, hook)
    for remark in given.remarks:
        log(remark)
    records = [each.to_dict() for each in found]
    result = {"lines": to_json(given.lines), "activations": records}
    if npz is not None:
        write_arrays(npz, found)
        log(Message("{n_found} arrays in {npz}", n_found=len(found), npz=npz))
        return Output(result)
    rows = []
    for each in records:
        figures = ("-" if each[name] is None else f"{each[name]:.4f}" for name in ("mean", "std", "min", "max"))
        rows.append([each["hook_point"], " x ".join(map(str, each["shape"])), *figures])
    header = [Message("hook point"), Message("shape"), Message("mean"), Message("std"), Message("min"), Message("max")]
    return Output(result, Table(Message("activations at each hook point"), header, rows))
