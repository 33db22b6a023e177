"""The training loop.

A run is a function of its config and its data: the batch and the dropout of a step depend only on the seed and the step
number, and all state carried between steps is in the checkpoint. A run that was stopped, killed or moved to another
machine therefore continues as if it had not been interrupted; on a CPU, the result is identical bit for bit.
"""

import math
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict
from functools import cached_property
from statistics import median_high
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from kotha.artifacts import run_folder as runs
from kotha.artifacts.run_folder import RunFolder
from kotha.errors import CheckpointError, ConfigError, TrainingError
from kotha.i18n.message import Message, OnRemark, Option
from kotha.model.config import ModelConfig
from kotha.model.family import Model, build
from kotha.model.lora import add_low_rank, fully_trained_prefixes
from kotha.storage.atomic import NotWrittenError
from kotha.training.checkpointer import Checkpointer, Interrupts
from kotha.training.config import TrainConfig, check_settings
from kotha.training.device import choose_arithmetic, largest_memory, peak_flops_per_second, peak_memory, share_of_peak
from kotha.training.distributed import ALONE, Ranks, Stragglers, distribute, gradient_sync, unsharded
from kotha.training.execution import BatchFitter, CUDAGraph, Learner, OutOfMemory, blocks, measure
from kotha.training.optim import Average, Optimizers, learning_rate_share
from kotha.training.plan.memory import check_memory, planned_conditions
from kotha.training.plan.rules import fit_to_time
from kotha.training.plan.step_time import count_work
from kotha.training.progress import Progress
from kotha.training.tasks.task import Batch, Task, Tensors

# Reading a value waits for the GPU, so only some steps are logged on a GPU.
_GPU_LOG_EVERY = 10

Sampler = Callable[[Any], str]
OnEvent = Callable[[dict[str, Any]], None]


class Training:
    """One training run, new or resumed."""

    def __init__(
        self,
        model_config: ModelConfig,
        config: TrainConfig,
        task: Task,
        folder: RunFolder,
        *,
        sampler: Sampler | None = None,
        on_event: OnEvent | None = None,
        on_remark: OnRemark = lambda _: None,
        ranks: Ranks = ALONE,
        initialize: Callable[[Model], Any] | None = None,
    ) -> None:
        """Build the model; ``initialize`` may replace its random weights."""
        self.config, self.task, self.folder, self.ranks = config, task, folder, ranks
        self._sampler, self._on_event, self.say, self._planned = sampler, on_event, on_remark, config
        check_settings(model_config, config)
        self.deadline = math.inf  # in terms of time.perf_counter
        self.time_limit = math.inf  # instead of a deadline: seconds from the first step
        self.stage: dict[str, int] = {}  # in a run with teachers: this stage's number and the number of stages
        self.most_steps: int | None = None  # maximum number of steps if the run is extended; None: as planned
        self.first_example, self.n_examples = ranks.share(config.batch_size)
        if config.lora is not None and ranks.sharded:
            raise ConfigError("lora trains too few parameters for sharding; remove shard")
        self.arithmetic = choose_arithmetic(config.precision, ranks.device, folder.machine())
        self.arithmetic.settle()
        device = self.arithmetic.device
        how = planned_conditions(model_config, config, self.arithmetic, ranks.world, ranks.sharded)
        check_memory(model_config, config, largest_memory(device), how)
        torch.manual_seed(config.seed)
        self.model: Model = build(model_config).to(device)
        if initialize is not None:
            initialize(self.model)
        if config.lora is not None:
            add_low_rank(self.model, config.lora, config.lora_alpha, whole=fully_trained_prefixes(model_config.family))
        learner = Learner(self.model, task)
        self.learner = distribute(learner, ranks, device)
        self.optimizers = Optimizers(self.model, config)
        self.average = Average(self.model, config.ema_decay) if config.ema_decay is not None else None
        self.progress = Progress()
        self.checkpointer = Checkpointer(folder, self.model, config, task, self.optimizers, self.average, ranks)
        self.scaler = torch.amp.GradScaler(enabled=self.arithmetic.precision == "float16")
        self.fitting = BatchFitter(self.model, config, self.arithmetic, ranks, how, on_remark, task)
        records = ranks.alone and self.arithmetic.precision != "float16" and config.compile != "off"
        self._recording = CUDAGraph(device, wanted=records)
        timed = [learner] if how.compiled else blocks(self.model)  # hooks inside would break compilation
        self._stragglers = Stragglers(ranks, timed, device, on_remark)

    # -- the run ----------------------------------------------------------------------------------------------------

    def run(self) -> dict[str, Any]:
        """Train to the last step, or until stopped, and return the summary.

        After a stop request, the checkpoint is saved first, because an evaluation can take longer than a scheduler's
        grace period.
        """
        self.learner.train()
        try:
            with Interrupts(lambda name: self._send({"step": self.progress.step, "stopping": name})) as self.interrupts:
                self.fitting.settle(self.gradients)
                if self.arithmetic.device.type == "cuda":  # also compiles the evaluation, before steps are timed
                    measure(self.learner, self._held_out[:1], self.arithmetic, self.ranks)
                self._train()
                stopped = self._stop_requested()
                if stopped:
                    self.save()
                    if self.progress.best_step is None:  # otherwise no model would be saved
                        if self.ranks.any(self.interrupts.terminating):
                            with self.checkpointer.kept_weights():
                                self.checkpointer.save_best(self.checkpointer.plain_model(), self.progress.step, None)
                        else:
                            self._evaluate()
                summary = self.finish(stopped)
                if stopped and not self.ranks.on_one_machine:
                    self.interrupts.require_own_signal(self.progress.step)
            return summary
        except NotWrittenError as error:
            raise CheckpointError(
                "{what}; free some space, then continue with {resume}. Last checkpoint: {last_good}",
                what=error.what,
                resume=Option("resume", True),
                last_good=self.checkpointer.last_good(),
            ) from error
        finally:
            self.folder.release()

    def _train(self) -> None:
        """Do the remaining steps unless a stop is requested."""
        config, progress, began = self.config, self.progress, time.perf_counter()
        self.deadline = min(self.deadline, began + self.time_limit)
        if self._evaluation_due():  # the run was stopped during this evaluation
            self._evaluate(until=self._stop_requested)
        last = time.perf_counter()
        while progress.step < config.steps and not self._stop_requested():
            if config.patience is not None and progress.evaluations_without_gain >= config.patience:
                break
            loss, norm = self.update(progress.step)
            progress.step += 1
            self._log_step(loss, norm)
            self._stragglers.step(progress.step, time.perf_counter() - last)
            if self._evaluation_due() and not self._stop_requested():
                self._evaluate(until=self._stop_requested)
                if math.isfinite(self.deadline):
                    self._adjust_to_time(began)
                config = self.config
            if self._due(config.checkpoint_every or config.evaluate_every) and not self._stop_requested():
                self.save()
            last = time.perf_counter()
        progress.stop_clock()

    def _stop_requested(self) -> bool:
        """Return whether any process has received a stop signal; all processes get the same result."""
        return self.ranks.any(self.interrupts.stop_requested)

    def _evaluation_due(self) -> bool:
        return self._due(self.config.evaluate_every) and 0 < self.progress.step != self.progress.evaluated_step

    def _due(self, every: int) -> bool:
        return self.progress.step % every == 0 or self.progress.step == self.config.steps

    # -- a step -----------------------------------------------------------------------------------------------------

    def update(self, step: int) -> tuple[Tensor, Tensor]:
        """Do one step and return the loss and the norm of the gradients."""
        self.progress.start_clock()
        self.optimizers.set_share(learning_rate_share(step, self.config))
        whole_step = lambda tensors, shares: (self._accumulate(tensors, shares), self._update_weights())
        done = self._recording.replay(whole_step, lambda: self._read(step))
        if done is None:
            loss = self.fitting.attempt(lambda: self.gradients(step), step)
            try:
                done = loss, self._update_weights()
            except OutOfMemory as error:
                raise self.fitting.failure(step) from error
        if self.average is not None and (step + 1) % self.config.ema_every == 0:
            self.average.update(self.model)
        self.progress.tokens += self._tokens_read * self.ranks.world
        return done

    def gradients(self, step: int) -> Tensor:
        """Compute the gradients for a step's batch and return its loss; safe to repeat."""
        batches, shares = self._read(step)
        return self._accumulate((batch.to(self.arithmetic.device) for batch in batches), shares)

    def _read(self, step: int) -> tuple[list[Batch], list[dict[str, float]]]:
        """Seed dropout; return the micro-batches of a step and the weight of each part of their losses."""
        seed = np.random.SeedSequence([self.config.seed, step, self.ranks.rank]).generate_state(1, np.uint64)[0]
        torch.manual_seed(int(seed))
        start, size, end = self.first_example, self.fitting.micro_batch_size, self.first_example + self.n_examples
        batches = [self.task.batch(step, first, min(size, end - first)) for first in range(start, end, size)]
        self._tokens_read = sum(batch.tokens for batch in batches)
        parts = batches[0].targets
        targets = self.ranks.totals({part: sum(batch.targets[part] for batch in batches) for part in parts})
        return batches, [{part: batch.targets[part] / targets[part] for part in parts} for batch in batches]

    def _accumulate(self, micro_batches: Iterable[Tensors], shares: Sequence[dict[str, float]]) -> Tensor:
        """Accumulate gradients over micro-batches (gradient accumulation)."""
        self.optimizers.zero_grad()
        total = torch.zeros((), device=self.arithmetic.device)
        for tensors, share in zip(micro_batches, shares, strict=True):
            with gradient_sync(self.learner, last=share is shares[-1]):
                with self.arithmetic.autocast():
                    losses = self.learner(tensors)
                # Each part is a mean over its targets; weighted by the share of targets, the parts add up to the mean
                # over the batch.
                loss = sum(losses[part] * each for part, each in share.items())
                assert isinstance(loss, Tensor)
                torch.autograd.backward(self.scaler.scale(loss * self.ranks.world))  # DDP and FSDP average gradients
            total += loss.detach()
        return self.ranks.sum(total)

    def _update_weights(self) -> Tensor:
        """Clip the gradients and update the weights; return the norm before clipping."""
        for member in self.optimizers.members:
            self.scaler.unscale_(member)
        norm = nn.utils.clip_grad_norm_(self.model.parameters(), self.config.gradient_clip or math.inf)
        self.optimizers.step(self.scaler)
        self.scaler.update()
        return unsharded(norm)

    # -- logging and evaluation -------------------------------------------------------------------------------------

    def _log_step(self, loss: Tensor, norm: Tensor) -> None:
        """Log a step; on a GPU only some steps are logged, because reading a value waits for the GPU."""
        progress, step = self.progress, self.progress.step
        if self.arithmetic.device.type == "cuda" and step % _GPU_LOG_EVERY and step != 1:
            return
        value = loss.item()
        complaint = progress.complaint(value, self.config.spike)
        if complaint:
            raise TrainingError(
                "the loss {complaint} at step {step}. Last good checkpoint: {last_good}. Try a lower learning_rate "
                "or a longer warm-up",
                complaint=complaint,
                step=step - 1,
                last_good=self.checkpointer.last_good(),
            )
        progress.stop_clock()
        peak = peak_flops_per_second(self.arithmetic.device, self.arithmetic.dtype) * self.ranks.world
        work = count_work(self.model.config, self.fitting.how.context_length).training_per_token
        self._emit(
            step=step,
            loss_nats=value,
            gradient_norm=norm.item(),
            learning_rate=self.config.learning_rate * learning_rate_share(step - 1, self.config),
            tokens=progress.tokens,
            tokens_per_second=progress.speeds[-1],
            peak_share=share_of_peak(work * progress.speeds[-1], peak),
            memory_bytes=peak_memory(self.arithmetic.device),
            seconds=progress.seconds,
        )
        progress.start_clock()

    @cached_property
    def _held_out(self) -> Sequence[Batch]:
        return self.task.validation()

    def _evaluate(self, until: Callable[[], bool] | None = None) -> None:
        """Evaluate the weights that would be saved, generate a sample, and save the weights if they are the best."""
        self.progress.stop_clock()
        progress = self.progress
        with self.checkpointer.kept_weights():
            found = measure(self.learner, self._held_out, self.arithmetic, self.ranks, until)
            if found is None:
                return
            score = self.task.score(*found)
            progress.evaluated_step = progress.step
            plain = self.checkpointer.plain_model()
            sample = self._sampler(plain) if self._sampler is not None and plain is not None else None
            error = self.task.error(score)
            if error < progress.best_loss:
                progress.best_loss, progress.best_step, progress.evaluations_without_gain = error, progress.step, 0
                self.checkpointer.save_best(plain, progress.step, score)
            else:
                progress.evaluations_without_gain += 1
        self._emit(step=progress.step, validation=score, sample=sample)

    def _emit(self, **event: Any) -> None:
        if self.ranks.writes:
            self.folder.log(**event)
        self._send(event)

    def _send(self, event: dict[str, Any]) -> None:
        """Pass an event to the listener, with the total number of steps and the stage."""
        if self.ranks.is_first and self._on_event is not None:
            self._on_event({**event, "steps": self.config.steps, **self.stage})

    # -- checkpoints ------------------------------------------------------------------------------------------------

    def save(self) -> None:
        """Write a checkpoint of the current state and remove old ones."""
        self.progress.stop_clock()
        sizes = {"micro_batch_size": self.fitting.micro_batch_size, "processes": self.ranks.world}
        state = {**asdict(self.progress), "scaler": self.scaler.state_dict(), **sizes}
        self.checkpointer.save(self.progress.step, state, self.progress.best_step)

    def resume(self) -> int:
        """Resume from the newest complete checkpoint and return its step, 0 if there is none."""
        try:
            state = self.checkpointer.restore()
            names = Progress.__dataclass_fields__
            self.progress = Progress(**{name: value for name, value in state.items() if name in names})
            if state.get("scaler"):
                self.scaler.load_state_dict(state["scaler"])
            if state.get("processes") == self.ranks.world and self.config.micro_batch_size is None:
                size = state["micro_batch_size"]
                self.fitting.micro_batch_size = max(1, min(int(size), self.n_examples))  # sums round in the same way
        except (AttributeError, KeyError, OverflowError, RuntimeError, TypeError, ValueError) as error:
            raise CheckpointError(
                "{last_good} is not a valid checkpoint: {error}", last_good=self.checkpointer.last_good(), error=error
            ) from error
        return self.progress.step

    def _adjust_to_time(self, began: float) -> None:
        """Change the number of steps if the machine is slower or faster than expected.

        The median step time ignores a few slow steps, such as the first. The new number of steps is saved in the
        config, for when the run is resumed.
        """
        done, spent, seconds = self.progress.step, time.perf_counter() - began, self.deadline - began
        usual = self.progress.tokens / done / median_high(self.progress.speeds)
        pace = usual + (spent - self.progress.seconds) / done  # including evaluations, samples and saving
        config = fit_to_time(self._planned, self.config.steps, done, spent, pace, seconds, self.most_steps)
        before, now = self.config.steps, config.steps
        if now == before:
            return
        how = Message("this machine is slower than when it was timed")
        how = how if now < before else Message("this machine is faster than when it was timed")
        self.say(Message("{how}: {steps:,} steps instead of {before:,}", how=how, steps=now, before=before))
        self.config = config
        self.task.set_total_steps(now)
        self.folder.change(config.to_dict())
        self.save()

    def finish(self, stopped: bool) -> dict[str, Any]:
        """Write and return the summary of the run."""
        summary = {
            "steps": self.progress.step,
            "best_step": self.progress.best_step,
            **(self.folder.best() or {"loss_nats": None}),  # None: not evaluated yet
            "tokens": self.progress.tokens,
            "tokens_per_second": self.progress.tokens / max(1e-9, self.progress.seconds),
            "seconds": self.progress.seconds,
            "peak_memory_bytes": peak_memory(self.arithmetic.device),
            "micro_batch_size": self.fitting.micro_batch_size,
            "processes": self.ranks.world,
            "precision": self.arithmetic.precision,
            "device": str(self.arithmetic.device),
            "stopped": stopped,
        }
        summary.pop("step", None)
        if self.ranks.writes:
            self.folder.write(runs.SUMMARY, summary)
        self.ranks.wait()
        return summary
