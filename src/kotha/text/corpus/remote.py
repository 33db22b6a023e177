"""Remote files, streamed by URL: ``https://``, ``s3://``, ``gs://``, ``hdfs://``.

fsspec reads them with a package for each scheme, which finds credentials on its own. http(s) is read sequentially with
the standard library, because fsspec's reader needs aiohttp; a response shorter than its Content-Length is an error.
Connections time out. Redirects are followed only to http(s), and from https only to https.

A URL must not contain a password. Messages omit the query, because it contains the keys of signed URLs.
"""

import glob
import io
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, BinaryIO
from urllib.error import HTTPError, URLError
from urllib.parse import quote, urlsplit
from urllib.request import HTTPRedirectHandler, Request, build_opener

from kotha.errors import CorpusError, InstallCommand, UsageError, nearest
from kotha.i18n.message import Message
from kotha.text.corpus.problems import foreign

# The package to install for each scheme; empty if none is needed.
SCHEMES = {"http": "", "https": "", "memory": "", "s3": "s3fs", "gs": "gcsfs", "hdfs": "pyarrow"}
_WEB = ("http", "https")
_ADDRESS = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://")
_BUFFER = 1 << 20
_SECONDS = 30
_SAFE = "/%:@!$&'()*+,;=~?#[]"


def is_remote(path: object) -> bool:
    """Return whether a path is a URL.

    >>> is_remote("s3://bucket/news.jsonl"), is_remote("news.jsonl"), is_remote("hf:owner/name")
    (True, False, False)
    """
    return _ADDRESS.match(str(path)) is not None


def redacted_address(url: str) -> str:
    """Remove credentials and query from a URL, for use in messages; other names are unchanged.

    >>> redacted_address("https://example.org/a.txt?key=secret")
    'https://example.org/a.txt'
    """
    if not is_remote(url):
        return url
    scheme, _, rest = url.partition("://")
    host, slash, path = re.split(r"[?#]", rest, maxsplit=1)[0].partition("/")
    return f"{scheme}://{host.rpartition('@')[2]}{slash}{path}"


def scheme_of(url: str) -> str:
    """Return the scheme of a URL; raise a UsageError if the scheme is not supported."""
    scheme, _, rest = url.partition("://")
    scheme, address = scheme.lower(), redacted_address(url)
    if scheme not in SCHEMES:
        raise UsageError(
            "{address}: files cannot be read over {scheme}://{nearest}",
            address=address,
            scheme=scheme,
            nearest=nearest(scheme, SCHEMES),
        )
    if "::" in url and scheme not in _WEB:  # fsspec's syntax for chained URLs
        raise UsageError("{address}: chained URLs (::) are not supported; use a single URL", address=address)
    if "@" in rest.partition("/")[0]:
        raise UsageError(
            "{address}: a URL must not contain a user name or password; remove the part before @", address=address
        )
    return scheme


def list_remote(url: str) -> dict[str, int | None]:
    """Return the URL and size of the file at a URL, or of all files in a folder or matching a glob, sorted.

    Raises a FileNotFoundError if there is no such file. Folders and globs do not work over http(s).
    """
    scheme = scheme_of(url)
    if scheme in _WEB:
        with HttpFile(url) as file:
            return {url: file.size}
    with _file_system(url) as (files, path):
        if glob.has_magic(path):
            found = files.glob(path, detail=True)
        elif files.isdir(path):
            found = files.find(path, detail=True)
        else:
            return {url: files.info(path).get("size")}
    start = f"{scheme}://" + (
        urlsplit(url).netloc if scheme == "hdfs" else ""
    )  # with other schemes, the host is part of each file name
    return {start + name: about.get("size") for name, about in sorted(found.items()) if about["type"] == "file"}


def open_remote(url: str) -> BinaryIO:
    """Open a remote file for reading."""
    if scheme_of(url) in _WEB:
        return io.BufferedReader(HttpFile(url), _BUFFER)
    with _file_system(url) as (files, path):
        opened: BinaryIO = files.open(path, "rb")
        return opened


@contextmanager
def _file_system(url: str) -> Iterator[tuple[Any, str]]:
    """Yield the file system of a URL and the path in it.

    Error messages of these packages could contain secrets, so only the error type is reported.
    """
    from fsspec.core import url_to_fs  # imported here, so that local files do not need fsspec

    scheme = scheme_of(url)
    try:
        yield url_to_fs(url)
    except FileNotFoundError:
        raise
    except ImportError as error:
        raise CorpusError(
            "{scheme}:// needs {package}; install it with: {command}",
            scheme=scheme,
            package=SCHEMES[scheme],
            command=InstallCommand("", SCHEMES[scheme]),
        ) from error
    except Exception as error:
        raise OSError(None, Message("{scheme}: {why}", scheme=scheme, why=foreign(error))) from error


class HttpFile(io.RawIOBase):
    """A sequential reader of an http(s) URL; ``size`` is its Content-Length."""

    _response: Any = None

    def __init__(self, url: str, *, seconds: float = _SECONDS) -> None:
        super().__init__()
        request = Request(quote(url, safe=_SAFE), headers={"Accept-Encoding": "identity", "User-Agent": "kotha"})
        try:
            self._response = build_opener(WebRedirectHandler).open(request, timeout=seconds)
        except HTTPError as error:
            error.close()
            if error.code == 404:
                raise FileNotFoundError(None, Message("the server has no such file")) from None
            raise OSError(None, Message("the server returned HTTP {code}", code=error.code)) from None
        except URLError as error:
            raise OSError(None, str(getattr(error.reason, "strerror", None) or error.reason)) from None
        length = self._response.headers.get("Content-Length", "")
        if not length.isdecimal():
            self.close()
            raise OSError(None, Message("the server does not send the file's length; download the file first"))
        self.size = self._left = int(length)

    def readable(self) -> bool:
        """Return True."""
        return True

    def readinto(self, buffer: Any, /) -> int:
        """Read the available bytes into a buffer; raise an OSError if the response ends early."""
        count = int(self._response.readinto(buffer))
        self._left -= count
        if not count and self._left:
            reason = Message(
                "the server closed the connection at byte {at:,} of {size:,}", at=self.size - self._left, size=self.size
            )
            raise OSError(None, reason)
        return count

    def close(self) -> None:
        """Close the connection."""
        if self._response is not None:
            self._response.close()
        super().close()


class WebRedirectHandler(HTTPRedirectHandler):
    """Restricts redirects."""

    max_redirections = 5

    def redirect_request(self, req: Request, fp: Any, code: int, msg: str, headers: Any, newurl: str) -> Request | None:
        """Follow redirects only to http(s), and from https only to https."""
        if urlsplit(newurl).scheme not in (_WEB if req.type == "http" else ("https",)):
            raise OSError(None, Message("the server redirects to a URL that is not allowed"))
        return super().redirect_request(req, fp, code, msg, headers, newurl)
