"""What a server is told: which models, at which address, and how much anyone may ask of it."""

import ipaddress
import stat
from dataclasses import dataclass, field
from pathlib import Path

from kotha.errors import UsageError
from kotha.generation.weights import Weights
from kotha.i18n.message import Option

LOOPBACK = ("localhost", "127.0.0.1", "::1")
# A key that can be guessed keeps nobody out.
_SHORTEST_KEY = 16
_LONGEST_KEY_FILE = 4096


@dataclass(frozen=True, kw_only=True)
class Limits:
    """How much one request may be, and how many there may be; what is beyond is refused in words."""

    body_bytes: int = 2 << 20
    file_bytes: int = 64 << 20  # of a text that is brought to be worked with
    files: int = 1000  # kept of those that were brought
    files_bytes: int = 1 << 30  # that they may take together
    file_rest_seconds: float = 600.0  # … before one that no job names may go
    jobs: int = 1000  # kept, with what came of them
    body_seconds: float = 30.0  # within which a request must have arrived; its headers, and then the rest
    connections: int = 1000  # open at a time; who comes then waits
    prompt_characters: int = 400_000  # of all prompts of a request; longer than any context, and quickly encoded
    prompts: int = 64  # in one request
    choices: int = 64  # texts that one request may ask for: prompts times n
    positions: int = 256  # of a text or an image that is looked into
    numbers: int = 1_000_000  # in one answer: some ten megabytes
    image_bytes: int = 1 << 20
    image_pixels: int = 4 << 20
    seconds: float = 600.0  # for one request, from its place in the batch on
    rows: int = 32  # texts written side by side
    waiting: int = 512  # texts that wait for a row
    waiting_for_one: int = 128  # … of one client
    model_bytes: int = 8 << 30  # that opened models may take together; beyond, the least used is put away


@dataclass(frozen=True, kw_only=True)
class ServeSettings:
    """Where a server listens, who may speak with it, and what it serves."""

    host: str = "127.0.0.1"
    port: int = 8000
    names: tuple[str, ...] = ()  # other names under which it may be addressed
    key: str | None = field(default=None, repr=False)  # what a client must know; never logged, never in an address
    limits: Limits = Limits()
    weights: Weights | None = None  # the engines' own; None: as they are stored
    jobs: Path | None = None  # a folder for work that takes its time; None: none is taken
    indexes: tuple[str, ...] = ()  # index files, asked by their names
    book: Path | None = None  # the folder of the built book; None: it is not served
    log: bool = False  # a line for each request
    opens_ahead: bool = False  # the first model, as the server begins: who comes first need not wait for it

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
        """Whether nobody but this machine reaches it."""
        if self.host in LOOPBACK:
            return True
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return False


def is_open(path: Path) -> bool:
    """Whether others on this machine may read a file; told and not refused, since secrets of containers often are."""
    return bool(path.stat().st_mode & (stat.S_IRGRP | stat.S_IROTH))


def read_key(path: Path) -> str:
    """The key in a file, white space around it aside."""
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
