"""``kotha serve``: one address for programs and people."""

import logging
import os
import sys
from pathlib import Path
from typing import Annotated, Literal

from kotha.cli.flags import flag
from kotha.errors import library
from kotha.storage import bundled


def serve(
    *models: Annotated[str, flag("Run, model or Hugging Face folders, asked for by their names; left out: box.")],
    host: Annotated[str, flag("Where to listen. Any but a loopback address needs --key-file.")] = "127.0.0.1",
    port: Annotated[int, flag("0 takes any that is free.")] = 8000,
    key_file: Annotated[Path | None, flag("A file with the key that clients must send.")] = None,
    name: Annotated[tuple[str, ...], flag("Another name under which it may be addressed; may be given again.")] = (),
    jobs: Annotated[Path | None, flag("A folder for trainings and other work; left out, none is taken.")] = None,
    index: Annotated[tuple[str, ...], flag("An index to ask, by its file's name; may be given again.")] = (),
    book: Annotated[Path | None, flag("The built book (make docs: build/book), to be read at /book/.")] = None,
    rows: Annotated[int, flag("Texts written side by side; more wait.")] = 32,
    log: Annotated[Literal["text", "json", "none"], flag("A line for each request, on stderr.")] = "none",
    weights: Annotated[
        Literal["auto", "float32", "bfloat16", "int8"] | None,
        flag("The weights that write: narrower ones are faster; left out: as they are stored."),
    ] = None,
    device: Annotated[str, flag("cpu, cuda, or auto: a GPU where there is one.")] = "auto",
) -> None:
    """Serve models to OpenAI's clients and others, at http://127.0.0.1:8000/v1 unless told otherwise."""
    advice = "serving needs FastAPI and uvicorn: pip install 'kotha[serve]'"
    library("fastapi", advice)
    library("uvicorn", advice)
    # Threads that wait for one another sleep: those that answer requests need the cores, too.
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    from kotha.server.logs import log_requests
    from kotha.server.running import run
    from kotha.server.settings import Limits, ServeSettings, StartAdvice, is_open, read_key

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
        log_as=log,
        opens_ahead=True,
        advice=StartAdvice(
            jobs="start it with --jobs FOLDER", index="start it with --index FILE", name="start it with --name NAME"
        ),
    )
    log_requests(log)
    named = models or (bundled.NAME,)

    def say(line: str) -> None:
        if log == "json":
            logging.getLogger("kotha.serve").info(line)
        else:
            print(f"kotha: {line}", file=sys.stderr, flush=True)

    if key_file is not None and is_open(key_file):
        say(f"others on this machine can read the key in {key_file}; `chmod 600` keeps it to you")

    def ready(at: str) -> None:
        beside = "" if book is None else f", the book at {at}/book/"
        say(f"serving {', '.join(named)} at {at}/v1; the studio is at {at}/{beside}; Ctrl-C stops it")

    run(named, settings, device, ready)
