"""A file on a web server, as a file: read piece by piece, from any place, and taken up again where a connection breaks.

No more is read than the server said the file has, nobody is waited for without end, and no server can send us on to
anything but the web, nor from https back to http.
"""

import io
from http.client import HTTPException
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.parse import quote, urlsplit
from urllib.request import HTTPRedirectHandler, Request, build_opener

from kotha.i18n.message import Message

_SECONDS = 30
_MOST_BREAKS = 3
_SAFE = "/%:@!$&'()*+,;=~?#[]"


class HttpFile(io.RawIOBase):
    """The bytes at an http(s) address; ``size`` is known once it is open."""

    def __init__(self, url: str, *, seconds: float = _SECONDS) -> None:
        super().__init__()
        self._url, self._seconds = quote(url, safe=_SAFE), seconds
        self._position, self._version = 0, ""
        self._response: Any = None
        self.size = -1
        self._connect()

    def readable(self) -> bool:
        """It is."""
        return True

    def seekable(self) -> bool:
        """It is, where the server gives parts of a file."""
        return True

    def tell(self) -> int:
        """The byte that is read next."""
        return self._position

    def seek(self, offset: int, whence: int = io.SEEK_SET, /) -> int:
        """Go on from another byte; the server is asked when it is read."""
        start = {io.SEEK_SET: 0, io.SEEK_CUR: self._position, io.SEEK_END: self.size}[whence]
        if (to := max(0, start + offset)) != self._position:
            self._position = to
            self._disconnect()
        return to

    def readinto(self, buffer: Any, /) -> int:
        """Read what is there into a buffer; a connection that breaks is made anew."""
        wanted = memoryview(buffer)[: max(0, self.size - self._position)]
        if not wanted:
            return 0
        for attempt in range(_MOST_BREAKS + 1):
            try:
                if self._response is None:
                    self._connect()
                if count := int(self._response.readinto(wanted)):
                    self._position += count
                    return count
            except (TimeoutError, ConnectionError, HTTPException):
                if attempt == _MOST_BREAKS:
                    raise OSError(None, Message("the connection broke {n} times at one place", n=attempt + 1)) from None
            self._disconnect()  # broken, or ended before the file did
        reason = Message("the server ends it at byte {at:,} of {size:,}", at=self._position, size=self.size)
        raise OSError(None, reason)

    def close(self) -> None:
        """Let go of the connection."""
        self._disconnect()
        super().close()

    def _disconnect(self) -> None:
        if self._response is not None:
            self._response.close()
            self._response = None

    def _connect(self) -> None:
        """Ask for the file from our position on."""
        asked = {"Accept-Encoding": "identity", "User-Agent": "kotha"}
        if self._position:
            asked["Range"] = f"bytes={self._position}-"
        try:
            self._response = build_opener(OnlyOnTheWeb).open(Request(self._url, headers=asked), timeout=self._seconds)
        except HTTPError as error:
            error.close()
            if error.code == 404:
                raise FileNotFoundError(None, Message("the server has no such file")) from None
            raise OSError(None, Message("the server answers {code}", code=error.code)) from None
        except URLError as error:
            if isinstance(error.reason, TimeoutError | ConnectionError) and self.size >= 0:
                raise ConnectionError from error  # it was there before: try again
            raise OSError(None, str(getattr(error.reason, "strerror", None) or error.reason)) from None
        self._check(self._response)

    def _check(self, response: Any) -> None:
        headers = response.headers
        version = headers.get("ETag") or headers.get("Last-Modified") or ""
        if self.size < 0:
            length = headers.get("Content-Length", "")
            if not length.isdecimal():
                raise OSError(None, Message("the server does not say how long it is; download it first"))
            self.size, self._version = int(length), version
        elif version != self._version:
            raise OSError(None, Message("it changed on the server while it was read"))
        elif self._position and not headers.get("Content-Range", "").startswith(f"bytes {self._position}-"):
            raise OSError(None, Message("the server gives no part of a file; download it first"))


class OnlyOnTheWeb(HTTPRedirectHandler):
    """Where a server may send us on to."""

    max_redirections = 5

    def redirect_request(self, req: Request, fp: Any, code: int, msg: str, headers: Any, newurl: str) -> Request | None:
        """Follow to http and https alone, and from https to https alone."""
        allowed = ("https",) if req.type == "https" else ("http", "https")
        if urlsplit(newurl).scheme not in allowed:
            raise OSError(None, Message("the server sends on to a place that is not followed"))
        return super().redirect_request(req, fp, code, msg, headers, newurl)
