"""Single-file pages: one HTML file with styles, script and data, and a strict content security policy.

Scripts and styles are prebuilt (``static/single``) and allowed only by hash, so that text in the data cannot run as a
script and nothing is fetched. The pages use the studio's components (``web/src/pages``), but their data comes from the
file instead of a server.
"""

import base64
import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, fields, is_dataclass
from functools import partial
from typing import Any

from kotha.i18n.catalogue import catalogue, to_json
from kotha.i18n.message import Message, Text
from kotha.i18n.numbers import Language
from kotha.report.built import SINGLE, STATIC, words
from kotha.report.page import as_script, escape, page_language


@dataclass(frozen=True)
class SinglePage:
    """The contents of a single-file page."""

    built: str  # name of its script and styles in ``static/single``
    title: str
    data: Any  # ready for JSON
    without_script: str  # markup for browsers without scripts
    language: str = field(default_factory=page_language)  # initial language
    scripts: str = ""  # additional script sources of the policy
    rules: tuple[str, ...] = ()  # additional directives of the policy
    after: str = ""  # markup after the script

    def html(self) -> str:
        """Return the HTML."""
        script, style = (_built(f"{self.built}.{ending}") for ending in ("js", "css"))
        before = _safe_script((STATIC / "before.js").read_text(encoding="utf-8"))
        policy = "; ".join(
            (
                "default-src 'none'",
                f"script-src {_hash(before)} {_hash(script)}{self.scripts and ' ' + self.scripts}",
                f"style-src {_hash(style)}",
                "font-src data:",
                *self.rules,
                "base-uri 'none'",
                "form-action 'none'",
            )
        )
        return "\n".join(
            (
                f'<!doctype html>\n<html lang="{self.language}">\n<head>\n<meta charset="utf-8">',
                f'<meta http-equiv="Content-Security-Policy" content="{policy}">',
                '<meta name="viewport" content="width=device-width, initial-scale=1">',
                '<meta name="color-scheme" content="light dark">',
                f"<title>{escape(self.title)} · কথা</title>",
                f"<style>{style}</style>\n<script>{before}</script>\n</head>\n<body>",
                f'<div id="studio"></div>\n<noscript>{self.without_script}</noscript>',
                f'<script type="application/json" id="data">{as_script(self.data)}</script>',
                f"<script>{script}</script>{self.after}",
                "</body>\n</html>\n",
            )
        )


def single_page(
    built: str,
    kind: str,
    title: Text,
    data: Any,
    remarks: Sequence[Text] = (),
    *,
    made_by: str = "",
    language: Language | None = None,
) -> str:
    """Return an offline page; ``kind`` selects the component that shows the data, ``made_by`` names the command.

    ``built`` selects one of several scripts, so that a page contains only the code that it needs.
    """
    noscript = words("views")["noscript"]
    without = f"<h1>{escape(str(title))}</h1>" + "".join(f"<p>{escape(noscript[each])}</p>" for each in ("bn", "en"))
    content = _plain({"kind": kind, "title": title, "remarks": remarks, "made_by": made_by, "data": data})
    bangla = {each: catalogue("bn")[each] for each in _templates(content) if each in catalogue("bn")}
    return SinglePage(built, str(title), {**content, "bangla": bangla}, without, language or page_language()).html()


def _plain(value: Any) -> Any:
    """Convert a page's data for JSON: messages to templates and values, blocks to dicts with their kind."""
    if isinstance(value, Message):
        return to_json(value)
    if is_dataclass(value):
        parts = {each.name: getattr(value, each.name) for each in fields(value)}
        if "marks" in parts:  # of a table: keys are (row, column)
            parts["marks"] = [[*cell, mark] for cell, mark in parts["marks"].items()]
        value = {"kind": type(value).__name__.lower(), **parts}
    if isinstance(value, dict):
        return {name: _plain(each) for name, each in value.items()}
    return [_plain(each) for each in value] if isinstance(value, list | tuple) else value


def _templates(data: Any) -> Iterator[str]:
    """Yield the templates of all messages in a page's data, including nested ones."""
    if isinstance(data, dict):
        if "template" in data:
            yield data["template"]
        for each in data.values():
            yield from _templates(each)
    elif isinstance(data, list | tuple):
        for each in data:
            yield from _templates(each)


view_page = partial(single_page, "views")  # views inside a model
report_page = partial(single_page, "reports")  # evaluation results
training_page = partial(single_page, "training")  # plans and training runs, with curves
sheet_page = partial(single_page, "sheet")  # worksheets, with grading and hints
document_page = partial(single_page, "document", "document")  # documents (``report/document.py``)


def _built(name: str) -> str:
    text = (SINGLE / name).read_text(encoding="utf-8")
    return _safe_script(text) if name.endswith(".js") else text.replace("</", "<\\/")


def _safe_script(text: str) -> str:
    """Escape sequences that would end a script element."""
    return text.replace("</script", "<\\/script").replace("<!--", "<\\!--")


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
