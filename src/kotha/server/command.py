"""The commands ``kotha serve`` (API and studio) and ``kotha open`` (the studio in a browser)."""

import logging
import os
import sys
import webbrowser
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, Literal
from urllib.parse import urlencode, urlsplit

from cyclopts import Parameter

from kotha.errors import InstallCommand, UsageError, require
from kotha.i18n.catalogue import translate
from kotha.i18n.message import Message
from kotha.i18n.numbers import Language
from kotha.report.page import page_language
from kotha.storage import bundled

# The rooms of the studio, as named in its URLs.
ROOMS = ("write", "look", "hand", "tokens", "design", "train", "compare", "teach")
# Batch rows for `open`: enough for a single user; more rows would cost memory and start-up time.
_ROWS = 8
_SERVE = InstallCommand("serve")
# Ports for `open`, in order of preference; fixed, because a browser stores answers, language and theme per address.
_PORTS = (8000, 8001, 8002, 8003, 0)


def _flag(help: str, **more: Any) -> Parameter:
    return Parameter(help=help, **{"negative": "", **more})


Port = Annotated[int, _flag("Port; 0 selects any free port.")]
InLanguage = Annotated[
    Language | None,
    _flag("English or Bangla.", env_var="KOTHA_LANGUAGE", env_var_split=lambda _, value, delimiter=None: value.split()),
]


def serve(
    *models: Annotated[
        str, _flag("Run, model or Hugging Face folders; clients select them by folder name (default: box).")
    ],
    host: Annotated[
        str, _flag("Address to listen on; an address other than a loopback address requires --key-file.")
    ] = "127.0.0.1",
    port: Port = 8000,
    key_file: Annotated[Path | None, _flag("File with the key that clients must send.")] = None,
    name: Annotated[tuple[str, ...], _flag("Additional host name of this server; may be repeated.")] = (),
    jobs: Annotated[Path | None, _flag("Folder for training and other jobs (default: jobs are disabled).")] = None,
    index: Annotated[tuple[str, ...], _flag("Index file to serve; may be repeated.")] = (),
    rows: Annotated[int, _flag("Maximum number of texts generated at the same time; further requests wait.")] = 32,
    book: Annotated[Path | None, _flag("Folder with the built book (see make docs), served at /book/.")] = None,
    log: Annotated[bool, _flag("Log each request on stderr, one line each.")] = False,
    weights: Annotated[
        Literal["float32", "bfloat16", "int8"] | None,
        _flag("Data type of the weights for text generation; narrower types are faster (default: as stored)."),
    ] = None,
    device: Annotated[str, _flag("Device: cpu, cuda, or auto (a GPU if there is one).")] = "auto",
    language: InLanguage = None,
) -> None:
    """Serve models over an OpenAI-compatible API, and the studio.

    By default the API is at http://127.0.0.1:8000/v1 and the studio at http://127.0.0.1:8000/. To accept connections
    from other machines, the server needs --host and --key-file.

    Example: `kotha serve run --port 8080`
    """
    named = models or (bundled.NAME,)
    _prepare(named, Message("serving needs FastAPI and uvicorn; install them with: {command}", command=_SERVE))
    from kotha.server.settings import Limits, ServeSettings, is_open, read_key

    settings = ServeSettings(
        host=host,
        port=port,
        names=name,
        key=None if key_file is None else read_key(key_file),
        limits=Limits(rows=rows),
        weights=weights,
        jobs=jobs,
        indexes=index,
        book=book,
        language=language,
        log=log,
        preload=True,
    )
    if log:
        logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s")
    if key_file is not None and is_open(key_file):
        template = "other users on this machine can read the key in {file}; restrict it with `chmod 600`"
        _say(Message(template, file=key_file))

    from kotha.server.lifecycle import run  # imports torch, so only after the options were checked

    def ready(at: str) -> None:
        template = "serving {models} at {at}/v1; the studio is at {at}/; Ctrl-C stops it"
        _say(Message(template, models=named, at=at))

    run(named, settings, device, ready)


def open_studio(
    *models: Annotated[str, _flag("Run, model or Hugging Face folders; the bundled model is always included.")],
    room: Annotated[
        str, _flag("Room to open first: write, look, hand, tokens, design, train, compare or teach.")
    ] = "write",
    text: Annotated[str, _flag("Text to enter in the studio.")] = "",
    jobs: Annotated[Path, _flag("Folder for training runs started in the studio.")] = Path("kotha-work"),
    port: Annotated[int | None, _flag("Port (default: 8000, or the next free port if 8000 is in use).")] = None,
    browser: Annotated[
        bool, _flag("Open a browser; --no-browser only prints the address.", negative="--no-browser")
    ] = True,
    language: InLanguage = None,
) -> None:
    """Open the studio in a browser to generate text with a model, inspect it, or train one.

    Only this computer can access the studio.

    Example: `kotha open run --room look`
    """
    if room not in ROOMS:
        raise UsageError("unknown room {room!r}; the rooms are {rooms}", room=room, rooms=ROOMS)
    # The studio selects the first model at the start.
    named = (*models, *(() if bundled.NAME in models else (bundled.NAME,)))
    _prepare(named, Message("the studio needs FastAPI and uvicorn; install them with: {command}", command=_SERVE))
    from kotha.server.settings import Limits, ServeSettings

    first, *others = _PORTS if port is None else (port,)
    settings = ServeSettings(
        port=first, other_ports=tuple(others), jobs=jobs, limits=Limits(rows=_ROWS), language=language, preload=True
    )
    from kotha.server.lifecycle import run

    def ready(at: str) -> None:
        query = {**({"x": text} if text else {}), **({"lang": language} if language else {})}
        address = f"{at}/#/{room}{'?' + urlencode(query) if query else ''}"
        where = Message(
            "the studio is at {address}; training runs are stored in {jobs}; Ctrl-C stops it",
            address=address,
            jobs=jobs,
        )
        _say(where)
        if port is None and urlsplit(at).port not in (first, None):
            template = "port {port} is in use; the browser keeps answers, language and theme separately for each port"
            _say(Message(template, port=str(first)))
        if browser and not webbrowser.open(address):
            _say(Message("could not start a browser; open the address manually"))

    run(named, settings, "auto", ready)


def _prepare(models: Sequence[str], needed: Message) -> None:
    """Check that FastAPI and uvicorn are installed, without importing them, and that the models exist."""
    require(needed, "fastapi", "uvicorn")
    from kotha.server.settings import model_paths

    model_paths(models)
    # Idle OpenMP threads must not spin, because the threads that handle requests need the cores too.
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")


def _say(message: Message) -> None:
    print(f"kotha: {translate(message, page_language())}", file=sys.stderr, flush=True)
