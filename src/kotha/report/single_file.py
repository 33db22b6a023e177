"""A page of the studio as one file: styles, script and data inside it, and a policy that forbids the browser all else.

Scripts and styles were built ahead (``static/single``); each is allowed by its hash alone, so that nothing a text says
can run, and nothing is ever fetched. The components are those that the studio draws with (``web/src/pages``), given
their data here instead of by a server.
"""

import base64
import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields, is_dataclass
from functools import partial
from typing import Any

from kotha.i18n.catalogue import catalogue, to_json
from kotha.i18n.message import Message, Text
from kotha.report.built import SINGLE, STATIC, words
from kotha.report.page import as_script, escape


@dataclass(frozen=True)
class SinglePage:
    """What goes into one file."""

    built: str  # which script and styles: their name in ``static/single``
    title: str
    data: Any  # ready for JSON
    without_script: str  # markup for a browser that runs no script
    language: str = "bn"  # until the reader chooses
    scripts: str = ""  # what scripts may do besides
    rules: tuple[str, ...] = ()  # of the policy, besides
    after: str = ""  # markup behind the script: what may come late

    def html(self) -> str:
        """The file's text."""
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
    language: str = "bn",
) -> str:
    """One offline page: its ``kind`` says which component shows the data, ``made_by`` which command made it.

    ``built`` is one of several scripts, so that no page carries what it does not show.
    """
    said = words("views")["noscript"]
    without = f"<h1>{escape(str(title))}</h1>" + "".join(f"<p>{escape(said[each])}</p>" for each in ("bn", "en"))
    told = _plain({"kind": kind, "title": title, "remarks": remarks, "made_by": made_by, "data": data})
    bangla = {each: catalogue("bn")[each] for each in _templates(told) if each in catalogue("bn")}
    return SinglePage(built, str(title), {**told, "bangla": bangla}, without, language).html()


def _plain(value: Any) -> Any:
    """A page's data, ready for JSON: messages as templates and values; a block of a document says which it is."""
    if isinstance(value, Message):
        return to_json(value)
    if is_dataclass(value):
        parts = {each.name: getattr(value, each.name) for each in fields(value)}
        if "marks" in parts:  # of a table, by row and column
            parts["marks"] = [[*place, mark] for place, mark in parts["marks"].items()]
        value = {"kind": type(value).__name__.lower(), **parts}
    if isinstance(value, dict):
        return {name: _plain(each) for name, each in value.items()}
    return [_plain(each) for each in value] if isinstance(value, list | tuple) else value


def _templates(data: Any) -> Iterator[str]:
    """The templates of all messages in a page's data, those inside others among them."""
    if isinstance(data, dict):
        if "template" in data:
            yield data["template"]
        for each in data.values():
            yield from _templates(each)
    elif isinstance(data, list | tuple):
        for each in data:
            yield from _templates(each)


view_page = partial(single_page, "views")  # what was found inside a model
report_page = partial(single_page, "reports")  # what was measured
training_page = partial(single_page, "training")  # a training, before it or after: its script knows curves
sheet_page = partial(single_page, "sheet")  # a sheet to work on by hand: its script grades and hints
document_page = partial(single_page, "document", "document")  # blocks of any kind (``report/document.py``)


def _built(name: str) -> str:
    text = (SINGLE / name).read_text(encoding="utf-8")
    return _safe_script(text) if name.endswith(".js") else text.replace("</", "<\\/")


def _safe_script(text: str) -> str:
    """A script that no string in it ends early."""
    return text.replace("</script", "<\\/script").replace("<!--", "<\\!--")


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
