"""The part of a sheet that a person can work out: what is too wide for a pencil is taken as given.

The workshop's sheet comes back as it is. Of a model's head the products of long rows are the machine's, and what only
they read falls away; from the scores on everything is small, and of wide values the first few columns do.
"""

from dataclasses import replace

from kotha.course.worksheet.operations import Product
from kotha.course.worksheet.sheet import Sheet, SheetStep
from kotha.errors import UsageError

# Products that one adds up for a cell, columns of values, and tokens: more is no work for a pencil.
MOST_TERMS, MOST_COLUMNS, MOST_TOKENS = 12, 6, 12


def for_paper(sheet: Sheet) -> Sheet:
    """The sheet with its too wide steps taken as given, and without what is then read by none."""
    n_tokens = max(len(sheet.tokens), len(sheet.key_tokens))
    if n_tokens > MOST_TOKENS:
        raise UsageError(
            "a sheet of {n} tokens is too large for a pencil; up to {most}: shorten the text",
            n=n_tokens,
            most=MOST_TOKENS,
        )
    needed, kept = {"output"}, {}
    for name, step in reversed(sheet.steps.items()):
        if name not in needed:
            continue
        given = replace(step, operation=None) if _is_wide(sheet, step) else step
        kept[name] = given
        needed.update(() if given.operation is None else given.operation.operands)
    in_order = {name: kept[name] for name in sheet.steps if name in kept}
    if in_order["V"].operation is None:  # then only the output reads it, column by column
        for name in ("V", "output"):
            in_order[name] = _first_columns(in_order[name])
    return replace(sheet, steps=in_order)


def _is_wide(sheet: Sheet, step: SheetStep) -> bool:
    operation = step.operation
    terms = sheet.steps[operation.operands[0]].values.shape[1] if isinstance(operation, Product) else 0
    return terms > MOST_TERMS or (step.name not in ("weights", "output") and step.values.shape[1] > MOST_TERMS)


def _first_columns(step: SheetStep) -> SheetStep:
    return replace(step, columns=step.columns[:MOST_COLUMNS], values=step.values[:, :MOST_COLUMNS])
