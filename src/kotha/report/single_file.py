"""A page of the studio as one file: styles, script and data inside it, and a policy that forbids the browser all else.

Scripts and styles were built ahead (``static/single``); each is allowed by its hash alone, so that nothing a text says
can run, and nothing is ever fetched. ``view_page`` is what most commands write: the same components that the studio
draws with (``web/src/pages/views``), given their data here instead of by a server.
"""

import base64
import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from kotha.i18n.message import Text
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


def view_page(
    kind: str, title: Text, data: dict[str, Any], remarks: Sequence[Text] = (), *, made_by: str, language: str = "bn"
) -> str:
    """One offline page of a finding: its ``kind`` says which component shows the data, ``made_by`` which command."""
    return _page("views", kind, title, data, remarks, made_by, language)


def report_page(
    kind: str, title: Text, data: dict[str, Any], remarks: Sequence[Text] = (), *, made_by: str, language: str = "bn"
) -> str:
    """The same of what was measured; its script is another, so that no page carries what it does not show."""
    return _page("reports", kind, title, data, remarks, made_by, language)


def training_page(
    kind: str, title: Text, data: dict[str, Any], remarks: Sequence[Text] = (), *, made_by: str, language: str = "bn"
) -> str:
    """The same of a training, before it or after: its script knows curves."""
    return _page("training", kind, title, data, remarks, made_by, language)


def sheet_page(kind: str, title: str, data: dict[str, Any], *, made_by: str, language: str = "bn") -> str:
    """The same of a sheet to work on by hand: its script grades and hints."""
    return _page("sheet", kind, title, data, (), made_by, language)


def document_page(title: str, data: dict[str, Any], language: str) -> str:
    """The same of a document (``report/document.py``): its script shows blocks of any kind."""
    return _page("document", "document", title, data, (), "", language)


def _page(
    built: str, kind: str, title: Text, data: dict[str, Any], remarks: Sequence[Text], made_by: str, language: str
) -> str:
    said = words("views")["noscript"]
    without = f"<h1>{escape(str(title))}</h1>" + "".join(f"<p>{escape(said[each])}</p>" for each in ("bn", "en"))
    told = {"kind": kind, "title": title, "remarks": list(remarks), "made_by": made_by, "data": data}
    return SinglePage(built, str(title), told, without, language).html()


def _built(name: str) -> str:
    text = (SINGLE / name).read_text(encoding="utf-8")
    return _safe_script(text) if name.endswith(".js") else text.replace("</", "<\\/")


def _safe_script(text: str) -> str:
    """A script that no string in it ends early."""
    return text.replace("</script", "<\\/script").replace("<!--", "<\\!--")


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
