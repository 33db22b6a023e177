"""End a child process together with its parent."""

import signal
import sys

_PR_SET_PDEATHSIG = 1  # from linux/prctl.h


def end_with_parent(number: signal.Signals) -> None:
    """Have the kernel send a signal to this process when its parent ends (Linux only).

    Call it in the child process, before any other work.
    """
    if sys.platform == "linux":
        import ctypes

        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, number)
