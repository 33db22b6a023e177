"""Under a bound on memory a command works in a child, so that somebody is left to say what became of it.

Some libraries below us (Rust's, C++'s) end the process where memory is refused, with no way for Python to hear of it.
Where a bound is set (``ulimit -v``), the program forks before anything heavy is loaded; the parent only waits.
"""

import os
import signal
import sys

from kotha.cli.memory import bound_bytes
from kotha.cli.stopping import say_at_once
from kotha.i18n.message import Message
from kotha.storage.processes import end_with_parent

_FAILED = 1


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
    return _FAILED
