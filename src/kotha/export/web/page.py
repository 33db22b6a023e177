"""The page as one file: what ``studio.single`` makes of it, with the weights behind the script.

The worker is made from the script itself (``blob:``), its kernel is WebAssembly that the script assembles, and nothing
is ever fetched.
"""

import base64
from typing import Any

from kotha.report.built import words
from kotha.report.page import escape
from kotha.report.single_file import SinglePage


def whole_page(description: dict[str, Any], squeezed: bytes) -> str:
    """The file's text; ``squeezed`` are the weights."""
    return SinglePage(
        built="model",
        title=description["name"],
        data=description,
        without_script=_without_script(description),
        scripts="'wasm-unsafe-eval'",
        rules=("worker-src blob:",),
        after=f'\n<script type="text/plain" id="weights">{base64.b64encode(squeezed).decode()}</script>',
    ).html()


def _without_script(description: dict[str, Any]) -> str:
    """What stands there where a browser runs no script: what the model is, in both languages."""
    said, card, model = words("webmodel"), description["card"], description["model"]
    facts = {
        "card.parameters": f"{card['parameters']:,}",
        "card.layers": model["n_layers"],
        "card.width": model["d_model"],
        "card.context": model["context_length"],
        "card.bits": card["bits_per_byte"],
        "card.license": card["license"],
    }
    rows = "".join(
        f"<tr><th>{escape(said[key]['bn'])} · {escape(said[key]['en'])}</th><td>{escape(str(value))}</td></tr>"
        for key, value in facts.items()
        if value is not None
    )
    sentences = "".join(f"<p>{escape(said['noscript'][language])}</p>" for language in ("bn", "en"))
    return f"<h1>{escape(description['name'])}</h1>{sentences}<table>{rows}</table>"
