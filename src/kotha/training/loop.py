"""The training loop, top to bottom.

A run is a function of its config, its data and its step: what a step reads and which units it drops depend on seed and
step alone, and everything that is carried from step to step is in the checkpoint. So a run that was stopped, killed or
moved goes on as if it had never stopped, bit for bit on the CPU.
"""

import math
import time
from collections.abc import Callable, Iterable, Sequence
from functools import cached_property
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from kotha.artifacts import run_folder as runs
from kotha.artifacts.run_folder import RunFolder
from kotha.errors import CheckpointError, ConfigError, TrainingError
from kotha.model.config import ModelConfig
from kotha.model.family import Model, build
from kotha.model.lora import add_low_rank, learned_whole
from kotha.storage.atomic import NotWrittenError
from kotha.training.checkpointer import Checkpointer, Clock, Interrupts, Progress, Watch, steps_changed
from kotha.training.config import TrainConfig
from kotha.training.device import choose_arithmetic, largest_memory, peak_flops_per_second, peak_memory, share_of_peak
from kotha.training.distributed import ALONE, Ranks, Stragglers, distribute, gathering, whole
from kotha.training.fitting import Fitting, OnRemark, OutOfMemory, Recording, blocks, validate
from kotha.training.optim import Average, Optimizers, learning_rate_share, swapped_weights
from kotha.training.plan.memory import check_room, how_planned
from kotha.training.plan.rules import fit_to_time
from kotha.training.plan.step_time import count_work
from kotha.training.tasks.task import Batch, Learner, Task, Tensors

# Reading a number from a GPU waits for it, so only every so many steps are logged there.
_GPU_LOG_EVERY = 10
_ASKED_SOON = 5.0  # seconds in which torchrun asks all of its processes to stop, if it asks one

Sampler = Callable[[Any], str]
OnEvent = Callable[[dict[str, Any]], None]


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
        self.sampler, self._on_event = sampler, on_event
        self.first_example, self.n_examples = ranks.share(config.batch_size)
        if config.lora is not None and ranks.sharded:
            raise ConfigError("lora learns so few numbers that none are sharded; leave shard out")
        self.arithmetic = choose_arithmetic(config.precision, ranks.device, folder.machine())
        self.arithmetic.settle()
        how = how_planned(model_config, config, self.arithmetic, ranks.world, ranks.sharded)
        check_room(model_config, config, largest_memory(self.arithmetic.device), how)
        torch.manual_seed(config.seed)
        self.model: Model = build(model_config).to(self.arithmetic.device)
        if initialize is not None:
            initialize(self.model)
        lora = None if config.lora is None else (config.lora, config.lora_alpha)
        if lora is not None:
            add_low_rank(self.model, *lora, whole=learned_whole(model_config.family))
        learner = Learner(self.model, task)
        self.learner = distribute(learner, ranks, self.arithmetic.device)
        self.optimizers = Optimizers(self.model, config)
        self.average = Average(self.model, config.ema_decay) if config.ema_decay is not None else None
        self.checkpointer = Checkpointer(folder, self.model, task, self.optimizers, self.average, ranks, lora)
        self.scaler = torch.amp.GradScaler(enabled=self.arithmetic.precision == "float16")
        self.fitting = Fitting(self.model, config, self.arithmetic, ranks, on_remark, task.auxiliary_models)
        records = ranks.alone and self.arithmetic.precision != "float16" and config.compile != "off"
        self._recording = Recording(self.arithmetic.device, wanted=records)
        self._tokens_read = 0
        self._flops_per_token = count_work(model_config, self.fitting.context_length).training_per_token
        self.watch = Watch(config.spike)
        self.progress = Progress()
        self.deadline = math.inf  # on the clock of time.perf_counter
        self.most_steps: int | None = None  # that the text bears; None: no more than were planned
        self._planned = config
        self._clock = Clock()
        timed = [learner] if self.fitting.compiled else blocks(self.model)  # no compiler likes a clock inside
        self._pace = Stragglers(ranks, timed, self.arithmetic.device, on_remark)

    # -- the run ----------------------------------------------------------------------------------------------------

    def run(self) -> dict[str, Any]:
        """Train to the last step, or until stopped; returns the summary.

        Who is asked to stop saves first: a validation can take longer than whoever asked will wait.
        """
        self.learner.train()
        try:
            with Interrupts(lambda name: self._hear({"step": self.progress.step, "stopping": name})) as self.interrupts:
                self.fitting.settle(self.gradients)
                stopped = self._learn()
                if stopped:
                    self.save()
                    if self.progress.best_step is None and not self.ranks.any(self.interrupts.hurried):
                        self._evaluate()  # without it there would be no model at all
                else:
                    self._try_mean_of_last()
                summary = self._finish(stopped)
                if stopped:
                    self._stop_with_others()
            return summary
        except NotWrittenError as error:
            raise CheckpointError("{what}; {hint}", what=error.what, hint=self.checkpointer.resume_hint()) from error
        finally:
            self.folder.release()

    def _learn(self) -> bool:
        """Do all the steps that are left; whether it was stopped before the last."""
        if self._evaluation_due():  # it was stopped in the middle of this one
            self._evaluate(until=self._asked)
        began = time.perf_counter()
        while self.progress.step < self.config.steps and not self._asked() and not self._out_of_patience():
            loss, norm = self.update(self.progress.step)
            self.progress.step += 1
            self._log_step(loss, norm)
            self._pace.step(self.progress.step)
            if self._evaluation_due() and not self._asked():
                self._pause()
                self._evaluate(until=self._asked)
                self._keep_to_time(began)
            if self._checkpoint_due() and not self._asked():
                self._pause()
                self.save()
        self._clock.stop(self.progress)
        return self._asked()

    def _pause(self) -> None:
        """What comes now is no step: clocks stand."""
        self._clock.stop(self.progress)
        self._pace.rest()

    def _keep_to_time(self, began: float) -> None:
        """Go on with fewer steps if all would take too long, and with more once it is faster.

        The median passes over a few slow steps, such as the first. Who resumes this run finds the steps in its config.
        """
        if math.isinf(self.deadline):
            return
        done, spent, seconds = self.progress.step, time.perf_counter() - began, self.deadline - began
        usual = self.progress.tokens / done / self._clock.usual_speed
        pace = usual + (spent - self.progress.seconds) / done  # with its share of evaluations, samples and saving
        config = fit_to_time(self._planned, self.config.steps, done, spent, pace, seconds, self.most_steps)
        if config.steps != self.config.steps:
            self.fitting.on_remark(steps_changed(self.config.steps, config.steps, self._planned.steps))
            self.config = config
            self.task.set_total_steps(config.steps)
            self.folder.change(config.to_dict())
            self.save()

    def _asked(self) -> bool:
        """Whether any process was asked to stop; all get the same answer."""
        return self.ranks.any(self.interrupts.asked)

    def _stop_with_others(self) -> None:
        """Of several machines perhaps only one was asked to stop, and the others go on without it.

        torchrun asks all, one soon after the other, where another machine has come; then it starts them again. It takes
        one that ends well for the end of the run.
        """
        if self.ranks.on_one_machine:
            return
        if not self.interrupts.comes_within(_ASKED_SOON):
            raise TrainingError(
                "another machine was asked to stop, so all have saved at step {step:,}; torchrun starts those "
                "that are left again, if it may",
                step=self.progress.step,
            )

    def _evaluation_due(self) -> bool:
        step = self.progress.step
        due = step % self.config.evaluate_every == 0 or step == self.config.steps
        return due and 0 < step != self.progress.evaluated_step

    def update(self, step: int) -> tuple[Tensor, Tensor]:
        """One step: gradients of the whole batch, then move."""
        self._clock.start(self.progress)
        self.optimizers.set_share(learning_rate_share(step, self.config))
        whole_step = lambda tensors, shares: (self._accumulate(tensors, shares), self._move())
        done = self._recording.replay(whole_step, lambda: self._read(step))
        if done is None:
            loss = self.fitting.attempt(lambda: self.gradients(step), step, self.checkpointer.last_good)
            try:
                done = loss, self._move()
            except OutOfMemory as error:
                raise self.fitting.failure(step, self.checkpointer.last_good()) from error
        if self.average is not None and (step + 1) % self.config.ema_every == 0:
            self.average.update(self.model)
        self.progress.tokens += self._tokens_read * self.ranks.world
        return done

    def _read(self, step: int) -> tuple[list[Batch], list[dict[str, float]]]:
        """The micro-batches of a step, and what share of the whole loss each part of theirs is; seeds dropout."""
        seed = np.random.SeedSequence([self.config.seed, step, self.ranks.rank]).generate_state(1, np.uint64)[0]
        torch.manual_seed(int(seed))
        end = self.first_example + self.n_examples
        firsts = range(self.first_example, end, self.fitting.micro_batch_size)
        counts = [min(self.fitting.micro_batch_size, end - first) for first in firsts]
        batches = [self.task.batch(step, first, count) for first, count in zip(firsts, counts, strict=True)]
        self._tokens_read = sum(batch.tokens for batch in batches)
        parts = batches[0].targets
        targets = self.ranks.totals({part: sum(batch.targets[part] for batch in batches) for part in parts})
        return batches, [{part: batch.targets[part] / targets[part] for part in parts} for batch in batches]

    def gradients(self, step: int) -> Tensor:
        """The gradients of a step's batch; gives its loss. It can be done again."""
        batches, shares = self._read(step)
        return self._accumulate((batch.to(self.arithmetic.device) for batch in batches), shares)

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
        step = self.progress.step
        if self.arithmetic.device.type == "cuda" and step % _GPU_LOG_EVERY and step != 1:
            return
        value = loss.item()
        complaint = self.watch.complaint(value)
        if complaint:
            raise TrainingError(
                "the loss {complaint} at step {step}. Documents of that batch: {documents}. Last good checkpoint: "
                "{last_good}. Try a lower learning_rate or a longer warm-up",
                complaint=complaint,
                step=step - 1,
                documents=[str(each) for each in self.task.document_ids(step - 1)[:20]],
                last_good=self.checkpointer.last_good(),
            )
        self._clock.stop(self.progress)
        peak = peak_flops_per_second(self.arithmetic.device, self.arithmetic.dtype) * self.ranks.world
        self._emit(
            step=step,
            loss_nats=value,
            gradient_norm=norm.item(),
            learning_rate=self.config.learning_rate * learning_rate_share(step - 1, self.config),
            tokens=self.progress.tokens,
            tokens_per_second=self._clock.tokens_per_second,
            peak_share=share_of_peak(self._flops_per_token * self._clock.tokens_per_second, peak),
            memory_bytes=peak_memory(self.arithmetic.device),
            seconds=self.progress.seconds,
        )
        self._clock.start(self.progress)

    def _evaluate(self, until: Callable[[], bool] | None = None) -> None:
        """Measure with the weights that would be kept, write a sample, and keep them if they are the best so far."""
        with self.checkpointer.kept_weights():
            self._judge(until)

    @cached_property
    def _held_out(self) -> Sequence[Batch]:
        return self.task.validation()

    def _judge(self, until: Callable[[], bool] | None = None, **about: Any) -> None:
        found = validate(self.learner, self._held_out, self.arithmetic, self.ranks, until)
        if found is None:
            return
        score = self.task.score(*found)
        self.progress.evaluated_step = self.progress.step
        plain = self.checkpointer.plain_model()
        sample = self.sampler(plain) if self.sampler is not None and plain is not None else None
        error = self.task.error(score)
        if error < self.progress.best_loss:
            self.progress.best_loss, self.progress.best_step = error, self.progress.step
            self.progress.evaluations_without_gain = 0
            self.checkpointer.save_best(plain, self.progress.step, score)
        else:
            self.progress.evaluations_without_gain += 1
        self._emit(step=self.progress.step, validation=score, sample=sample, **about)

    def _try_mean_of_last(self) -> None:
        """At the end, see whether the mean of the last checkpoints is better than each."""
        count = self.config.average_last
        mean = self.checkpointer.mean_of_last(count) if count is not None else None
        if mean is None:
            return
        with swapped_weights(self.model, mean):
            self._judge(average_of=count)

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
        more = {
            "recent": list(self.watch.recent),
            "scaler": self.scaler.state_dict(),
            "micro_batch_size": self.fitting.micro_batch_size,
            "processes": self.ranks.world,
        }
        self.checkpointer.save(self.progress, more, self._keep)

    @property
    def _keep(self) -> int:
        """How many checkpoints stay; a mean of the last needs all that it is made of."""
        return max(self.config.keep_checkpoints, self.config.average_last or 1)

    def resume(self) -> int:
        """Go on from the last checkpoint that is whole; returns its step, 0 where there is none."""
        try:
            self.progress, more = self.checkpointer.restore(self._keep)
            self.watch.recent.extend(float(loss) for loss in more.get("recent", []))
            if more.get("scaler"):
                self.scaler.load_state_dict(more["scaler"])
            if more.get("processes") == self.ranks.world and self.config.micro_batch_size is None:
                size = more["micro_batch_size"]
                self.fitting.micro_batch_size = max(1, min(int(size), self.n_examples))  # sums round the same
        except (AttributeError, KeyError, OverflowError, RuntimeError, TypeError, ValueError) as error:
            raise CheckpointError(
                "{last_good} holds what no run saves: {error}", last_good=self.checkpointer.last_good(), error=error
            ) from error
        return self.progress.step

    def _checkpoint_due(self) -> bool:
        step = self.progress.step
        return step % (self.config.checkpoint_every or self.config.evaluate_every) == 0 or step == self.config.steps

    def _out_of_patience(self) -> bool:
        return self.config.patience is not None and self.progress.evaluations_without_gain >= self.config.patience

    def _finish(self, stopped: bool) -> dict[str, Any]:
        best: dict[str, float | None] = dict(self.folder.best() or {"loss_nats": None})  # None: not measured yet
        best.pop("step", None)
        summary = {
            "steps": self.progress.step,
            "best_step": self.progress.best_step,
            **best,
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
        if self.ranks.writes:
            self.folder.write(runs.SUMMARY, summary)
        self.ranks.wait()
        return summary
