"""What calls of the face take: places on disk."""

import os
from collections.abc import Iterable

Place = str | os.PathLike[str]


def listed(paths: Place | Iterable[Place]) -> list[str]:
    """One path or several, as a list."""
    several = [paths] if isinstance(paths, str | os.PathLike) else paths
    return [os.fspath(path) for path in several]
