"""The studio at the server's address: ``/`` and the few files that it is made of."""

from fastapi import APIRouter, Request, Response

from kotha.report.built import pages

# Names of built files change with what is in them, so a browser need not ask for one again.
_NAMED_BY_CONTENT = "/studio/"
_KEPT = "public, max-age=31536000, immutable"


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
