"""What a run carries from step to step and keeps: its progress, its clock, its last losses, and checkpoints of them.

Checkpoints are to go on from, the best weights to take away. All processes of a distributed run call the functions of a
`Checkpointer`; who writes what is decided there.

Ctrl-C and SIGTERM are a question: the loop finishes its step, saves and ends. A second Ctrl-C ends at once. A scheduler
asks by SIGTERM and kills soon after; it may well ask twice, so a second one changes nothing.
"""

import math
import signal
import time
from collections import deque
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict, dataclass
from functools import cached_property
from statistics import median_high
from types import FrameType
from typing import Any

import torch
from torch import Tensor

from kotha.artifacts import model_folder as bundle
from kotha.artifacts import run_folder as runs
from kotha.artifacts.run_folder import RunFolder
from kotha.errors import CheckpointError
from kotha.i18n.message import Message, Option, Text
from kotha.model.family import Model, build
from kotha.storage.atomic import clear_leftovers
from kotha.training import adapter, checkpoint
from kotha.training.adapter import base_fingerprint, merged, save_adapter
from kotha.training.checkpoint import Checkpoint, bring_last, checkpoint_path, list_checkpoints
from kotha.training.distributed import Ranks, whole
from kotha.training.optim import Average, Optimizers, copy_into, swapped_weights
from kotha.training.tasks.task import Score, Task


@dataclass
class Progress:
    """What a run carries from step to step besides weights and optimizers; saved in each checkpoint."""

    step: int = 0
    tokens: int = 0
    seconds: float = 0.0
    best_step: int | None = None
    best_loss: float = math.inf
    evaluations_without_gain: int = 0
    evaluated_step: int = 0

    def __post_init__(self) -> None:
        for name, value in asdict(self).items():
            kinds = (
                (int, float) if name in ("seconds", "best_loss") else (int, type(None)) if name == "best_step" else int
            )
            if isinstance(value, bool) or not isinstance(value, kinds) or (value is not None and not value >= 0):
                raise CheckpointError("{name}={value!r} is nothing that a run can have reached", name=name, value=value)


_RECENT = 50
_LAST_SPEEDS = 200


class Watch:
    """Remembers the last losses and says what is strange about a new one: no number, or a jump."""

    def __init__(self, spike: float | None) -> None:
        self._spike = spike
        self.recent: deque[float] = deque(maxlen=_RECENT)

    def complaint(self, loss: float) -> Message | None:
        """What is wrong with this loss; None when nothing is."""
        if not math.isfinite(loss):
            return Message("is {loss}", loss=loss)
        usual = sum(self.recent) / len(self.recent) if len(self.recent) == _RECENT else math.inf
        if self._spike is not None and loss > usual + self._spike:
            return Message("rose to {loss:.3f} from about {usual:.3f}", loss=loss, usual=usual)
        self.recent.append(loss)
        return None


def steps_changed(before: int, now: int, planned: int) -> Message:
    """What to say of another number of steps than before, so that a run ends in time."""
    how = Message("slower than when this machine was timed") if now < before else Message("faster again")
    if now > planned:
        how = Message("faster than when this machine was timed")
    return Message("{how}: {steps:,} steps instead of {before:,}", how=how, steps=now, before=before)


class Clock:
    """Counts the seconds that go into learning, not those of measuring and saving."""

    def __init__(self) -> None:
        self._since: float | None = None
        self._tokens, self._seconds = 0, 0.0
        self._speeds: deque[float] = deque(maxlen=_LAST_SPEEDS)  # tokens a second, of the last steps

    @property
    def tokens_per_second(self) -> float:
        """Of the last step."""
        return self._speeds[-1] if self._speeds else 0.0

    @property
    def usual_speed(self) -> float:
        """Tokens a second; the median passes over a few slow steps, such as the first."""
        return median_high(self._speeds)

    def start(self, progress: Progress) -> None:
        """Count from here, unless it already counts."""
        if self._since is None:
            self._since = time.perf_counter()
            self._tokens, self._seconds = progress.tokens, progress.seconds

    def stop(self, progress: Progress) -> None:
        """Add what has passed."""
        if self._since is not None:
            progress.seconds += time.perf_counter() - self._since
            seconds = progress.seconds - self._seconds
            if progress.tokens > self._tokens:
                self._speeds.append((progress.tokens - self._tokens) / max(1e-9, seconds))
            self._since = None


class Interrupts:
    """While this is open, the first signal only sets ``asked``; ``on_ask`` hears its name, inside the handler."""

    def __init__(self, on_ask: Callable[[str], None] | None = None) -> None:
        self.asked = False
        self.hurried = False
        self._on_ask = on_ask
        self._before: dict[int, Any] = {}

    def __enter__(self) -> "Interrupts":
        for number in (signal.SIGINT, signal.SIGTERM):
            try:
                self._before[number] = signal.signal(number, self._ask)
            except ValueError:  # only the main thread may listen; elsewhere signals are someone else's business
                break
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def comes_within(self, seconds: float) -> bool:
        """Whether someone asks in the next seconds, or has asked."""
        until = time.monotonic() + seconds
        while not self.asked and time.monotonic() < until:
            time.sleep(0.05)
        return self.asked

    def _ask(self, number: int, frame: FrameType | None) -> None:
        again, self.asked = self.asked, True
        self.hurried = self.hurried or number == signal.SIGTERM
        if not again and self._on_ask is not None:
            self._on_ask(signal.Signals(number).name)
        if again and number == signal.SIGINT:
            before = self._before[number]
            if callable(before):
                before(number, frame)
            raise KeyboardInterrupt


@dataclass
class Checkpointer:
    """The parts of a run that last, and where they go."""

    folder: RunFolder
    model: Model
    task: Task
    optimizers: Optimizers
    average: Average | None
    ranks: Ranks
    lora: tuple[int, float] | None  # rank and alpha of what is learned beside the weights

    # -- to go on from ------------------------------------------------------------------------------------------------

    def save(self, progress: Progress, more: dict[str, Any], keep: int) -> None:
        """Write a checkpoint of this moment, and let old ones go."""
        tensors: dict[str, dict[str, Tensor]] = {
            "model": {name: each.detach() for name, each in self.model.named_parameters()},
            "optimizer": self.optimizers.state(),
        }
        state = {**asdict(progress), **more}
        if self.average is not None:
            tensors["average"] = self.average.tensors
            state["average_updates"] = self.average.updates
        checkpoint.save_checkpoint(self.folder.checkpoints, Checkpoint(progress.step, tensors, state), self.ranks)
        if self.ranks.writes:
            checkpoint.prune_checkpoints(self.folder.checkpoints, keep, progress.best_step)

    def restore(self, keep: int) -> tuple[Progress, dict[str, Any]]:
        """Go on from the last checkpoint that is whole: what had been reached, and what else was saved.

        What was to go when that one was saved goes now, if the run was killed between the two.
        """
        saved = checkpoint.latest_checkpoint(self.folder.checkpoints, self.ranks)
        if self.ranks.writes:
            best = saved.state.get("best_step") if saved else None
            checkpoint.prune_checkpoints(self.folder.checkpoints, keep, best, newest=saved.step if saved else 0)
            clear_leftovers(self.folder.path, "best")
            self.folder.forget_after(saved.step if saved else 0)
        if saved is None:
            return Progress(), {}
        missing = {name for name, _ in self.model.named_parameters()} - saved.tensors["model"].keys()
        if missing:
            raise KeyError(f"without {min(missing)}")
        copy_into(self.model, saved.tensors["model"])
        self.optimizers.load_state(saved.tensors["optimizer"])
        state = dict(saved.state)
        updates = state.pop("average_updates", 0)
        if self.average is not None:
            self.average.load(saved.tensors["average"], updates)
        state["best_loss"] = math.inf if state["best_loss"] is None else state["best_loss"]  # JSON has no infinity
        names = Progress.__dataclass_fields__
        progress = Progress(**{"step": saved.step, **{name: state.pop(name) for name in list(state) if name in names}})
        return progress, state

    def last_good(self) -> Text:
        """Where one can go on from, for an error message."""
        return self._last() or Message("none yet")

    def resume_hint(self) -> Message:
        """What to do when a disk is full, for an error message: nothing is resumed that was never saved."""
        saved = self._last()
        if saved is None:
            return Message("nothing had been saved yet; make room, and start a new run")
        return Message(
            "the run stays in {path}, its last checkpoint: {saved}; make room, and go on with {resume}",
            path=self.folder.path,
            saved=saved,
            resume=Option("resume", True),
        )

    def _last(self) -> Text | None:
        try:
            saved = list_checkpoints(self.folder.checkpoints)
        except OSError as error:  # what went wrong first is what shall be told
            folder = self.folder.checkpoints
            return Message("in {folder}, which cannot be read just now ({why})", folder=folder, why=error.strerror)
        return str(checkpoint_path(self.folder.checkpoints, saved[-1])) if saved else None

    # -- to take away -------------------------------------------------------------------------------------------------

    def kept_weights(self) -> AbstractContextManager[None]:
        """The model with the weights that are measured and kept: their running average, where there is one."""
        return swapped_weights(self.model, self.average.tensors) if self.average is not None else nullcontext()

    def mean_of_last(self, count: int) -> dict[str, Tensor] | None:
        """The mean of the kept weights of the last checkpoints; None where there are not so many."""
        steps = [step for step in bring_last(self.folder.path, count, self.ranks) if step > 0]
        if len(steps) < count:
            return None
        mean: dict[str, Tensor] = {}
        for step in steps:
            saved = checkpoint.load_checkpoint(checkpoint_path(self.folder.checkpoints, step), self.ranks)
            for name, each in saved.tensors["average" if self.average is not None else "model"].items():
                mean[name] = mean.get(name, torch.zeros_like(each)) + each / count
        return mean

    def plain_model(self) -> Model | None:
        """A model that can be called by itself, and only a process that writes gets one.

        Sharded weights are gathered; what was learned beside the weights is merged into them.
        """
        if not self.ranks.sharded:
            if not self.ranks.writes:
                return None
            return merged(self.model) if self.lora is not None else self.model
        gathered = {name: whole(each.detach()) for name, each in self.model.named_parameters()}
        if not self.ranks.writes:
            return None
        plain = build(self.model.config)
        copy_into(plain, gathered)
        return plain

    @cached_property
    def _base(self) -> str:
        return base_fingerprint(self.model)  # those weights never change

    def save_best(self, plain: Model | None, step: int, score: Score) -> None:
        """Write the weights that the model has now as the best so far."""
        if plain is None:
            return
        if self.lora is not None:
            save_adapter(self.folder.path / adapter.FOLDER, self.model, *self.lora, self._base, self.task.chat_template)
        how: Any = {"overwrite": True, "whatever_it_holds": True, "chat": self.task.chat_template}
        bundle.save(self.folder.best_model, plain, self.task.tokenizer, **how)
        self.folder.write(runs.BEST, {"step": step, **score})
