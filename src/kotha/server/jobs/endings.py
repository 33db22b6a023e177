"""How a job stands or ended, in words, where its command had no chance to say it."""

import signal
from typing import Literal

from kotha.i18n.message import Message
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


def unsaid(state: JobState, exit: ExitNote | None, saved: bool) -> Message | None:
    """What to add to the last words of a command; ``saved`` says whether it left something to go on from."""
    if exit and exit.why:  # of whoever looked after the command
        return Message("what it had to say could not be written: {why}; make room, and begin it again", why=exit.why)
    if state == "killed":
        how = Message("was killed (SIGKILL)") if exit else Message("was killed, or the machine went down")
        advice = Message("go on with it from what it saved last") if saved else Message("begin it again")
        return Message("it {how}: by hand, or by a system that had no memory left; {advice}", how=how, advice=advice)
    if exit and state == "failed" and exit.code < 0:
        known = -exit.code in set(signal.Signals)
        name = signal.Signals(-exit.code).name if known else Message("signal {number}", number=-exit.code)
        return Message("its command was ended by {signal}", signal=name)
    return None
