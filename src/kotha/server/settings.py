"""Server settings: address, key and limits."""

import ipaddress
import stat
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from kotha.errors import KothaError, UsageError
from kotha.i18n.message import Option
from kotha.i18n.numbers import Language
from kotha.storage import bundled
from kotha.storage.status import exists

if TYPE_CHECKING:  # torch takes seconds to import, and invalid options are rejected before that
    from kotha.generation.weights import Weights

LOOPBACK = ("localhost", "127.0.0.1", "::1")
# Shorter keys could be guessed.
_SHORTEST_KEY = 16
_LONGEST_KEY_FILE = 4096


@dataclass(frozen=True, kw_only=True)
class Limits:
    """Limits on the size and number of requests; a request that exceeds a limit is rejected."""

    body_bytes: int = 2 << 20
    file_bytes: int = 64 << 20  # size of an uploaded file
    files: int = 1000  # number of stored uploads
    files_bytes: int = 1 << 30  # total size of the stored uploads
    file_rest_seconds: float = 600.0  # age at which an upload that no job needs may be removed
    jobs: int = 1000  # number of stored jobs, with their output
    body_seconds: float = 30.0  # time to receive the headers of a request, and again to receive its body
    connections: int = 1000  # open connections; above it, the one that has waited longest for its client is closed
    connections_for_one: int = 500  # open connections of one client
    unread_bytes: int = 64 << 20  # of responses that clients have not read; above it, the oldest are aborted
    prompt_characters: int = 400_000  # total length of the prompts of a request
    prompts: int = 64  # prompts per request
    choices: int = 64  # texts per request: prompts times n
    positions: int = 256  # tokens of a text, or patches of an image, to inspect
    numbers: int = 1_000_000  # numbers in a response, about ten megabytes
    image_bytes: int = 1 << 20
    image_pixels: int = 4 << 20
    seconds: float = 600.0  # time limit of a request
    rows: int = 32  # texts generated at the same time
    waiting: int = 512  # texts that wait for a row
    waiting_for_one: int = 128  # texts of one client that wait
    model_bytes: int = 8 << 30  # size of the loaded models; above it, the least recently used is unloaded


@dataclass(frozen=True, kw_only=True)
class ServeSettings:
    """A server's settings."""

    host: str = "127.0.0.1"
    port: int = 8000
    other_ports: tuple[int, ...] = ()  # tried in order if the port is in use
    names: tuple[str, ...] = ()  # additional host names of the server
    key: str | None = field(default=None, repr=False)  # API key; never logged
    limits: Limits = Limits()
    weights: "Weights | None" = None  # data type for generation; None: as stored
    jobs: Path | None = None  # folder for jobs and uploads; None: no jobs
    indexes: tuple[str, ...] = ()  # index files; clients select them by name
    book: Path | None = None  # folder of the built book; None: not served
    language: Language | None = None  # initial language of the studio; None: that of the browser
    log: bool = False  # one line for each request
    preload: bool = False  # load the first model at start

    def __post_init__(self) -> None:
        if not 0 <= self.port <= 65_535:
            raise UsageError(
                "{port} is out of range; use 1 to 65535, or 0 for any free port", port=Option("port", self.port)
            )
        if not self.is_loopback and self.key is None:
            raise UsageError(
                "{host} can be reached from other machines, so the server needs a key; give a file that "
                "contains one with {key_file}",
                host=Option("host", self.host),
                key_file=Option("key_file", ...),
            )

    @property
    def is_loopback(self) -> bool:
        """Whether the server is reachable only from this machine."""
        if self.host in LOOPBACK:
            return True
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return False


def model_paths(models: Iterable[str]) -> dict[str, Path]:
    """Return the folders of the given models by name; raise an error if one does not exist or two have one name."""
    paths: dict[str, Path] = {}
    for given in models:
        path = bundled.model_path(given)
        name = bundled.NAME if path == bundled.FOLDER else path.resolve().name
        if name in paths and paths[name].resolve() != path.resolve():
            raise UsageError(
                "two models are named {name}; rename a folder, since clients select models by name", name=name
            )
        if not exists(path):
            raise KothaError(
                "{place} not found; specify a run folder, a model folder, a Hugging Face folder, or box", place=path
            )
        paths[name] = path
    return paths


def is_open(path: Path) -> bool:
    """Return whether other users on this machine can read a file.

    A readable key file causes only a warning, because container secrets are often readable.
    """
    return bool(path.stat().st_mode & (stat.S_IRGRP | stat.S_IROTH))


def read_key(path: Path) -> str:
    """Return the key in a file, without surrounding white space."""
    try:
        if path.stat().st_size > _LONGEST_KEY_FILE:
            raise UsageError("{path} is too long to be a key", path=path)
        key = path.read_text(encoding="ascii").strip()
    except OSError as error:
        raise UsageError("cannot read the key in {path}: {why}", path=path, why=error.strerror) from error
    except UnicodeDecodeError as error:
        raise UsageError(
            "{path} contains non-ASCII characters, which an HTTP header cannot carry", path=path
        ) from error
    if len(key) < _SHORTEST_KEY or not key.isprintable() or " " in key:
        raise UsageError(
            "the key in {path} must be one word of at least {n} characters; generate one with `python -c "
            "'import secrets; print(secrets.token_urlsafe(32))'`",
            path=path,
            n=_SHORTEST_KEY,
        )
    return key
