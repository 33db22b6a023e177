"""What the page tells of its model: figures that are known, and the card that it came with."""

import re
from pathlib import Path
from typing import Any

from kotha.artifacts.model_folder import Bundle
from kotha.artifacts.run_folder import mapping
from kotha.export.card import About


def describe_card(bundle: Bundle, about: About, license: str | None) -> dict[str, Any]:
    """The card, ready for JSON; None where something is not known."""
    assert bundle.tokenizer is not None, "a page has a tokenizer"
    bits, read = about.summary.get("bits_per_byte"), about.summary.get("tokens")
    data = mapping(about.config, "data").get("path")
    return {
        "parameters": sum(parameter.numel() for parameter in bundle.model.parameters()),
        "tokenizer": bundle.tokenizer.kind,
        "license": license,
        "bits_per_byte": bits if isinstance(bits, float) else stated_bits_per_byte(about.own_card),
        "tokens_read": read if isinstance(read, int) else None,
        "data": Path(data).name if isinstance(data, str) else stated_sources(about.own_card),
        "own": about.own_card,
    }


def stated_sources(markdown: str) -> str | None:
    """The sources that a card's table of them names.

    >>> stated_sources("| source | bytes |\\n|---|---|\\n| stories | 12 |\\n| news | 30 |")
    'stories; news'
    """
    table = re.search(r"^\| source \|[^\n]*\n\|[-| :]+\|\n((?:\|[^\n]*(?:\n|\Z))+)", markdown, re.MULTILINE)
    return None if table is None else "; ".join(row.split("|")[1].strip() for row in table[1].splitlines())


def stated_bits_per_byte(markdown: str) -> float | None:
    """The first row's bits per byte in a card's table of scores, which is that of all held-out text.

    >>> stated_bits_per_byte("| held-out | bits per byte |\\n|---|---|\\n| all of it | 0.324 | 0.860 |")
    0.324
    """
    table = re.search(r"^\|([^\n]*\bbits per byte\b[^\n]*)\|\n\|[-| :]+\|\n\|([^\n]*)\|", markdown, re.MULTILINE)
    if table is None:
        return None
    heads, cells = ([cell.strip() for cell in row.split("|")] for row in (table[1], table[2]))
    place = heads.index("bits per byte") if "bits per byte" in heads else len(cells)
    try:
        return float(cells[place])
    except (IndexError, ValueError):
        return None
