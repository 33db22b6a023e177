"""The sheet of a head of the user's own model, for a text of their own."""

from dataclasses import replace
from typing import Any

from kotha.bundle import Bundle
from kotha.errors import UsageError, nearest
from kotha.inside.inputs import read
from kotha.inside.sites import attentions, stacks
from kotha.inside.worksheet.page import SheetView, sheet_view
from kotha.inside.worksheet.sheet import Sheet
from kotha.inside.worksheet.shown import Look
from kotha.inside.worksheet.traced import read_head
from kotha.model.vit import ViT


def worksheet_view(
    bundle: Bundle, text: str, *, rows: int | None = None, precision: int | None = None, **which: Any
) -> SheetView:
    """One head as arithmetic over a text, to look at; ``which`` head as in ``model_sheet``.

    ``rows`` are those whose arithmetic is written out, ``precision`` how many decimals are shown at most.
    """
    # A sheet of a model has more numbers than the workshop's, and each needs less room.
    return sheet_view(model_sheet(bundle, text, **which), Look(4 if precision is None else precision, rows))


def model_sheet(
    bundle: Bundle,
    text: str,
    *,
    target: str | None = None,
    stack: str | None = None,
    part: str = "attention",
    layer: int = 0,
    head: int = 0,
) -> Sheet:
    """The sheet of one head for a text; ``stack`` is left out where there is only one, or means the decoder."""
    if isinstance(bundle.model, ViT):
        raise UsageError("this model is a ViT, it reads images; a worksheet is laid out for models that read text")
    model = bundle.widened().model
    given = read(model, bundle.tokenizer, text, target=target)
    place = find_site(list(attentions(model)), list(stacks(model)), stack, layer, part)
    asking, looked_at = (tuple(piece.text for piece in given.lines[line]) for line in given.lines_of(place))
    sheet = read_head(model, given.inputs, place, head, asking, looked_at)
    return replace(sheet, text=text, target=target, remarks=(*sheet.remarks, *given.remarks))


def find_site(known: list[str], stack_names: list[str], stack: str | None, layer: int, part: str) -> str:
    """The name of an attention from its parts; what does not exist is refused with what does.

    >>> find_site(["blocks.0.attention"], ["blocks"], None, 0, "attention")
    'blocks.0.attention'
    """
    if stack is not None and stack not in stack_names:
        if len(stack_names) == 1:
            raise UsageError(f"stack={stack} is for a Seq2Seq; this model has one stack, so leave it out")
        raise UsageError(f"there is no stack {stack!r} in this model{nearest(stack, stack_names)}")
    chosen = stack or stack_names[-1]
    of_stack = [name for name in known if name.startswith(f"{chosen}.")]
    n_layers = len([name for name in of_stack if name.endswith(".attention")])
    if not 0 <= layer < n_layers:
        raise UsageError(f"layer={layer} is not there; {chosen} has layers 0 to {n_layers - 1}")
    place = f"{chosen}.{layer}.{part}"
    if place not in of_stack:
        raise UsageError(f"{chosen} has no cross-attention; only the decoder of a Seq2Seq looks at another text")
    return place
