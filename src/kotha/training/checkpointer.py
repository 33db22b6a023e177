"""Save and restore a run: its checkpoints, its best weights, and a clean stop on a signal.

In a distributed run all processes call the methods of a `Checkpointer`, which decides what each process writes.

Ctrl-C and SIGTERM request a stop: the loop finishes its step, saves a checkpoint and ends. A second Ctrl-C ends the run
immediately. Schedulers send SIGTERM, sometimes twice, and kill the process soon after, so a second SIGTERM is ignored.
"""

import math
import signal
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import cached_property
from types import FrameType
from typing import Any

from torch import Tensor

from kotha.artifacts import model_folder as bundle
from kotha.artifacts import run_folder as runs
from kotha.artifacts.own_text import model_language
from kotha.artifacts.run_folder import RunFolder
from kotha.errors import TrainingError
from kotha.i18n.message import Message, Text
from kotha.model.family import Model, build
from kotha.storage.atomic import clear_leftovers
from kotha.training import adapter, checkpoint
from kotha.training.adapter import base_fingerprint, merged, save_adapter
from kotha.training.checkpoint import Checkpoint, checkpoint_path, list_checkpoints
from kotha.training.config import TrainConfig
from kotha.training.distributed import Ranks, unsharded
from kotha.training.optim import Average, Optimizers, copy_into, swapped_weights
from kotha.training.tasks.task import Score, Task

_SIGNAL_SECONDS = 5.0  # seconds in which torchrun signals all of its processes, once it signals one


class Interrupts:
    """Signal handlers; the first signal sets ``stop_requested`` and calls ``on_signal`` with its name."""

    def __init__(self, on_signal: Callable[[str], None] | None = None) -> None:
        self.stop_requested = False
        self.terminating = False  # stopped by SIGTERM, which SIGKILL may follow
        self._on_signal = on_signal
        self._previous: dict[int, Any] = {}

    def __enter__(self) -> "Interrupts":
        for number in (signal.SIGINT, signal.SIGTERM):
            try:
                self._previous[number] = signal.signal(number, self._handle)
            except ValueError:  # only the main thread can set handlers
                break
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._previous.items():
            signal.signal(number, handler)

    def require_own_signal(self, step: int) -> None:
        """Raise an error if only other machines received the signal, so that torchrun restarts this process.

        When a machine joins, torchrun signals all processes, one after the other, and restarts them. A process that
        exited normally would end the whole run.
        """
        until = time.monotonic() + _SIGNAL_SECONDS
        while not self.stop_requested and time.monotonic() < until:
            time.sleep(0.05)
        if not self.stop_requested:
            raise TrainingError(
                "another machine received a stop signal, so all processes saved a checkpoint at step {step:,}; "
                "torchrun restarts the remaining machines if any restarts remain",
                step=step,
            )

    def _handle(self, number: int, frame: FrameType | None) -> None:
        again, self.stop_requested = self.stop_requested, True
        self.terminating = self.terminating or number == signal.SIGTERM
        if not again and self._on_signal is not None:
            self._on_signal(signal.Signals(number).name)
        if again and number == signal.SIGINT:
            previous = self._previous[number]
            if callable(previous):
                previous(number, frame)
            raise KeyboardInterrupt


@dataclass
class Checkpointer:
    """Saves and restores the state of a run."""

    folder: RunFolder
    model: Model
    config: TrainConfig
    task: Task
    optimizers: Optimizers
    average: Average | None
    ranks: Ranks

    # -- checkpoints --------------------------------------------------------------------------------------------------

    def save(self, step: int, state: dict[str, Any], best: int | None) -> None:
        """Write a checkpoint of the current state and remove old ones."""
        tensors: dict[str, dict[str, Tensor]] = {
            "model": {name: each.detach() for name, each in self.model.named_parameters()},
            "optimizer": self.optimizers.state(),
        }
        if self.average is not None:
            tensors["average"] = self.average.tensors
            state = {**state, "average_updates": self.average.updates}
        checkpoint.save_checkpoint(self.folder.checkpoints, Checkpoint(step, tensors, state), self.ranks)
        if self.ranks.writes:
            checkpoint.prune_checkpoints(self.folder.checkpoints, self.config.keep_checkpoints, best)

    def restore(self) -> dict[str, Any]:
        """Load the newest complete checkpoint and return its state; empty if there is none.

        Old checkpoints are removed here too, in case the run was killed right after saving.
        """
        saved = checkpoint.latest_checkpoint(self.folder.checkpoints, self.ranks) or Checkpoint(0)
        state = saved.state
        if self.ranks.writes:
            keep, best = self.config.keep_checkpoints, state.get("best_step")
            checkpoint.prune_checkpoints(self.folder.checkpoints, keep, best, newest=saved.step)
            clear_leftovers(self.folder.path, "best")
            self.folder.forget_after(saved.step)
        if not saved.tensors:
            return {}
        missing = {name for name, _ in self.model.named_parameters()} - saved.tensors["model"].keys()
        if missing:
            raise KeyError(f"without {min(missing)}")
        copy_into(self.model, saved.tensors["model"])
        self.optimizers.load_state(saved.tensors["optimizer"])
        if self.average is not None:
            self.average.load(saved.tensors["average"], state.get("average_updates", 0))
        best_loss = math.inf if state["best_loss"] is None else state["best_loss"]  # JSON has no infinity
        return {**state, "step": saved.step, "best_loss": best_loss}

    def last_good(self) -> Text:
        """Return the path of the newest checkpoint, for an error message."""
        try:
            saved = list_checkpoints(self.folder.checkpoints)
        except OSError as error:  # must not hide the original error
            folder = self.folder.checkpoints
            return Message("in {folder}, which cannot be read ({why})", folder=folder, why=error.strerror)
        return str(checkpoint_path(self.folder.checkpoints, saved[-1])) if saved else Message("none yet")

    # -- best weights -------------------------------------------------------------------------------------------------

    def kept_weights(self) -> AbstractContextManager[None]:
        """Temporarily use the weights that are evaluated and saved: the average, if there is one."""
        return swapped_weights(self.model, self.average.tensors) if self.average is not None else nullcontext()

    def plain_model(self) -> Model | None:
        """Return the model as a plain, unsharded module; None on processes that do not write files.

        Sharded weights are gathered and LoRA updates are merged.
        """
        if not self.ranks.sharded:
            if not self.ranks.writes:
                return None
            return merged(self.model) if self.config.lora is not None else self.model
        gathered = {name: unsharded(each.detach()) for name, each in self.model.named_parameters()}
        if not self.ranks.writes:
            return None
        plain = build(self.model.config)
        copy_into(plain, gathered)
        return plain

    @cached_property
    def _base(self) -> str:
        return base_fingerprint(self.model)  # the base weights are frozen

    @cached_property
    def _language(self) -> str | None:
        return model_language(self.folder.path)

    def save_best(self, plain: Model | None, step: int, score: Score | None) -> None:
        """Save the current weights as the best so far; without a score, the next evaluation replaces them."""
        if plain is None:
            return
        rank, chat = self.config.lora, self.task.chat_template
        if rank is not None:
            folder = self.folder.path / adapter.FOLDER
            save_adapter(folder, self.model, rank, self.config.lora_alpha, self._base, chat)
        how: Any = {"overwrite": True, "whatever_it_holds": True, "chat": chat, "language": self._language}
        bundle.save(self.folder.best_model, plain, self.task.tokenizer, **how)
        if score is not None:
            self.folder.write(runs.BEST, {"step": step, **score})
