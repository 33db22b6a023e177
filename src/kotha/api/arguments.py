"""What calls of the face take: places on disk, and listeners."""

import os
from collections.abc import Callable, Iterable

Place = str | os.PathLike[str]
OnProgress = Callable[[str, int, int], None]


def listed(paths: Place | Iterable[Place]) -> list[str]:
    """One path or several, as a list."""
    several = [paths] if isinstance(paths, str | os.PathLike) else paths
    return [os.fspath(path) for path in several]
