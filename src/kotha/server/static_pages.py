"""Static pages: the studio at ``/``, and the built book at ``/book/``.

The book's pages contain a few inline scripts from the site generator. The content security policy for the book allows
its scripts by hash, so the policy for all other pages (``security.py``) can stay stricter. Inline styles are allowed
because the generator's search needs them. These pages contain no user input and load nothing from other hosts.
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

# The names of these files contain a hash of their contents, so browsers may cache them permanently.
_NAMED_BY_CONTENT = "/studio/"
_CACHED = "public, max-age=31536000, immutable"
# File types in the book that are served.
_KINDS = {".css", ".html", ".ipynb", ".js", ".json", ".png", ".svg", ".webp", ".woff2", ".xml"}
_INLINE_SCRIPT = re.compile(rb"<script(?![^>]*\bsrc=)[^>]*>(.*?)</script>", re.DOTALL)
_LANGUAGE = re.compile(rb'(<html lang=")[a-z]+')
_POLICY = (
    "default-src 'none'; script-src 'self'{scripts}; style-src 'self' 'unsafe-inline'; img-src 'self' data:; "
    "font-src 'self'; connect-src 'self'; worker-src 'self'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'"
)

router = APIRouter(include_in_schema=False)


async def page(request: Request) -> Response:
    """Return one of the studio's files."""
    path = request.url.path
    if path not in pages():
        raise HTTPException(404)
    content, kind = pages()[path]
    headers = {"cache-control": _CACHED if path.startswith(_NAMED_BY_CONTENT) else "no-cache"}
    if kind.startswith("text/html"):  # a choice that the reader made in the page takes precedence
        preferred = request.headers.get("accept-language", "").lower()
        language = request.app.state.kotha.settings.language or ("bn" if preferred.startswith("bn") else "en")
        content = _LANGUAGE.sub(rb"\g<1>" + language.encode(), content, count=1)
        headers["vary"] = "accept-language"
    return Response(content, media_type=kind, headers=headers)


for path in [*(path for path in pages() if not path.startswith(_NAMED_BY_CONTENT)), _NAMED_BY_CONTENT + "{name}"]:
    router.add_api_route(path, page, methods=["GET", "HEAD"])


class Book(StaticFiles):
    """The files in a built book; links that lead out of its folder are not followed."""

    def __init__(self, folder: Path) -> None:
        if not is_file(folder / "index.html"):
            raise UsageError(
                "{book} contains no index.html; build the book with `make docs`, and give build/book",
                book=Option("book", str(folder)),
            )
        super().__init__(directory=folder, html=True)
        scripts = {script for path in folder.rglob("*.html") for script in _INLINE_SCRIPT.findall(path.read_bytes())}
        hashes = sorted(base64.b64encode(hashlib.sha256(script).digest()).decode() for script in scripts)
        policy = _POLICY.format(scripts="".join(f" 'sha256-{each}'" for each in hashes))
        self._headers = {"cache-control": "no-cache", "content-security-policy": policy}

    def file_response(self, full_path: Any, *given: Any, **how: Any) -> Response:
        """Return one of the book's files."""
        if Path(full_path).suffix not in _KINDS:
            raise HTTPException(404)
        response = super().file_response(full_path, *given, **how)
        response.headers.update(self._headers)
        return response
