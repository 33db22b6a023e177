"""The Python API behind ``import kotha``: data, training and models."""

import os
from collections.abc import Iterable

# The path of an input or output file.
AnyPath = str | os.PathLike[str]


def listed(paths: AnyPath | Iterable[AnyPath]) -> list[str]:
    """Return one path or several as a list."""
    several = [paths] if isinstance(paths, str | os.PathLike) else paths
    return [os.fspath(path) for path in several]
