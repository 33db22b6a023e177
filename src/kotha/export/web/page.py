"""The page as one file: styles, script and data inside it, and a policy that forbids the browser everything else.

Script and styles were built ahead (``studio/static/single``); each is allowed by its hash alone. The worker is made
from the script itself (``blob:``), its kernel is WebAssembly that the script assembles, and nothing is ever fetched.
"""

import base64
import hashlib
from typing import Any

from kotha.files import as_json
from kotha.page import escape
from kotha.studio.files import SINGLE, STATIC, words


def whole_page(description: dict[str, Any], squeezed: bytes) -> str:
    """The file's text; ``squeezed`` are the weights."""
    script, style = (_built(f"model.{ending}") for ending in ("js", "css"))
    before = _as_script((STATIC / "before.js").read_text(encoding="utf-8"))
    policy = "; ".join(
        (
            "default-src 'none'",
            f"script-src {_hash(before)} {_hash(script)} 'wasm-unsafe-eval'",
            f"style-src {_hash(style)}",
            "font-src data:",
            "worker-src blob:",
            "base-uri 'none'",
            "form-action 'none'",
        )
    )
    told = as_json(description).replace("<", "\\u003c")
    return "\n".join(
        (
            '<!doctype html>\n<html lang="bn">\n<head>\n<meta charset="utf-8">',
            f'<meta http-equiv="Content-Security-Policy" content="{policy}">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            '<meta name="color-scheme" content="light dark">',
            f"<title>{escape(description['name'])} · কথা</title>",
            f"<style>{style}</style>\n<script>{before}</script>\n</head>\n<body>",
            f'<div id="studio"></div>\n<noscript>{_without_script(description)}</noscript>',
            f'<script type="application/json" id="description">{told}</script>',
            f"<script>{script}</script>",
            f'<script type="text/plain" id="weights">{base64.b64encode(squeezed).decode()}</script>',
            "</body>\n</html>\n",
        )
    )


def _built(name: str) -> str:
    text = (SINGLE / name).read_text(encoding="utf-8")
    return _as_script(text) if name.endswith(".js") else text.replace("</", "<\\/")


def _as_script(text: str) -> str:
    """A script that no string in it ends early."""
    return text.replace("</script", "<\\/script").replace("<!--", "<\\!--")


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


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
