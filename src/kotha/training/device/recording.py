"""A step recorded once and replayed (CUDA graphs), so that a GPU waits for no Python.

A small model's step is hundreds of short kernels; started one by one they leave a GPU idle for almost half of the time.
What a step does is the same each time: forward, loss, backward, clipping, the optimizers. It is recorded after a few
ordinary steps and from then on started as one; only the batch, the learning rate and the seed of dropout change, and
those are numbers in memory that the recording reads. A batch of another shape takes the ordinary way; where shapes
change from step to step (texts sorted by length), there is nothing to record.
"""

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from kotha.training.tasks.task import Batch, Tensors

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
