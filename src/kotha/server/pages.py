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


Page = tuple[bytes, str, dict[str, str]]  # a file, its kind, and headers of its own


@cache
def book_pages(folder: Path) -> dict[str, Page]:
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


def _page(path: Path) -> Page:
    content = path.read_bytes()
    scripts = [hashlib.sha256(script).digest() for script in _WRITTEN_IN.findall(content) if path.suffix == ".html"]
    allowed = "".join(f" 'sha256-{base64.b64encode(each).decode()}'" for each in scripts)
    headers = {"cache-control": "no-cache", "content-security-policy": _POLICY.format(scripts=allowed)}
    return content, _KINDS[path.suffix], headers


def studio_pages() -> dict[str, Page]:
    """Every file of the studio by its path."""
    return {
        path: (content, kind, {"cache-control": _KEPT if path.startswith(_NAMED_BY_CONTENT) else "no-cache"})
        for path, (content, kind) in pages().items()
    }


def page_router(book: Path | None) -> APIRouter:
    """A route for each file of the studio, and of the book; what is not among them is not found."""
    router, found = APIRouter(include_in_schema=False), studio_pages() | ({} if book is None else book_pages(book))

    async def page(request: Request) -> Response:
        content, kind, headers = found[request.url.path]
        return Response(content, media_type=kind, headers=headers)

    async def begin() -> Response:
        return RedirectResponse(AT)

    for path in found:
        router.add_api_route(path, page, methods=["GET", "HEAD"])
    if book is not None:
        router.add_api_route(AT.rstrip("/"), begin, methods=["GET", "HEAD"])
    return router
