"""The training loop, top to bottom.

A run is a function of its config, its data and its step: what a step reads and which units it drops depend on seed and
step alone, and everything that is carried from step to step is in the checkpoint. So a run that was stopped, killed or
moved goes on as if it had never stopped, bit for bit on the CPU.
"""

import math
import time
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, field
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
from kotha.model.lora import add_low_rank, learned_whole
from kotha.storage.atomic import NotWrittenError
from kotha.training.checkpointer import Checkpointer, Interrupts
from kotha.training.config import TrainConfig, check_settings
from kotha.training.device import choose_arithmetic, largest_memory, peak_flops_per_second, peak_memory, share_of_peak
from kotha.training.distributed import ALONE, Ranks, Stragglers, distribute, gathering, whole
from kotha.training.execution import Fitting, Learner, OutOfMemory, Recording, blocks, measure
from kotha.training.optim import Average, Optimizers, learning_rate_share
from kotha.training.plan.memory import check_room, how_planned
from kotha.training.plan.rules import fit_to_time
from kotha.training.plan.step_time import count_work
from kotha.training.tasks.task import Batch, Task, Tensors

# Reading a number from a GPU waits for it, so only every so many steps are logged there.
_GPU_LOG_EVERY = 10
_RECENT, _LAST_SPEEDS = 50, 200

Sampler = Callable[[Any], str]
OnEvent = Callable[[dict[str, Any]], None]


@dataclass
class Progress:
    """What a run carries from step to step besides weights and optimizers; saved in each checkpoint.

    It has the clock, which counts the seconds that go into learning, not those of measuring and saving.
    """

    step: int = 0
    tokens: int = 0
    seconds: float = 0.0
    best_step: int | None = None
    best_loss: float = math.inf
    evaluations_without_gain: int = 0
    evaluated_step: int = 0
    recent: list[float] = field(default_factory=list)  # the last losses

    def __post_init__(self) -> None:
        self.recent = [float(loss) for loss in self.recent]
        self.speeds: deque[float] = deque(maxlen=_LAST_SPEEDS)  # tokens per second, of the last steps
        self._since: tuple[float, int] | None = None

    def start_clock(self) -> None:
        """Count from here, unless it already counts."""
        self._since = self._since or (time.perf_counter(), self.tokens)

    def stop_clock(self) -> None:
        """Add what has passed."""
        if self._since is not None:
            seconds, tokens = time.perf_counter() - self._since[0], self.tokens - self._since[1]
            self.seconds += seconds
            if tokens:
                self.speeds.append(tokens / max(1e-9, seconds))
            self._since = None

    def complaint(self, loss: float, spike: float | None) -> Message | None:
        """What is wrong with a new loss, no number or a jump; None when nothing is, and it is remembered."""
        if not math.isfinite(loss):
            return Message("is {loss}", loss=loss)
        usual = sum(self.recent) / _RECENT if len(self.recent) == _RECENT else math.inf
        if spike is not None and loss > usual + spike:
            return Message("rose to {loss:.3f} from about {usual:.3f}", loss=loss, usual=usual)
        self.recent = [*self.recent, loss][-_RECENT:]
        return None


class Training:
    """One run, from its first step or from its last checkpoint."""

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
        """Build the model; ``initialize`` may put other weights into it than those of chance."""
        self.config, self.task, self.folder, self.ranks = config, task, folder, ranks
        self._sampler, self._on_event, self.say, self._planned = sampler, on_event, on_remark, config
        check_settings(model_config, config)
        self.deadline = math.inf  # on the clock of time.perf_counter
        self.most_steps: int | None = None  # that the text bears; None: no more than were planned
        self.first_example, self.n_examples = ranks.share(config.batch_size)
        if config.lora is not None and ranks.sharded:
            raise ConfigError("lora trains too few parameters to shard; remove shard")
        self.arithmetic = choose_arithmetic(config.precision, ranks.device, folder.machine())
        self.arithmetic.settle()
        device = self.arithmetic.device
        how = how_planned(model_config, config, self.arithmetic, ranks.world, ranks.sharded)
        check_room(model_config, config, largest_memory(device), how)
        torch.manual_seed(config.seed)
        self.model: Model = build(model_config).to(device)
        if initialize is not None:
            initialize(self.model)
        if config.lora is not None:
            add_low_rank(self.model, config.lora, config.lora_alpha, whole=learned_whole(model_config.family))
        learner = Learner(self.model, task)
        self.learner = distribute(learner, ranks, device)
        self.optimizers = Optimizers(self.model, config)
        self.average = Average(self.model, config.ema_decay) if config.ema_decay is not None else None
        self.progress = Progress()
        self.checkpointer = Checkpointer(folder, self.model, config, task, self.optimizers, self.average, ranks)
        self.scaler = torch.amp.GradScaler(enabled=self.arithmetic.precision == "float16")
        self.fitting = Fitting(self.model, config, self.arithmetic, ranks, how, on_remark, task.auxiliary_models)
        records = ranks.alone and self.arithmetic.precision != "float16" and config.compile != "off"
        self._recording = Recording(device, wanted=records)
        timed = [learner] if how.compiled else blocks(self.model)  # no compiler likes a clock inside
        self._stragglers = Stragglers(ranks, timed, device, on_remark)

    # -- the run ----------------------------------------------------------------------------------------------------

    def run(self) -> dict[str, Any]:
        """Train to the last step, or until stopped; returns the summary.

        Who is asked to stop saves first: a validation can take longer than whoever asked will wait.
        """
        self.learner.train()
        try:
            with Interrupts(lambda name: self._hear({"step": self.progress.step, "stopping": name})) as self.interrupts:
                self.fitting.settle(self.gradients)
                self._learn()
                stopped = self._asked()
                if stopped:
                    self.save()
                    if self.progress.best_step is None and not self.ranks.any(self.interrupts.hurried):
                        self._evaluate()  # without it there would be no model at all
                summary = self._finish(stopped)
                if stopped and not self.ranks.on_one_machine:
                    self.interrupts.expect(self.progress.step)
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

    def _learn(self) -> None:
        """Do all the steps that are left, or those until it is asked to stop."""
        config, progress, began = self.config, self.progress, time.perf_counter()
        if self._evaluation_due():  # it was stopped in the middle of this one
            self._evaluate(until=self._asked)
        last = time.perf_counter()
        while progress.step < config.steps and not self._asked():
            if config.patience is not None and progress.evaluations_without_gain >= config.patience:
                break
            loss, norm = self.update(progress.step)
            progress.step += 1
            self._log_step(loss, norm)
            self._stragglers.step(progress.step, time.perf_counter() - last)
            if self._evaluation_due() and not self._asked():
                self._evaluate(until=self._asked)
                if math.isfinite(self.deadline):
                    self._keep_to_time(began)
                config = self.config
            if self._due(config.checkpoint_every or config.evaluate_every) and not self._asked():
                self.save()
            last = time.perf_counter()
        progress.stop_clock()

    def _asked(self) -> bool:
        """Whether any process was asked to stop; all get the same answer."""
        return self.ranks.any(self.interrupts.asked)

    def _evaluation_due(self) -> bool:
        return self._due(self.config.evaluate_every) and 0 < self.progress.step != self.progress.evaluated_step

    def _due(self, every: int) -> bool:
        return self.progress.step % every == 0 or self.progress.step == self.config.steps

    # -- a step -----------------------------------------------------------------------------------------------------

    def update(self, step: int) -> tuple[Tensor, Tensor]:
        """One step: gradients of the whole batch, then move; gives the loss and the norm of the gradients."""
        self.progress.start_clock()
        self.optimizers.set_share(learning_rate_share(step, self.config))
        whole_step = lambda tensors, shares: (self._accumulate(tensors, shares), self._move())
        done = self._recording.replay(whole_step, lambda: self._read(step))
        if done is None:
            loss = self.fitting.attempt(lambda: self.gradients(step), step)
            try:
                done = loss, self._move()
            except OutOfMemory as error:
                raise self.fitting.failure(step) from error
        if self.average is not None and (step + 1) % self.config.ema_every == 0:
            self.average.update(self.model)
        self.progress.tokens += self._tokens_read * self.ranks.world
        return done

    def gradients(self, step: int) -> Tensor:
        """The gradients of a step's batch; gives its loss. It can be done again."""
        batches, shares = self._read(step)
        return self._accumulate((batch.to(self.arithmetic.device) for batch in batches), shares)

    def _read(self, step: int) -> tuple[list[Batch], list[dict[str, float]]]:
        """The micro-batches of a step, and what share of the whole loss each part of theirs is; seeds dropout."""
        seed = np.random.SeedSequence([self.config.seed, step, self.ranks.rank]).generate_state(1, np.uint64)[0]
        torch.manual_seed(int(seed))
        start, size, end = self.first_example, self.fitting.micro_batch_size, self.first_example + self.n_examples
        batches = [self.task.batch(step, first, min(size, end - first)) for first in range(start, end, size)]
        self._tokens_read = sum(batch.tokens for batch in batches)
        parts = batches[0].targets
        targets = self.ranks.totals({part: sum(batch.targets[part] for batch in batches) for part in parts})
        return batches, [{part: batch.targets[part] / targets[part] for part in parts} for batch in batches]

    def _accumulate(self, micro_batches: Iterable[Tensors], shares: Sequence[dict[str, float]]) -> Tensor:
        """Gradients a micro-batch at a time (gradient accumulation)."""
        self.optimizers.zero_grad()
        total = torch.zeros((), device=self.arithmetic.device)
        for tensors, share in zip(micro_batches, shares, strict=True):
            with gathering(self.learner, last=share is shares[-1]):
                with self.arithmetic.autocast():
                    losses = self.learner(tensors)
                # Each part is a mean over its targets; over all micro-batches and processes these add up to the mean.
                loss = sum(losses[part] * each for part, each in share.items())
                assert isinstance(loss, Tensor)
                torch.autograd.backward(self.scaler.scale(loss * self.ranks.world))  # gradients will be averaged
            total += loss.detach()
        return self.ranks.sum(total)

    def _move(self) -> Tensor:
        """Clip the gradients and move the weights; gives the norm that the gradients had."""
        for member in self.optimizers.members:
            self.scaler.unscale_(member)
        norm = nn.utils.clip_grad_norm_(self.model.parameters(), self.config.gradient_clip or math.inf)
        self.optimizers.step(self.scaler)
        self.scaler.update()
        return whole(norm)

    # -- looking ----------------------------------------------------------------------------------------------------

    def _log_step(self, loss: Tensor, norm: Tensor) -> None:
        """Log a step; on a GPU only some, because reading a number waits for the machine."""
        progress, step = self.progress, self.progress.step
        if self.arithmetic.device.type == "cuda" and step % _GPU_LOG_EVERY and step != 1:
            return
        value = loss.item()
        complaint = progress.complaint(value, self.config.spike)
        if complaint:
            raise TrainingError(
                "the loss {complaint} at step {step}. Last good checkpoint: {last_good}. Try a lower learning_rate or "
                "a longer warm-up",
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
        """Measure with the weights that would be kept, write a sample, and keep them if they are the best so far."""
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
        self._hear(event)

    def _hear(self, event: dict[str, Any]) -> None:
        """Hand an event to who listens, with the steps that there will be."""
        if self.ranks.is_first and self._on_event is not None:
            self._on_event({**event, "steps": self.config.steps})

    # -- keeping ----------------------------------------------------------------------------------------------------

    def save(self) -> None:
        """Write a checkpoint of this moment, and let old ones go."""
        self.progress.stop_clock()
        sizes = {"micro_batch_size": self.fitting.micro_batch_size, "processes": self.ranks.world}
        state = {**asdict(self.progress), "scaler": self.scaler.state_dict(), **sizes}
        self.checkpointer.save(self.progress.step, state, self.progress.best_step)

    def resume(self) -> int:
        """Go on from the last checkpoint that is whole; returns its step, 0 where there is none."""
        try:
            state = self.checkpointer.restore()
            names = Progress.__dataclass_fields__
            self.progress = Progress(**{name: value for name, value in state.items() if name in names})
            if state.get("scaler"):
                self.scaler.load_state_dict(state["scaler"])
            if state.get("processes") == self.ranks.world and self.config.micro_batch_size is None:
                size = state["micro_batch_size"]
                self.fitting.micro_batch_size = max(1, min(int(size), self.n_examples))  # sums round the same
        except (AttributeError, KeyError, OverflowError, RuntimeError, TypeError, ValueError) as error:
            raise CheckpointError(
                "{last_good} is not a valid checkpoint: {error}", last_good=self.checkpointer.last_good(), error=error
            ) from error
        return self.progress.step

    def _keep_to_time(self, began: float) -> None:
        """Go on with fewer steps if all would take too long, and with more once it is faster.

        The median passes over a few slow steps, such as the first. Who resumes this run finds the steps in its config.
        """
        done, spent, seconds = self.progress.step, time.perf_counter() - began, self.deadline - began
        usual = self.progress.tokens / done / median_high(self.progress.speeds)
        pace = usual + (spent - self.progress.seconds) / done  # with its share of evaluations, samples and saving
        config = fit_to_time(self._planned, self.config.steps, done, spent, pace, seconds, self.most_steps)
        before, now = self.config.steps, config.steps
        if now == before:
            return
        how = Message("slower than when this machine was timed")
        how = how if now < before else Message("faster than when this machine was timed")
        self.say(Message("{how}: {steps:,} steps instead of {before:,}", how=how, steps=now, before=before))
        self.config = config
        self.task.set_total_steps(now)
        self.folder.change(config.to_dict())
        self.save()

    def _finish(self, stopped: bool) -> dict[str, Any]:
        summary = {
            "steps": self.progress.step,
            "best_step": self.progress.best_step,
            **(self.folder.best() or {"loss_nats": None}),  # None: not measured yet
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
