"""The pages at the server's address: the studio (``/``), and the book under ``/book/``, a built site.

The book's pages hold a few short scripts of the builder's. They are allowed by their hashes alone, so that the policy
of the other pages (``safety.py``) need not be widened: no other script runs, and nothing is asked of another host.
Styles may be written in, as the builder's search does; nothing that a user says ever stands on these pages.
"""

import base64
import hashlib
import re
from pathlib import Path
from typing import Any

from fastapi import APIRouter, HTTPException, Request, Response
from fastapi.staticfiles import StaticFiles

from kotha.errors import UsageError
from kotha.i18n.message import Option
from kotha.report.built import pages
from kotha.storage.status import is_file

# Names of built files change with what is in them, so a browser need not ask for one again.
_NAMED_BY_CONTENT = "/studio/"
_KEPT = "public, max-age=31536000, immutable"
# What of a book's folder is served.
_KINDS = {".css", ".html", ".ipynb", ".js", ".json", ".png", ".svg", ".webp", ".woff2", ".xml"}
_WRITTEN_IN = re.compile(rb"<script(?![^>]*\bsrc=)[^>]*>(.*?)</script>", re.DOTALL)
_POLICY = (
    "default-src 'none'; script-src 'self'{scripts}; style-src 'self' 'unsafe-inline'; img-src 'self' data:; "
    "font-src 'self'; connect-src 'self'; worker-src 'self'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'"
)

router = APIRouter(include_in_schema=False)


async def page(request: Request) -> Response:
    """One file of the studio."""
    path = request.url.path
    content, kind = pages()[path]
    kept = _KEPT if path.startswith(_NAMED_BY_CONTENT) else "no-cache"
    return Response(content, media_type=kind, headers={"cache-control": kept})


for path in pages():
    router.add_api_route(path, page, methods=["GET", "HEAD"])


class Book(StaticFiles):
    """The files of a built book; links out of its folder are not followed."""

    def __init__(self, folder: Path) -> None:
        if not is_file(folder / "index.html"):
            raise UsageError(
                "{book} contains no index.html; build the book with `make docs`, and give build/book",
                book=Option("book", str(folder)),
            )
        super().__init__(directory=folder, html=True)
        scripts = {script for path in folder.rglob("*.html") for script in _WRITTEN_IN.findall(path.read_bytes())}
        hashes = sorted(base64.b64encode(hashlib.sha256(script).digest()).decode() for script in scripts)
        policy = _POLICY.format(scripts="".join(f" 'sha256-{each}'" for each in hashes))
        self._headers = {"cache-control": "no-cache", "content-security-policy": policy}

    def file_response(self, full_path: Any, *given: Any, **how: Any) -> Response:
        """One file of the book."""
        if Path(full_path).suffix not in _KINDS:
            raise HTTPException(404)
        response = super().file_response(full_path, *given, **how)
        response.headers.update(self._headers)
        return response
