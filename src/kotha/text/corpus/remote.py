"""Files that lie elsewhere, read there: ``https://``, ``s3://``, ``gs://``, ``hdfs://``, by address.

fsspec reads them, by whichever package knows the scheme and with the credentials that package finds for itself. http(s)
is read by the standard library, since fsspec's own reader needs aiohttp: from beginning to end, and what ends before
the server said is an error. Nobody is waited for without end, and no server can send us on to anything but the web,
nor from https back to http.

An address never holds a password here, and what a message tells of it ends before its query, where keys of signed
addresses stand.
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

from kotha.errors import CorpusError, UsageError, nearest
from kotha.i18n.message import Message
from kotha.text.corpus.problems import foreign

# What has to be installed for a scheme; nothing where it is here already.
SCHEMES = {"http": "", "https": "", "memory": "", "s3": "s3fs", "gs": "gcsfs", "hdfs": "pyarrow"}
_WEB = ("http", "https")
_ADDRESS = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://")
_BUFFER = 1 << 20
_SECONDS = 30
_SAFE = "/%:@!$&'()*+,;=~?#[]"


def is_remote(path: object) -> bool:
    """Whether a path is an address.

    >>> is_remote("s3://bucket/news.jsonl"), is_remote("news.jsonl"), is_remote("hf:owner/name")
    (True, False, False)
    """
    return _ADDRESS.match(str(path)) is not None


def told_address(url: str) -> str:
    """An address as messages tell it; another name is left as it is.

    >>> told_address("https://example.org/a.txt?key=secret")
    'https://example.org/a.txt'
    """
    if not is_remote(url):
        return url
    scheme, _, rest = url.partition("://")
    host, slash, path = re.split(r"[?#]", rest, maxsplit=1)[0].partition("/")
    return f"{scheme}://{host.rpartition('@')[2]}{slash}{path}"


def scheme_of(url: str) -> str:
    """The scheme of an address that can be read; a UsageError for any other."""
    scheme, _, rest = url.partition("://")
    scheme, address = scheme.lower(), told_address(url)
    if scheme not in SCHEMES:
        raise UsageError(
            "{address}: files cannot be read over {scheme}://{nearest}",
            address=address,
            scheme=scheme,
            nearest=nearest(scheme, SCHEMES),
        )
    if "::" in url and scheme not in _WEB:  # to fsspec, one address within another
        raise UsageError("{address}: chained addresses (::) are not supported; give a single one", address=address)
    if "@" in rest.partition("/")[0]:
        raise UsageError(
            "{address}: an address cannot contain a user name or password; remove the part before @", address=address
        )
    return scheme


def list_remote(url: str) -> dict[str, int | None]:
    """Address and size of each file behind an address: itself, or those within a folder or that match a glob, sorted.

    Where there is no such thing, a FileNotFoundError; http knows no folders and no globs.
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
    start = f"{scheme}://" + (urlsplit(url).netloc if scheme == "hdfs" else "")  # others have it in each file's name
    return {start + name: about.get("size") for name, about in sorted(found.items()) if about["type"] == "file"}


def open_remote(url: str) -> BinaryIO:
    """A file that lies elsewhere, to read."""
    if scheme_of(url) in _WEB:
        return io.BufferedReader(HttpFile(url), _BUFFER)
    with _file_system(url) as (files, path):
        opened: BinaryIO = files.open(path, "rb")
        return opened


@contextmanager
def _file_system(url: str) -> Iterator[tuple[Any, str]]:
    """The file system of an address, and the path that it has there.

    Each package has errors of its own, whose texts may hold anything; of those only the kind is told.
    """
    from fsspec.core import url_to_fs  # here, so that a corpus on this machine needs no file system of others

    scheme = scheme_of(url)
    try:
        yield url_to_fs(url)
    except FileNotFoundError:
        raise
    except ImportError as error:
        raise CorpusError(
            "{scheme}:// needs {package}: pip install {package}", scheme=scheme, package=SCHEMES[scheme]
        ) from error
    except Exception as error:
        raise OSError(None, Message("{scheme}: {why}", scheme=scheme, why=foreign(error))) from error


class HttpFile(io.RawIOBase):
    """The bytes at an http(s) address, from the first to the last; ``size`` is what the server announces."""

    _response: Any = None

    def __init__(self, url: str, *, seconds: float = _SECONDS) -> None:
        super().__init__()
        request = Request(quote(url, safe=_SAFE), headers={"Accept-Encoding": "identity", "User-Agent": "kotha"})
        try:
            self._response = build_opener(OnlyOnTheWeb).open(request, timeout=seconds)
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
        """It is."""
        return True

    def readinto(self, buffer: Any, /) -> int:
        """Read what is there into a buffer."""
        count = int(self._response.readinto(buffer))
        self._left -= count
        if not count and self._left:
            reason = Message(
                "the server closed the connection at byte {at:,} of {size:,}", at=self.size - self._left, size=self.size
            )
            raise OSError(None, reason)
        return count

    def close(self) -> None:
        """Let go of the connection."""
        if self._response is not None:
            self._response.close()
        super().close()


class OnlyOnTheWeb(HTTPRedirectHandler):
    """Where a server may send us on to."""

    max_redirections = 5

    def redirect_request(self, req: Request, fp: Any, code: int, msg: str, headers: Any, newurl: str) -> Request | None:
        """Follow to http and https alone, and from https to https alone."""
        if urlsplit(newurl).scheme not in (_WEB if req.type == "http" else ("https",)):
            raise OSError(None, Message("the server redirects to an address that is not allowed"))
        return super().redirect_request(req, fp, code, msg, headers, newurl)
