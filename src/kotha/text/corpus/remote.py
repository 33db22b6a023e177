"""Files that lie elsewhere, read there: ``https://``, ``s3://``, ``gs://``, ``hdfs://``, by address.

fsspec reads them, by whichever package knows the scheme and with the credentials that package finds for itself. http(s)
is read by the standard library (``http_file.py``): fsspec's own reader needs aiohttp. An address never holds a password
here, and what a message tells of it ends before its query, where keys of signed addresses stand.
"""

import glob
import io
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, BinaryIO
from urllib.parse import urlsplit
from urllib.request import url2pathname

from kotha.errors import CorpusError, UsageError, nearest
from kotha.i18n.message import Message
from kotha.text.corpus.http_file import HttpFile
from kotha.text.corpus.problems import foreign

# What has to be installed for a scheme; nothing where it is here already.
SCHEMES = {"file": "", "http": "", "https": "", "memory": "", "s3": "s3fs", "gs": "gcsfs", "hdfs": "pyarrow"}
_ADDRESS = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://")
_MOST_FILES = 1_000_000
_BUFFER = 1 << 20


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
    scheme = url.partition("://")[0].lower()
    if scheme not in SCHEMES:
        raise UsageError(
            "{address}: files are not read by {scheme}://{nearest}",
            address=told_address(url),
            scheme=scheme,
            nearest=nearest(scheme, SCHEMES),
        )
    if "::" in url and scheme not in ("http", "https"):  # to fsspec, one address within another
        raise UsageError(
            "{address}: an address within an address (::) is not read; give one alone", address=told_address(url)
        )
    if "@" in url.partition("://")[2].partition("/")[0]:
        raise UsageError(
            "{address}: an address holds no name or password here; leave out what is before @",
            address=told_address(url),
        )
    return scheme


def local_path(url: str) -> str:
    """The path that a ``file://`` address means."""
    parts = urlsplit(url)
    if parts.netloc not in ("", "localhost"):
        raise UsageError(
            "{address}: a file of this machine is file:///PATH, with three strokes", address=told_address(url)
        )
    return url2pathname(parts.path)


def list_remote(url: str) -> list[tuple[str, int | None]]:
    """Address and size of each file behind an address: itself, or those within a folder or that match a glob, sorted.

    Where there is no such thing, a FileNotFoundError; http knows no folders and no globs.
    """
    scheme = scheme_of(url)
    if scheme in ("http", "https"):
        with HttpFile(url) as file:
            return [(url, file.size)]
    with _in_our_words(url):
        files, path = _system(url)
        if glob.has_magic(path):
            found = files.glob(path, detail=True)
        elif files.isdir(path):
            found = files.find(path, detail=True)
        else:
            return [(url, files.info(path).get("size"))]
    if len(found) > _MOST_FILES:
        raise CorpusError(
            "{address}: more than {most:,} files; name some of its folders", address=told_address(url), most=_MOST_FILES
        )
    start = f"{scheme}://" + (urlsplit(url).netloc if scheme == "hdfs" else "")  # others have it in each file's name
    return [(start + name, about.get("size")) for name, about in sorted(found.items()) if about["type"] == "file"]


def open_remote(url: str) -> BinaryIO:
    """A file that lies elsewhere, to read."""
    if scheme_of(url) in ("http", "https"):
        return io.BufferedReader(HttpFile(url), _BUFFER)
    with _in_our_words(url):
        files, path = _system(url)
        opened: BinaryIO = files.open(path, "rb")
        return opened


def _system(url: str) -> tuple[Any, str]:
    """The file system of an address, and the path that it has there."""
    scheme = scheme_of(url)
    from fsspec.core import url_to_fs  # here, so that a corpus on this machine needs no file system of others

    try:
        files, path = url_to_fs(url)
    except ImportError as error:
        raise CorpusError(
            "{scheme}:// needs {package}: pip install {package}", scheme=scheme, package=SCHEMES[scheme]
        ) from error
    return files, str(path)


@contextmanager
def _in_our_words(url: str) -> Iterator[None]:
    """Each package has errors of its own, whose texts may hold anything; of those only the kind is told."""
    try:
        yield
    except (FileNotFoundError, CorpusError):
        raise
    except Exception as error:
        raise OSError(None, Message("{scheme}: {why}", scheme=url.partition("://")[0], why=foreign(error))) from error
