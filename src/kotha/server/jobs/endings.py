"""How a job stands or ended, in words, where its command had no chance to say it."""

import signal
from typing import Literal

from kotha.server.jobs.notes import ExitNote

JobState = Literal["running", "done", "failed", "stopped", "killed"]
_SIGKILL = 9  # which Windows has no name for
_STOPPED_CODES = (130, 143, -signal.SIGTERM, -signal.SIGINT)


def state_of(code: int) -> JobState:
    """How a command ended, by its exit code."""
    if code == 0:
        return "done"
    if code == -_SIGKILL:
        return "killed"
    return "stopped" if code in _STOPPED_CODES else "failed"


def unsaid(state: JobState, exit: ExitNote | None, saved: bool) -> str:
    """What to add to the last words of a command; ``saved`` says whether it left something to go on from."""
    if exit and exit.why:  # of whoever looked after the command
        return f"what it had to say could not be written: {exit.why}; make room, and begin it again"
    if state == "killed":
        how = "was killed, or the machine went down" if not exit else "was killed (SIGKILL)"
        advice = "; go on with it from what it saved last" if saved else "; begin it again"
        return f"it {how}: by hand, or by a system that had no memory left{advice}"
    if exit and state == "failed" and exit.code < 0:
        known = -exit.code in set(signal.Signals)
        return f"its command was ended by {signal.Signals(-exit.code).name if known else f'signal {-exit.code}'}"
    return ""
