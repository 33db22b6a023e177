"""A machine that is too small is told so in words: by what errors say, and before the libraries end the process.

torch, OpenBLAS and others end the whole process where their first memory is refused. So where a bound is set
(``ulimit -v``), it is looked at before one of them is loaded. Others (Rust's, C++'s) end the process later, with no way
for Python to hear of it: so under a bound a command works in a child, forked before anything heavy is loaded, and the
parent, which only waits, is left to say what became of it.
"""

import os
import signal
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType

from kotha.cli.stopping import say_at_once
from kotha.errors import KothaError
from kotha.i18n.message import Message
from kotha.storage.processes import end_with_parent

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


def watched() -> int | None:
    """Fork where memory is bounded: in the parent the exit code, once the child has ended; in the child None, as where
    nothing is bounded."""
    bound = bound_bytes()
    if sys.platform == "win32" or bound is None:
        return None
    child = os.fork()
    if not child:
        end_with_parent(signal.SIGKILL)
        return None
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the terminal tells the child too
    signal.signal(signal.SIGTERM, lambda *_: os.kill(child, signal.SIGTERM))
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if code >= 0:
        return code
    # How a process ends when memory is refused, by itself or by the kernel: abort, a null pointer, a missing page.
    if -code not in {signal.SIGABRT, signal.SIGSEGV, signal.SIGBUS, signal.SIGKILL}:
        return 128 - code
    from kotha.cli.spoken import said, speaking  # not before: who only waits shall be small

    with speaking(sys.argv[1:]):
        why = said(
            Message(
                "it was ended for want of memory, of which it may take {n} MB (ulimit -v); allow it more, or "
                "take less at a time",
                n=bound // 1_000_000,
            )
        )
    say_at_once(f"kotha: {why}")
    return 1
