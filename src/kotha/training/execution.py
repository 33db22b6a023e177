"""Execute training steps: compiled if that is faster, in micro-batches that fit in memory, and recorded on a GPU.

The gradients of a step are summed over its micro-batches (gradient accumulation), so their size affects only the speed.
The planned size is tested before the first step; on a GPU, by a pass that does not update the weights. If a micro-batch
does not fit in memory, its size is halved and the step is repeated. If the user chose the size, an error with
suggestions is raised instead.

A step of a small model consists of hundreds of short kernels, and launching them one by one leaves a GPU idle for
almost half of the time. After a few ordinary steps, one step is therefore recorded as a CUDA graph, which is then
launched as a whole for every further step. Only the batch, the learning rate and the dropout seed change, and the
recorded step reads these from memory. A batch of another shape is executed without the graph; if shapes change at every
step, nothing is recorded.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import torch
from torch import Tensor, nn

from kotha.errors import KothaError, TrainingError
from kotha.i18n.message import Message, OnRemark
from kotha.model.block import Block
from kotha.model.evaluating import evaluating
from kotha.model.family import Model
from kotha.training.config import TrainConfig
from kotha.training.device import Arithmetic, available_memory
from kotha.training.distributed import Ranks, reshard
from kotha.training.plan.memory import MemoryConditions, largest_micro_batch
from kotha.training.tasks.task import Batch, Task, Tensors

OutOfMemory = torch.OutOfMemoryError
Result = TypeVar("Result")


class BatchFitter:
    """Chooses compilation and micro-batch size for a run."""

    def __init__(
        self,
        model: Model,
        config: TrainConfig,
        arithmetic: Arithmetic,
        ranks: Ranks,
        how: MemoryConditions,
        say: OnRemark = lambda _: None,
        task: Task | None = None,
    ) -> None:
        self._model, self._config, self._arithmetic, self._ranks = model, config, arithmetic, ranks
        self.how, self._say = how, say
        self._task = task
        available = available_memory(arithmetic.device)
        planned = largest_micro_batch(model.config, config, available, how)
        self.micro_batch_size = min(planned, ranks.share(config.batch_size)[1])

    def settle(self, gradients: Callable[[int], Any]) -> None:
        """Compile the model and check that the gradients of a step can be computed."""
        if self._arithmetic.device.type == "cuda":
            torch.set_float32_matmul_precision("high")
            torch.compiler.set_stance("force_eager" if self._config.compile == "off" else "default")
        compiled = self.how.compiled
        layers = blocks(self._model, *(self._task.auxiliary_models if self._task else ())) if compiled else []
        for block in layers:  # identical blocks share one compiled graph
            block.compile()
        if not compiled and self._arithmetic.device.type == "cpu":
            return  # there is nothing to compile, and a CPU swaps instead of running out of memory
        try:
            self.attempt(lambda: gradients(0), 0)
        except KothaError:
            raise
        except Exception as error:  # compilation fails in many ways, for example without a C compiler
            if not compiled:
                raise
            for block in layers:
                block._compiled_call_impl = None
            why = str(error).splitlines()[0]
            self._say(Message("not compiled ({kind}: {why})", kind=type(error).__name__, why=why))
            self.attempt(lambda: gradients(0), 0)
        self.micro_batch_size = min(self._ranks.each(self.micro_batch_size))

    def attempt(self, work: Callable[[], Result], step: int) -> Result:
        """Call a repeatable function; if it runs out of memory, call it again with smaller micro-batches."""
        while True:
            try:
                return work()
            except OutOfMemory as error:
                if self._config.micro_batch_size is not None or self.micro_batch_size == 1 or not self._ranks.alone:
                    raise self.failure(step) from error
            self.micro_batch_size = (self.micro_batch_size + 1) // 2
            self._model.zero_grad(set_to_none=True)
            torch.cuda.empty_cache()
            message = "out of memory; continuing with micro_batch_size={micro_batch_size}"
            self._say(Message(message, micro_batch_size=self.micro_batch_size))

    def failure(self, step: int) -> TrainingError:
        """Return the error to raise if no smaller micro-batch can be tried."""
        smaller = max(1, self.micro_batch_size // 2)
        change = (
            Message("a smaller micro_batch_size, such as {smaller} (the result is the same)", smaller=smaller)
            if self.micro_batch_size > 1
            else Message("a shorter context_length, a smaller model, or weights sharded over several machines")
        )
        return TrainingError(
            "out of memory at step {step} with micro_batch_size={micro_batch_size}; use {change}",
            step=step,
            micro_batch_size=self.micro_batch_size,
            change=change,
        )


def blocks(*models: nn.Module) -> list[Block]:
    """Return the transformer blocks of the models."""
    return [module for model in models for module in model.modules() if isinstance(module, Block)]


# -- CUDA graphs -------------------------------------------------------------------------------------------------------


# Ordinary steps of one shape before recording; they compile kernels and allocate the optimizer state.
_ORDINARY = 3

Shares = Sequence[dict[str, float]]  # for each micro-batch, the weight of each part of its loss in the total loss
Outputs = tuple[Tensor, Tensor]
Work = Callable[[Sequence[Tensors], Shares], Outputs]
"""A step on tensors on the device; returns the loss and the norm of the gradients."""


class CUDAGraph:
    """Records a step as a CUDA graph when possible, and replays it."""

    def __init__(self, device: torch.device, wanted: bool) -> None:
        self._device = device
        self._wanted = wanted and device.type == "cuda"
        self._ordinary_steps = 0  # consecutive, with the shapes in _form
        self._form: object = None  # shapes of the last ordinary step, or of the recorded one
        self._graph: Any = None
        self._inputs: list[Tensors] = []
        self._outputs: Outputs | None = None

    def replay(self, work: Work, read: Callable[[], tuple[Sequence[Batch], Shares]]) -> Outputs | None:
        """Replay the recorded step on the batches from ``read``; return None if the step must be executed normally."""
        if not self._wanted:
            return None
        batches, shares = read()
        form = [[(name, each.shape) for name, each in batch.tensors.items()] for batch in batches], list(shares)
        if self._graph is None:
            self._ordinary_steps = self._ordinary_steps + 1 if form == self._form else 1
            self._form = form
            if self._ordinary_steps > _ORDINARY:
                self._record(work, batches, shares)
        if self._graph is None or form != self._form:
            return None
        for static, batch in zip(self._inputs, batches, strict=True):
            for name, each in batch.tensors.items():
                static[name].copy_(each.pin_memory(), non_blocking=True)
        self._graph.replay()
        return self._outputs

    def _record(self, work: Work, batches: Sequence[Batch], shares: Shares) -> None:
        """Record a step without executing it."""
        self._inputs = [batch.to(self._device) for batch in batches]
        torch.cuda.synchronize(self._device)
        torch.cuda.empty_cache()
        graph = torch.cuda.CUDAGraph()
        generator = torch.cuda.default_generators[self._device.index or 0]
        state = generator.clone_state()
        try:
            with torch.cuda.graph(graph):
                self._outputs = work(self._inputs, shares)
        except RuntimeError:  # this model cannot be recorded
            self._wanted = False
            generator.graphsafe_set_state(state)  # otherwise the generator stays in capture mode, and dropout fails
            return
        self._graph = graph


# -- measuring ---------------------------------------------------------------------------------------------------------


class Learner(nn.Module):
    """A model and its task as one module, for training and evaluation."""

    def __init__(self, model: nn.Module, task: Task) -> None:
        super().__init__()
        self.model, self._task = model, task

    def forward(self, tensors: Tensors) -> Tensors:
        """Return mean losses in training mode, and otherwise sums from which a score is computed."""
        return (self._task.losses if self.training else self._task.measure)(self.model, tensors)


@torch.no_grad()
def measure(
    learner: nn.Module,
    batches: Sequence[Batch],
    arithmetic: Arithmetic,
    ranks: Ranks,
    until: Callable[[], bool] | None = None,
) -> tuple[dict[str, float], dict[str, int]] | None:
    """Return the sums of ``measure`` and of targets over all batches, which the processes share.

    Returns None if ``until`` returns True before all batches are done.
    """
    sums: Counter[str] = Counter()
    targets: Counter[str] = Counter()
    with evaluating(learner):
        for index in range(ranks.rank, len(batches) + ranks.rank, ranks.world):
            if until is not None and until():
                reshard(learner)
                return None
            counts = index < len(batches)
            batch = batches[index if counts else 0]  # all processes take part, because FSDP gathers weights
            with arithmetic.autocast():
                found = learner(batch.to(arithmetic.device))
            sums.update({name: float(each) * counts for name, each in found.items()})
            targets.update({name: count * counts for name, count in batch.targets.items()})
    reshard(learner)
    return ranks.totals(sums), {name: round(count) for name, count in ranks.totals(targets).items()}
