"""The studio at the server's address (``/``): a route for each of its files; what is not among them is not found."""

from fastapi import APIRouter, Request, Response

from kotha.report.built import pages

# Names of built files change with what is in them, so a browser need not ask for one again.
_NAMED_BY_CONTENT = "/studio/"
_KEPT = "public, max-age=31536000, immutable"

router = APIRouter(include_in_schema=False)


async def page(request: Request) -> Response:
    """One file of the studio."""
    path = request.url.path
    content, kind = pages()[path]
    kept = _KEPT if path.startswith(_NAMED_BY_CONTENT) else "no-cache"
    return Response(content, media_type=kind, headers={"cache-control": kept})


for path in pages():
    router.add_api_route(path, page, methods=["GET", "HEAD"])
