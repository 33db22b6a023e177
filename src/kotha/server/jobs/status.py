"""A job as it stands, or how it ended: in words, where its command had no chance to say it."""

import signal
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from kotha.i18n.message import Message
from kotha.server.wire import ToldMessage

JobState = Literal["running", "done", "failed", "stopped", "killed"]
_SIGKILL = 9  # which Windows has no name for
_STOPPED_CODES = (130, 143, -signal.SIGTERM, -signal.SIGINT)


class Job(BaseModel):
    """A job as it stands."""

    model_config = ConfigDict(frozen=True)

    id: str = Field(pattern="^[0-9a-f]{12}$", description="By which it is asked for.")
    kind: str = Field(description="What was asked for, such as train; damaged, where nothing says it any more.")
    name: str = Field(description="What people call it.")
    state: JobState = Field(description="How it stands, or ended.")
    began: float = Field(description="When, in seconds since 1970.")
    ended: float | None = Field(
        description="When, in seconds since 1970; null while it runs, and where nobody could write it down."
    )
    said: str = Field(description="The last of what its command said; where it could not say how it ended, that.")
    tags: tuple[str, ...] = Field(description="Words that people find it by.")
    error: ToldMessage | None = Field(
        description="Why it failed, to be shown in the reader's language; null where it did not."
    )


def state_of(code: int) -> JobState:
    """How a command ended, by its exit code."""
    if code == 0:
        return "done"
    if code == -_SIGKILL:
        return "killed"
    return "stopped" if code in _STOPPED_CODES else "failed"


def unsaid(state: JobState, code: int | None, why: str | None, saved: bool) -> Message | None:
    """What to add to the last words of a command; ``saved`` says whether it left something to go on from."""
    if why:  # of whoever looked after the command
        return Message("what it had to say could not be written: {why}; make room, and begin it again", why=why)
    if state == "killed":
        known = Message("was killed (SIGKILL)")
        how = Message("was killed, or the machine went down") if code is None else known
        advice = Message("go on with it from what it saved last") if saved else Message("begin it again")
        return Message("it {how}: by hand, or by a system that had no memory left; {advice}", how=how, advice=advice)
    if code is not None and state == "failed" and code < 0:
        is_known = -code in set(signal.Signals)
        name = signal.Signals(-code).name if is_known else Message("signal {number}", number=-code)
        return Message("its command was ended by {signal}", signal=name)
    return None
