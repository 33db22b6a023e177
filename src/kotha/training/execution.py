"""How a step is done on this machine: compiled where that pays, in micro-batches that fit, recorded on a GPU.

A step's gradients are summed over its micro-batches (gradient accumulation), so what fits decides the speed alone.
What is planned is tried before the first step, on a GPU with a pass that moves nothing. A micro-batch that does not fit
after all is halved and the step done again; one that the user chose is an error that says what to change.

A small model's step is hundreds of short kernels; started one by one they leave a GPU idle for almost half of the time.
So a step is recorded after a few ordinary ones (CUDA graphs) and from then on started as one; only the batch, the
learning rate and the seed of dropout change, and those are numbers in memory that the recording reads. A batch of
another shape takes the ordinary way; where shapes change from step to step, there is nothing to record.
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
from kotha.training.distributed import Ranks, let_go
from kotha.training.plan.memory import Conditions, largest_micro_batch
from kotha.training.tasks.task import Batch, Task, Tensors

OutOfMemory = torch.OutOfMemoryError
Result = TypeVar("Result")


class Fitting:
    """How a run uses its machine."""

    def __init__(
        self,
        model: Model,
        config: TrainConfig,
        arithmetic: Arithmetic,
        ranks: Ranks,
        how: Conditions,
        say: OnRemark = lambda _: None,
        auxiliary_models: Sequence[nn.Module] = (),
    ) -> None:
        self._model, self._config, self._arithmetic, self._ranks = model, config, arithmetic, ranks
        self.how, self._say = how, say
        self._auxiliary_models = auxiliary_models  # what is only read beside the model is compiled as well
        available = available_memory(arithmetic.device)
        planned = largest_micro_batch(model.config, config, available, how)
        self.micro_batch_size = min(planned, ranks.share(config.batch_size)[1])

    def settle(self, gradients: Callable[[int], Any]) -> None:
        """Compile, and see that a step's gradients can be had."""
        if self._arithmetic.device.type == "cuda":
            torch.set_float32_matmul_precision("high")
            torch.compiler.set_stance("force_eager" if self._config.compile == "off" else "default")
        compiled = self.how.compiled
        layers = blocks(self._model, *self._auxiliary_models) if compiled else []
        for block in layers:  # all alike: one is compiled, and the others use it
            block.compile()
        if not compiled and self._arithmetic.device.type == "cpu":
            return  # there is nothing to warm, and memory that lacks here is swapped, not refused
        try:
            self.attempt(lambda: gradients(0), 0)
        except KothaError:
            raise
        except Exception as error:  # whatever the compiler lacks on this machine
            if not compiled:
                raise
            for block in layers:
                block._compiled_call_impl = None
            why = str(error).splitlines()[0]
            self._say(Message("not compiled ({kind}: {why})", kind=type(error).__name__, why=why))
            self.attempt(lambda: gradients(0), 0)
        self.micro_batch_size = min(self._ranks.each(self.micro_batch_size))

    def attempt(self, work: Callable[[], Result], step: int) -> Result:
        """Do something that can be done again; where memory lacks, in smaller micro-batches."""
        while True:
            try:
                return work()
            except OutOfMemory as error:
                if self._config.micro_batch_size is not None or self.micro_batch_size == 1 or not self._ranks.alone:
                    raise self.failure(step) from error
            self.micro_batch_size = (self.micro_batch_size + 1) // 2
            self._model.zero_grad(set_to_none=True)
            torch.cuda.empty_cache()
            said = "out of memory; continuing with micro_batch_size={micro_batch_size}"
            self._say(Message(said, micro_batch_size=self.micro_batch_size))

    def failure(self, step: int) -> TrainingError:
        """What to say when nothing smaller is left to try."""
        smaller = max(1, self.micro_batch_size // 2)
        change = (
            Message("a smaller micro_batch_size, such as {smaller} (the result stays the same)", smaller=smaller)
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
    """The layers of some models."""
    return [module for model in models for module in model.modules() if isinstance(module, Block)]


# -- CUDA graphs -------------------------------------------------------------------------------------------------------


# Ordinary steps of one shape before: kernels are compiled and chosen, optimizers make their memory.
_ORDINARY = 3

Shares = Sequence[dict[str, float]]  # for each micro-batch, what share of the whole loss each part of its loss is
Outputs = tuple[Tensor, Tensor]
Work = Callable[[Sequence[Tensors], Shares], Outputs]
"""A whole step on tensors that are on the device; gives its loss and the norm of its gradients."""


class Recording:
    """Records a step as soon as that is possible."""

    def __init__(self, device: torch.device, wanted: bool) -> None:
        self._device = device
        self._wanted = wanted and device.type == "cuda"
        self._ordinary_steps = 0  # in a row, of the form below
        self._form: object = None  # shapes of the last ordinary step, or of the recorded one
        self._graph: Any = None
        self._inputs: list[Tensors] = []
        self._outputs: Outputs | None = None

    def replay(self, work: Work, read: Callable[[], tuple[Sequence[Batch], Shares]]) -> Outputs | None:
        """One step of work on what is read, or None where it has to be done the ordinary way."""
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
        """Nothing is computed here: what a step would do is written down."""
        self._inputs = [batch.to(self._device) for batch in batches]
        torch.cuda.synchronize(self._device)
        torch.cuda.empty_cache()
        graph = torch.cuda.CUDAGraph()
        chance = torch.cuda.default_generators[self._device.index or 0]
        before = chance.clone_state()
        try:
            with torch.cuda.graph(graph):
                self._outputs = work(self._inputs, shares)
        except RuntimeError:  # something in this model cannot be recorded, and need not be
            self._wanted = False
            chance.graphsafe_set_state(before)  # it believes that it is still being recorded, and would refuse dropout
            return
        self._graph = graph


# -- measuring ---------------------------------------------------------------------------------------------------------


class Learner(nn.Module):
    """A model with its task: one module to call and to wrap, in training and in measuring."""

    def __init__(self, model: nn.Module, task: Task) -> None:
        super().__init__()
        self.model, self._task = model, task

    def forward(self, tensors: Tensors) -> Tensors:
        """Mean losses in training mode; sums to score by otherwise."""
        return (self._task.losses if self.training else self._task.measure)(self.model, tensors)


@torch.no_grad()
def measure(
    learner: nn.Module,
    batches: Sequence[Batch],
    arithmetic: Arithmetic,
    ranks: Ranks,
    until: Callable[[], bool] | None = None,
) -> tuple[dict[str, float], dict[str, int]] | None:
    """What a score is made from: the sums of ``measure`` and of targets; each process takes its turn with the batches.

    None if ``until`` says, before it is done, that there is no more time.
    """
    sums: Counter[str] = Counter()
    targets: Counter[str] = Counter()
    with evaluating(learner):
        for mine in range(ranks.rank, len(batches) + ranks.rank, ranks.world):
            if until is not None and until():
                let_go(learner)
                return None
            counts = mine < len(batches)
            batch = batches[mine if counts else 0]  # all compute, or who gathers weights would wait
            with arithmetic.autocast():
                found = learner(batch.to(arithmetic.device))
            sums.update({name: float(each) * counts for name, each in found.items()})
            targets.update({name: count * counts for name, count in batch.targets.items()})
    let_go(learner)
    return ranks.totals(sums), {name: round(count) for name, count in ranks.totals(targets).items()}
