"""What one process owes another that began it."""

import signal
import sys

_PR_SET_PDEATHSIG = 1  # of linux/prctl.h


def end_with_parent(number: signal.Signals) -> None:
    """Have the system send this process a signal when the one that began it is gone, however it went. On Linux alone.

    To be called in the new process, before it does anything that somebody should know of.
    """
    if sys.platform == "linux":
        import ctypes

        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, number)
