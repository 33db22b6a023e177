"""The studio's built files, and its texts."""

import json
from functools import cache
from pathlib import Path

from kotha.storage.status import walk

FOLDER = Path(__file__).parent / "studio"
STATIC, WORDS = FOLDER / "static", FOLDER / "words"
SINGLE = STATIC / "single"  # scripts and styles of single-file pages; not served
_KINDS = {
    ".css": "text/css; charset=utf-8",
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
    ".wasm": "application/wasm",
    ".woff2": "font/woff2",
}


@cache
def pages() -> dict[str, tuple[bytes, str]]:
    """The content and media type of each file that the server serves, by path. No other files are served."""
    found = {
        f"/{path.relative_to(STATIC).as_posix()}": (path.read_bytes(), _KINDS[path.suffix])
        for path in walk(STATIC)
        if path.suffix in _KINDS and not path.is_relative_to(SINGLE)
    }
    if "/index.html" in found:
        found["/"] = found.pop("/index.html")
    return found


@cache
def words(room: str) -> dict[str, dict[str, str]]:
    """The texts for one part of the studio by key, each in English (``en``) and Bangla (``bn``)."""
    found: dict[str, dict[str, str]] = json.loads((WORDS / f"{room}.json").read_text(encoding="utf-8"))
    return found
