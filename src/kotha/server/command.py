"""``kotha serve`` and ``kotha open``: one address for programs and people, and the studio there in a browser."""

import logging
import os
import sys
import webbrowser
from pathlib import Path
from typing import Annotated, Any, Literal
from urllib.parse import urlencode

from cyclopts import Parameter

from kotha.errors import UsageError, library
from kotha.i18n.catalogue import translate
from kotha.i18n.message import Message
from kotha.i18n.numbers import Language
from kotha.storage import bundled

# The rooms of the page, as its addresses name them.
ROOMS = ("write", "look", "hand", "tokens", "design", "train", "compare", "teach")
# Texts that `open` writes side by side: for one reader, not for a class. Room for more takes memory, and time at the
# start.
_ROWS = 8


def _flag(help: str, **more: Any) -> Parameter:
    return Parameter(help=help, **{"negative": "", **more})


Port = Annotated[int, _flag("0 takes any that is free.")]
InLanguage = Annotated[
    Language,
    _flag("English or Bangla.", env_var="KOTHA_LANGUAGE", env_var_split=lambda _, value, delimiter=None: value.split()),
]


def serve(
    *models: Annotated[str, _flag("Run, model or Hugging Face folders, asked for by their names; left out: box.")],
    host: Annotated[str, _flag("Where to listen. Any but a loopback address needs --key-file.")] = "127.0.0.1",
    port: Port = 8000,
    key_file: Annotated[Path | None, _flag("A file with the key that clients must send.")] = None,
    name: Annotated[tuple[str, ...], _flag("Another name under which it may be addressed; may be given again.")] = (),
    jobs: Annotated[Path | None, _flag("A folder for trainings and other work; left out, none is taken.")] = None,
    index: Annotated[tuple[str, ...], _flag("An index to ask, by its file's name; may be given again.")] = (),
    rows: Annotated[int, _flag("Texts written side by side; more wait.")] = 32,
    book: Annotated[Path | None, _flag("The built book (make docs: build/book), to be read at /book/.")] = None,
    log: Annotated[bool, _flag("A line for each request, on stderr.")] = False,
    weights: Annotated[
        Literal["float32", "bfloat16", "int8"] | None,
        _flag("The weights that write: narrower ones are faster; left out: as they are stored."),
    ] = None,
    device: Annotated[str, _flag("cpu, cuda, or auto: a GPU where there is one.")] = "auto",
    language: InLanguage = "en",
) -> None:
    """Serve models to OpenAI's clients and others, at http://127.0.0.1:8000/v1 unless told otherwise."""
    _prepare("serving needs FastAPI and uvicorn: pip install 'kotha[serve]'")
    from kotha.server.lifecycle import run
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
        log=log,
        opens_ahead=True,
    )
    if log:
        logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s")
    named = models or (bundled.NAME,)

    if key_file is not None and is_open(key_file):
        _say(
            Message(
                "other users on this machine can read the key in {file}; restrict it with `chmod 600`", file=key_file
            ),
            language,
        )

    def ready(at: str) -> None:
        _say(
            Message("serving {models} at {at}/v1; the studio is at {at}/; Ctrl-C stops it", models=named, at=at),
            language,
        )

    run(named, settings, device, ready)


def open_studio(
    *models: Annotated[str, _flag("Run, model or Hugging Face folders; the one in the box is always there.")],
    room: Annotated[str, _flag("Where to begin: write, look, hand, tokens, design, train, compare, teach.")] = "write",
    text: Annotated[str, _flag("What to begin with.")] = "",
    jobs: Annotated[Path, _flag("The folder that trainings begun in the page go to.")] = Path("kotha-work"),
    port: Port = 0,
    browser: Annotated[bool, _flag("Open the browser; else only say where it is.", negative="--no-browser")] = True,
    language: InLanguage = "en",
) -> None:
    """Open the studio: write with a model, look inside it, train one; at an address that only this computer reaches."""
    if room not in ROOMS:
        raise UsageError("unknown room {room!r}; the rooms are {rooms}", room=room, rooms=ROOMS)
    _prepare("the studio needs FastAPI and uvicorn: pip install 'kotha[serve]'")
    from kotha.server.lifecycle import run
    from kotha.server.settings import Limits, ServeSettings

    settings = ServeSettings(port=port, jobs=jobs, limits=Limits(rows=_ROWS), opens_ahead=True)
    # The first that is named is the one to begin with.
    named = (*models, *(() if bundled.NAME in models else (bundled.NAME,)))

    def ready(at: str) -> None:
        address = f"{at}/#/{room}{'?' + urlencode({'x': text}) if text else ''}"
        where = Message(
            "the studio is at {address}; training runs are stored in {jobs}; Ctrl-C stops it",
            address=address,
            jobs=jobs,
        )
        _say(where, language)
        if browser and not webbrowser.open(address):
            _say(Message("could not start a browser; open the address in one yourself"), language)

    run(named, settings, "auto", ready)


def _prepare(needed: str) -> None:
    """See that the libraries are there."""
    for name in ("fastapi", "uvicorn"):
        library(name, needed)
    # Threads that wait for one another sleep: those that answer requests need the cores, too.
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")


def _say(message: Message, language: Language) -> None:
    print(f"kotha: {translate(message, language)}", file=sys.stderr, flush=True)
