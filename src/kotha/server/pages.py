"""The pages at the server's address: the studio (``/``), and the book under ``/book/``, a built site, read once.

The book's pages hold a few short scripts of the builder's. Each is allowed by its hash alone, so that the policy of
the other pages (``safety.py``) need not be widened: no other script runs, and nothing is asked of another host. Styles
may be written in, as the builder's search does; nothing that a user says ever stands on these pages.
"""

import base64
import hashlib
import re
from functools import cache
from pathlib import Path
from typing import NamedTuple

from fastapi import APIRouter, Request, Response
from fastapi.responses import RedirectResponse

from kotha.errors import UsageError
from kotha.i18n.message import Option
from kotha.report.built import pages
from kotha.storage.status import is_file, is_link, walk

AT = "/book/"
# Names of built files change with what is in them, so a browser need not ask for one again.
_NAMED_BY_CONTENT = "/studio/"
_KEPT = "public, max-age=31536000, immutable"
_KINDS = {
    ".css": "text/css; charset=utf-8",
    ".html": "text/html; charset=utf-8",
    ".ipynb": "application/x-ipynb+json",
    ".js": "text/javascript; charset=utf-8",
    ".json": "application/json",
    ".png": "image/png",
    ".svg": "image/svg+xml",
    ".webp": "image/webp",
    ".woff2": "font/woff2",
    ".xml": "application/xml",
}
_WRITTEN_IN = re.compile(rb"<script(?![^>]*\bsrc=)[^>]*>(.*?)</script>", re.DOTALL)
_POLICY = (
    "default-src 'none'; script-src 'self'{scripts}; style-src 'self' 'unsafe-inline'; img-src 'self' data:; "
    "font-src 'self'; connect-src 'self'; worker-src 'self'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'"
)


class BookPage(NamedTuple):
    """A file of the site."""

    content: bytes
    kind: str
    policy: str


@cache
def book_pages(folder: Path) -> dict[str, BookPage]:
    """Every file of a built book by its path on the server; the first page also by the folder's own."""
    if not is_file(folder / "index.html"):
        raise UsageError(
            "{book} holds no index.html; build it with `make docs`, and name build/book",
            book=Option("book", str(folder)),
        )
    found = {
        AT + path.relative_to(folder).as_posix(): _page(path)
        for path in walk(folder)
        if path.suffix in _KINDS and is_file(path) and not is_link(path)
    }
    found[AT] = found[f"{AT}index.html"]
    return found


def _page(path: Path) -> BookPage:
    content = path.read_bytes()
    scripts = [hashlib.sha256(script).digest() for script in _WRITTEN_IN.findall(content) if path.suffix == ".html"]
    allowed = "".join(f" 'sha256-{base64.b64encode(each).decode()}'" for each in scripts)
    return BookPage(content, _KINDS[path.suffix], _POLICY.format(scripts=allowed))


def book_router(folder: Path) -> APIRouter:
    """A route for each file of the book; what is not among them is not found."""
    router = APIRouter(include_in_schema=False)

    async def page(request: Request) -> Response:
        found = book_pages(folder)[request.url.path]
        headers = {"cache-control": "no-cache", "content-security-policy": found.policy}
        return Response(found.content, media_type=found.kind, headers=headers)

    async def begin() -> Response:
        return RedirectResponse(AT)

    for path in book_pages(folder):
        router.add_api_route(path, page, methods=["GET", "HEAD"])
    router.add_api_route(AT.rstrip("/"), begin, methods=["GET", "HEAD"])
    return router


def studio_router() -> APIRouter:
    """A route for each file of the page; what is not among them is not found."""
    router = APIRouter(include_in_schema=False)

    async def page(request: Request) -> Response:
        content, kind = pages()[request.url.path]
        kept = _KEPT if request.url.path.startswith(_NAMED_BY_CONTENT) else "no-cache"
        return Response(content, media_type=kind, headers={"cache-control": kept})

    for path in pages():
        router.add_api_route(path, page, methods=["GET", "HEAD"])
    return router
