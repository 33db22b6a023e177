"""``kotha open``: the studio in the browser, with models of one's own or the one in the box."""

import os
import sys
import webbrowser
from pathlib import Path
from typing import Annotated
from urllib.parse import urlencode

from kotha.cli.flags import flag
from kotha.errors import UsageError, library
from kotha.storage import bundled

# The rooms of the page, as its addresses name them.
ROOMS = ("write", "look", "hand", "tokens", "design", "train", "compare", "teach")

# Texts written side by side: for one reader, not for a class. Room for more takes memory, and time at the start.
_ROWS = 8


def open_studio(
    *models: Annotated[str, flag("Run, model or Hugging Face folders; the one in the box is always there.")],
    room: Annotated[str, flag(f"Where to begin: {', '.join(ROOMS)}.")] = "write",
    text: Annotated[str, flag("What to begin with.")] = "",
    jobs: Annotated[Path, flag("The folder that trainings begun in the page go to.")] = Path("kotha-work"),
    port: Annotated[int, flag("0 takes any that is free.")] = 0,
    browser: Annotated[bool, flag("Open the browser; else only say where it is.", negative="--no-browser")] = True,
) -> None:
    """Open the studio: write with a model, look inside it, train one; at an address that only this computer reaches."""
    if room not in ROOMS:
        raise UsageError(f"there is no room {room!r}; rooms are {', '.join(ROOMS)}")
    needed = "the studio needs FastAPI and uvicorn: pip install 'kotha[serve]'"
    library("fastapi", needed)
    library("uvicorn", needed)
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    from kotha.server.running import run
    from kotha.server.settings import Limits, ServeSettings, StartAdvice

    elsewhere = "start `kotha serve` with"
    advice = StartAdvice(index=f"{elsewhere} --index FILE", name=f"{elsewhere} --name NAME")
    limits = Limits(rows=_ROWS)
    settings = ServeSettings(port=port, jobs=jobs, limits=limits, opens_ahead=True, advice=advice)
    # The first that is named is the one to begin with.
    named = (*models, *(() if bundled.NAME in models else (bundled.NAME,)))

    def ready(at: str) -> None:
        asked = urlencode({"x": text}) if text else ""
        address = f"{at}/#/{room}{f'?{asked}' if asked else ''}"
        print(
            f"kotha: the studio is at {address}; trainings go to {jobs}; Ctrl-C stops it", file=sys.stderr, flush=True
        )
        if browser and not webbrowser.open(address):
            print("kotha: no browser could be opened from here; open that address in one", file=sys.stderr, flush=True)

    run(named, settings, "auto", ready)
