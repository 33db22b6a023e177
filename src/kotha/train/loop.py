"""The training loop, top to bottom.

A run is a function of its config, its data and its step: what a step reads depends on seed and step alone, and
everything that is carried from step to step is in the checkpoint. So a run that was stopped, killed or moved goes on as
if it had never stopped, bit for bit on the CPU.
"""

import math
import resource
import sys
import time
from collections import deque
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from kotha.errors import ConfigError, DataError, TrainingError
from kotha.model.config import GPTConfig, ModelConfig
from kotha.model.family import build
from kotha.model.gpt import GPT
from kotha.text.shards import Dataset
from kotha.train import run_folder
from kotha.train.averaging import Average, copy_into
from kotha.train.batches import make_batches
from kotha.train.checkpoint import (
    Checkpoint,
    checkpoint_path,
    latest_checkpoint,
    list_checkpoints,
    prune_checkpoints,
    save_checkpoint,
)
from kotha.train.config import TrainConfig
from kotha.train.interrupts import Interrupts
from kotha.train.objectives import next_token
from kotha.train.optimizer import Optimizers
from kotha.train.precision import choose_arithmetic
from kotha.train.run_folder import RunFolder
from kotha.train.schedule import learning_rate_share
from kotha.train.validation import Validation, validate

# Tokens that go through the model at once on a CPU when no micro-batch is given: more would not be faster there.
_CPU_TOKENS = 8192
_RECENT = 50

Sampler = Callable[[GPT], str]
OnEvent = Callable[[dict[str, Any]], None]


@dataclass
class Progress:
    """What a run carries from step to step besides weights and optimizers; saved in each checkpoint."""

    step: int = 0
    tokens: int = 0
    seconds: float = 0.0
    best_step: int | None = None
    best_loss: float = math.inf
    evaluations_without_gain: int = 0


class Training:
    """One run, from its first step or from its last checkpoint."""

    def __init__(
        self,
        model_config: ModelConfig,
        config: TrainConfig,
        data: Dataset,
        folder: RunFolder,
        *,
        sampler: Sampler | None = None,
        on_event: OnEvent | None = None,
        device: str | None = None,
    ) -> None:
        if not isinstance(model_config, GPTConfig):
            raise ConfigError(f"a {model_config.family} model cannot be trained on next tokens; use a gpt preset")
        if model_config.vocab_size < data.tokenizer.vocab_size:
            raise DataError(
                f"the model knows {model_config.vocab_size:,} tokens and the data has {data.tokenizer.vocab_size:,}; "
                f"use vocab_size={data.tokenizer.vocab_size}"
            )
        self.config, self.data, self.folder = config, data, folder
        self.sampler, self._on_event = sampler, on_event
        self.arithmetic = choose_arithmetic(config.precision, device)
        self.arithmetic.settle()
        self.context_length = config.context_length or model_config.context_length
        torch.manual_seed(config.seed)
        self.model: GPT = build(model_config).to(self.arithmetic.device)  # type: ignore[assignment]
        self.hidden: Any = self.model.hidden
        self.optimizers = Optimizers(self.model, config)
        self.average = Average(self.model, config.ema_decay) if config.ema_decay is not None else None
        self.batches = make_batches(config.sampling, data["train"], self.context_length, config.batch_size, config.seed)
        self.micro_batch_size = config.micro_batch_size or self._guess_micro_batch()
        self.scaler = torch.amp.GradScaler(enabled=self.arithmetic.precision == "float16")
        self.progress = Progress()
        self._recent: deque[float] = deque(maxlen=_RECENT)

    # -- the run ----------------------------------------------------------------------------------------------------

    def run(self) -> dict[str, Any]:
        """Train to the last step, or until stopped; returns the summary."""
        self._compile()
        self.model.train()
        clock = time.perf_counter()
        with Interrupts() as interrupts:
            while self.progress.step < self.config.steps:
                loss, norm = self._update(self.progress.step)
                self.progress.step += 1
                self.progress.tokens += self.config.batch_size * self.context_length
                now = time.perf_counter()
                self.progress.seconds, clock = self.progress.seconds + now - clock, now
                self._log_step(loss, norm)
                last = self.progress.step == self.config.steps or interrupts.asked
                if self.progress.step % self.config.evaluate_every == 0 or last:
                    self._evaluate()
                if self._checkpoint_due() or last:
                    self.save()
                if interrupts.asked or self._out_of_patience():
                    break
        return self._finish(stopped=interrupts.asked)

    def _update(self, step: int) -> tuple[Tensor, Tensor]:
        """One step: gradients of the whole batch, a micro-batch at a time; then move."""
        self.optimizers.set_share(learning_rate_share(step, self.config))
        self.optimizers.zero_grad()
        total = torch.zeros((), device=self.arithmetic.device)
        for first in range(0, self.config.batch_size, self.micro_batch_size):
            count = min(self.micro_batch_size, self.config.batch_size - first)
            sequences = torch.from_numpy(self.batches.sequences(step, first, count))
            with self.arithmetic.autocast():
                loss = next_token(self.model, self.hidden, self._to_device(sequences), self.config.label_smoothing)
            share = count / self.config.batch_size
            torch.autograd.backward(self.scaler.scale(loss * share))
            total += loss.detach() * share
        for member in self.optimizers.members:
            self.scaler.unscale_(member)
        limit = self.config.gradient_clip or math.inf
        norm = nn.utils.clip_grad_norm_(self.model.parameters(), limit)
        self.optimizers.step(self.scaler)
        self.scaler.update()
        if self.average is not None and (step + 1) % self.config.ema_every == 0:
            self.average.update(self.model)
        return total, norm

    def _to_device(self, sequences: Tensor) -> Tensor:
        if self.arithmetic.device.type == "cuda":
            return sequences.pin_memory().to(self.arithmetic.device, non_blocking=True)
        return sequences

    # -- looking ----------------------------------------------------------------------------------------------------

    def _log_step(self, loss: Tensor, norm: Tensor) -> None:
        """Log a step; on a GPU only some, because reading a number waits for the machine."""
        if self.arithmetic.device.type == "cuda" and self.progress.step % 10 and self.progress.step != 1:
            return
        value = loss.item()
        self._watch(value)
        step = self.progress.step
        self._emit(
            step=step,
            loss_nats=value,
            gradient_norm=norm.item(),
            learning_rate=self.config.learning_rate * learning_rate_share(step - 1, self.config),
            tokens=self.progress.tokens,
            tokens_per_second=self.progress.tokens / max(1e-9, self.progress.seconds),
        )

    def _watch(self, loss: float) -> None:
        """Stop at a loss that shows that something is wrong."""
        usual = sum(self._recent) / len(self._recent) if len(self._recent) == _RECENT else math.inf
        spike = self.config.spike is not None and loss > usual + self.config.spike
        if math.isfinite(loss) and not spike:
            self._recent.append(loss)
            return
        step = self.progress.step - 1
        what = f"rose to {loss:.3f} from about {usual:.3f}" if math.isfinite(loss) else f"is {loss}"
        saved = list_checkpoints(self.folder.checkpoints)
        last = str(checkpoint_path(self.folder.checkpoints, saved[-1])) if saved else "none yet"
        documents = ", ".join(map(str, self.batches.documents(step)[:20]))
        raise TrainingError(
            f"the loss {what} at step {step}. Documents of that batch: {documents}. Last good checkpoint: {last}. "
            "Try a lower learning_rate or a longer warm-up"
        )

    def _evaluate(self) -> Validation:
        """Measure on the validation set with the weights that would be kept, and write a sample."""
        with self._kept_weights():
            found = validate(
                self.model,
                self.hidden,
                self.data["validation"],
                self.context_length,
                self.arithmetic,
                self.config.evaluate_tokens,
            )
            sample = self.sampler(self.model) if self.sampler is not None else None
        if found.loss_nats < self.progress.best_loss:
            self.progress.best_loss, self.progress.best_step = found.loss_nats, self.progress.step
            self.progress.evaluations_without_gain = 0
        else:
            self.progress.evaluations_without_gain += 1
        self._emit(step=self.progress.step, validation=found.to_dict(), sample=sample)
        return found

    def _kept_weights(self) -> Any:
        return self.average.applied(self.model) if self.average is not None else nullcontext()

    def _emit(self, **event: Any) -> None:
        self.folder.log(**event)
        if self._on_event is not None:
            self._on_event(event)

    # -- keeping ----------------------------------------------------------------------------------------------------

    def save(self) -> Path:
        """Write a checkpoint of this moment, and let old ones go."""
        tensors: dict[str, dict[str, Tensor]] = {
            "model": {name: each.detach() for name, each in self.model.named_parameters()},
            "optimizer": self.optimizers.state(),
            "random": {"cpu": torch.get_rng_state()},
        }
        if self.arithmetic.device.type == "cuda":
            tensors["random"]["cuda"] = torch.cuda.get_rng_state(self.arithmetic.device)
        state = {**vars(self.progress), "recent": list(self._recent), "scaler": self.scaler.state_dict()}
        if self.average is not None:
            tensors["average"] = self.average.tensors
            state["average_updates"] = self.average.updates
        if not math.isfinite(self.progress.best_loss):
            state["best_loss"] = None
        path = save_checkpoint(self.folder.checkpoints, Checkpoint(self.progress.step, tensors, state))
        best = self.progress.best_step
        if best is not None:
            self.folder.write(run_folder.BEST, {"step": best, "loss_nats": self.progress.best_loss})
        prune_checkpoints(self.folder.checkpoints, self.config.keep_checkpoints, best)
        return path

    def resume(self) -> int:
        """Go on from the last checkpoint that is whole; returns its step, 0 where there is none."""
        saved = latest_checkpoint(self.folder.checkpoints)
        self.folder.forget_after(saved.step if saved else 0)
        if saved is None:
            return 0
        copy_into(self.model, saved.tensors["model"])
        self.optimizers.load_state(saved.tensors["optimizer"])
        torch.set_rng_state(saved.tensors["random"]["cpu"])
        if "cuda" in saved.tensors["random"] and self.arithmetic.device.type == "cuda":
            torch.cuda.set_rng_state(saved.tensors["random"]["cuda"], self.arithmetic.device)
        state = dict(saved.state)
        self._recent.extend(state.pop("recent"))
        self.scaler.load_state_dict(state.pop("scaler"))
        updates = state.pop("average_updates", 0)
        if self.average is not None:
            self.average.load(saved.tensors["average"], updates)
        state["best_loss"] = math.inf if state["best_loss"] is None else state["best_loss"]
        self.progress = Progress(**{**state, "step": saved.step})
        return saved.step

    def _checkpoint_due(self) -> bool:
        every = self.config.checkpoint_every or self.config.evaluate_every
        return self.progress.step % every == 0

    def _out_of_patience(self) -> bool:
        return self.config.patience is not None and self.progress.evaluations_without_gain >= self.config.patience

    def _finish(self, stopped: bool) -> dict[str, Any]:
        summary = {
            "steps": self.progress.step,
            "tokens": self.progress.tokens,
            "best_step": self.progress.best_step,
            "loss_nats": self.progress.best_loss,
            "bits_per_byte": self._bits(self.data["validation"].info.bytes),
            "bits_per_character": self._bits(self.data["validation"].info.characters),
            "tokens_per_second": self.progress.tokens / max(1e-9, self.progress.seconds),
            "peak_memory_bytes": self._peak_memory(),
            "precision": self.arithmetic.precision,
            "device": str(self.arithmetic.device),
            "stopped": stopped,
        }
        self.folder.write(run_folder.SUMMARY, summary)
        return summary

    def _bits(self, units: int) -> float:
        return self.progress.best_loss / math.log(2) * self.data["validation"].info.tokens / units

    def _peak_memory(self) -> int:
        if self.arithmetic.device.type == "cuda":
            return torch.cuda.max_memory_allocated(self.arithmetic.device)
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024

    # -- the machine ------------------------------------------------------------------------------------------------

    def _guess_micro_batch(self) -> int:
        if self.arithmetic.device.type == "cpu":
            return max(1, min(self.config.batch_size, _CPU_TOKENS // self.context_length))
        return self.config.batch_size

    def _compile(self) -> None:
        """Compile the body where it pays; what cannot be compiled runs as it is, and says so."""
        wanted = self.config.compile == "on" or (
            self.config.compile == "auto" and self.arithmetic.device.type == "cuda"
        )
        if not wanted:
            return
        torch.set_float32_matmul_precision("high")
        compiled = torch.compile(self.model.hidden)
        try:
            with self.arithmetic.autocast(), torch.no_grad():
                compiled(torch.zeros(2, self.context_length, dtype=torch.long, device=self.arithmetic.device))
            self.hidden = compiled
        except Exception as error:  # whatever the compiler lacks on this machine
            print(f"kotha: not compiled ({type(error).__name__}: {str(error).splitlines()[0]})", file=sys.stderr)
