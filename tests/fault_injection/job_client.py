"""A client of the job store, without sockets: ``python -m tests.fault_injection.job_client FOLDER``.

It uploads a text, starts a job that trains a tokenizer, waits, and names the job. When it is run again after a fault,
it continues where it stopped. Acknowledged uploads and jobs must exist and are not repeated, a failed or killed job is
removed and started again, and the restarted server cleans up after the killed one.
"""

import secrets
import sys
import time
from itertools import count
from pathlib import Path

from kotha.errors import KothaError
from kotha.server.jobs.store import OUT_PLACE, JobStore

TEXT, NAME, TAG = "আমার সোনার বাংলা, আমি তোমায় ভালোবাসি।\n" * 40, "গান", "শেখা"
_ENDED = ("done", "failed", "killed", "stopped")


def main() -> int:
    """Run the program and return its exit code."""
    try:
        return go(Path(sys.argv[1]))
    except KothaError as error:
        print(f"kotha: {error}", file=sys.stderr)
        return 1
    except OSError as error:  # the server reports a disk error
        print(f"kotha: {error.filename}: {error.strerror}", file=sys.stderr)
        return 1


def go(folder: Path) -> int:
    """Upload, wait, and name the job; return 1 if the job failed."""
    # Two undisturbed runs must give the same output, so ids are the first free numbers instead of random ones.
    secrets.token_hex = lambda _=None: next(  # type: ignore[assignment]
        id
        for id in map("{:012x}".format, count(1))
        if not any((folder / "uploads").glob(f"{id}.*")) and not (folder / id).exists()
    )
    store = JobStore(folder)
    files = store.uploads.all()
    file = files[0].id if files else store.upload(TEXT, "txt", NAME)
    jobs = [_ended(store, each.id) for each in store.all()]
    for each in jobs:
        if store.status(each).state != "done":
            store.remove(each)
    if not store.uploads.has(file):  # it was removed with the job
        file = store.upload(TEXT, "txt", NAME)
    left = store.all()
    words = ["tokenizer", "train", str(store.uploads.place(file)), "--vocab-size", "400", "--out", OUT_PLACE]
    job = left[0].id if left else _ended(store, store.begin("tokenizer", "t", words))
    if store.status(job).state != "done":
        print(f"kotha: the job ended as {store.status(job).state}: {store.status(job).output}", file=sys.stderr)
        return 1
    store.label(job, NAME, [TAG])
    print(f"{job} is done and is called {NAME}", flush=True)
    return 0


def _ended(store: JobStore, id: str) -> str:
    """Wait until a job has ended."""
    while store.status(id).state not in _ENDED:
        time.sleep(0.02)
    return id


if __name__ == "__main__":
    sys.exit(main())
