"""What a run keeps, and when it is asked to stop: checkpoints to go on from, and the best weights to take away.

All processes of a distributed run call the functions of a `Checkpointer`; who writes what is decided there.

Ctrl-C and SIGTERM are a question: the loop finishes its step, saves and ends. A second Ctrl-C ends at once. A scheduler
asks by SIGTERM and kills soon after; it may well ask twice, so a second one changes nothing.
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
from kotha.artifacts.run_folder import RunFolder
from kotha.errors import TrainingError
from kotha.i18n.message import Message, Text
from kotha.model.family import Model, build
from kotha.storage.atomic import clear_leftovers
from kotha.training import adapter, checkpoint
from kotha.training.adapter import base_fingerprint, merged, save_adapter
from kotha.training.checkpoint import Checkpoint, checkpoint_path, list_checkpoints
from kotha.training.config import TrainConfig
from kotha.training.distributed import Ranks, whole
from kotha.training.optim import Average, Optimizers, copy_into, swapped_weights
from kotha.training.tasks.task import Score, Task

_ASKED_SOON = 5.0  # seconds in which torchrun asks all of its processes to stop, if it asks one


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

    def expect(self, step: int) -> None:
        """Of several machines perhaps only one was asked to stop, and the others go on without it.

        torchrun asks all, one soon after the other, where another machine has come; then it starts them again. It takes
        one that ends well for the end of the run.
        """
        until = time.monotonic() + _ASKED_SOON
        while not self.asked and time.monotonic() < until:
            time.sleep(0.05)
        if not self.asked:
            raise TrainingError(
                "another machine received a stop signal, so all processes saved at step {step:,}; torchrun "
                "restarts the remaining machines if restarts are left",
                step=step,
            )

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
    config: TrainConfig
    task: Task
    optimizers: Optimizers
    average: Average | None
    ranks: Ranks

    # -- to go on from ------------------------------------------------------------------------------------------------

    def save(self, step: int, state: dict[str, Any], best: int | None) -> None:
        """Write a checkpoint of this moment, and let old ones go."""
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
        """Go on from the last checkpoint that is whole: its state, empty where there is none.

        What was to go when that one was saved goes now, if the run was killed between the two.
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
        """Where one can go on from, for an error message."""
        try:
            saved = list_checkpoints(self.folder.checkpoints)
        except OSError as error:  # what went wrong first is what shall be told
            folder = self.folder.checkpoints
            return Message("in {folder}, which cannot be read ({why})", folder=folder, why=error.strerror)
        return str(checkpoint_path(self.folder.checkpoints, saved[-1])) if saved else Message("none yet")

    # -- to take away -------------------------------------------------------------------------------------------------

    def kept_weights(self) -> AbstractContextManager[None]:
        """The model with the weights that are measured and kept: their running average, where there is one."""
        return swapped_weights(self.model, self.average.tensors) if self.average is not None else nullcontext()

    def plain_model(self) -> Model | None:
        """A model that can be called by itself, and only a process that writes gets one.

        Sharded weights are gathered; what was learned beside the weights is merged into them.
        """
        if not self.ranks.sharded:
            if not self.ranks.writes:
                return None
            return merged(self.model) if self.config.lora is not None else self.model
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
        rank, chat = self.config.lora, self.task.chat_template
        if rank is not None:
            folder = self.folder.path / adapter.FOLDER
            save_adapter(folder, self.model, rank, self.config.lora_alpha, self._base, chat)
        how: Any = {"overwrite": True, "whatever_it_holds": True, "chat": chat}
        bundle.save(self.folder.best_model, plain, self.task.tokenizer, **how)
        self.folder.write(runs.BEST, {"step": step, **score})
