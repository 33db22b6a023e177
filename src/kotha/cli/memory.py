"""A machine that is too small is told so in words: by what errors say, and before the libraries end the process.

torch, OpenBLAS and others end the whole process where their first memory is refused. So where a bound is set
(``ulimit -v``), it is looked at before one of them is loaded.
"""

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType

from kotha.errors import KothaError

# Address space, in bytes, that is taken once each of these is loaded, before anything is done: 598, 767 and 890 million
# were measured on ARM without a GPU.
LEAST = {"torch": 640_000_000, "scipy": 810_000_000, "transformers": 940_000_000}


def bound_bytes() -> int | None:
    """How much this process may take, where somebody said so."""
    if sys.platform == "win32":
        return None
    import resource

    bound = resource.getrlimit(resource.RLIMIT_AS)[0]
    return None if bound == resource.RLIM_INFINITY else bound


class _Door(MetaPathFinder):
    """Stands before the large libraries, and finds nothing itself."""

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        bound = bound_bytes() if name in LEAST else None
        if bound is not None and bound < LEAST[name]:
            mega = 1_000_000
            raise KothaError(
                "this process may take {bound} MB of memory (ulimit -v), and the libraries alone take "
                "{least} MB; allow it more",
                bound=bound // mega,
                least=LEAST[name] // mega,
            )
        return None


@contextmanager
def bounded_imports() -> Iterator[None]:
    """Within it, a large library is loaded only where there is room for it."""
    door = _Door()
    sys.meta_path.insert(0, door)
    try:
        yield
    finally:
        sys.meta_path.remove(door)
