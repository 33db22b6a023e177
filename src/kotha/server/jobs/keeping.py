"""Which files that were brought are still needed, and which go so that there is room for the next.

A job needs the files that its note names for as long as it is kept: a training that goes on reads its table again, and
an index says by their names where a passage stands. What no job names is spare, once it has lain for a while: whoever
brings a file begins something with it soon after. Spare files go when there is no room, the oldest first, or when
somebody says so.
"""

import re
import time
from collections.abc import Collection, Sequence
from pathlib import Path

from kotha.server.jobs.job import JOB
from kotha.server.jobs.uploads import ID, Upload
from kotha.server.settings import Limits

_ID_IN_NOTE = re.compile(rf"(?<![0-9a-f]){ID.pattern}(?![0-9a-f])")


def needed(jobs: Path, files: Collection[str]) -> set[str]:
    """Those files of ``files`` that a job names, by their ids; they are looked for in the bare text of its note, since
    a damaged one still says that much. One that cannot be read just now may name them all.
    """
    found: set[str] = set()
    for folder in jobs.iterdir():
        if ID.fullmatch(folder.name):
            try:
                note = (folder / JOB).read_text(encoding="utf-8", errors="replace")
            except (FileNotFoundError, NotADirectoryError):  # being made, or removed
                continue
            except OSError:
                return set(files)
            found.update(_ID_IN_NOTE.findall(note))
    return found & set(files)


def spare(files: Sequence[Upload], names: Collection[str], limits: Limits) -> list[Upload]:
    """Files that no job names (``names``: those that one does) and that have lain for a while, the oldest first."""
    since = time.time() - limits.file_rest_seconds
    found = [each for each in files if each.id not in names and each.brought <= since]
    return sorted(found, key=lambda each: each.brought)


def making_room(files: Sequence[Upload], spares: Sequence[Upload], n_bytes: int, limits: Limits) -> list[Upload]:
    """The spare files that must go so that one of ``n_bytes`` more can be kept; none where that would not be enough."""
    count, kept, gone = len(files), sum(each.n_bytes for each in files), 0
    while count >= limits.files or kept + n_bytes > limits.files_bytes:
        if gone == len(spares):
            return []
        count, kept, gone = count - 1, kept - spares[gone].n_bytes, gone + 1
    return list(spares[:gone])
