"""What stands behind ``import kotha``: from text to data, from data to a run, and a model to work with."""

import os
from collections.abc import Iterable

# Where something is, or shall be, on disk.
Place = str | os.PathLike[str]


def listed(paths: Place | Iterable[Place]) -> list[str]:
    """One path or several, as a list."""
    several = [paths] if isinstance(paths, str | os.PathLike) else paths
    return [os.fspath(path) for path in several]
