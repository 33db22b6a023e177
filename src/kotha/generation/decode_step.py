"""The decoding loop: one token for every row in each step.

On a CPU a step calls the model, or its implementation in C (``native.c``). On a GPU the kernel launches would take
longer than the computation, so a step, including sampling, is recorded once for each plan as a CUDA graph and then
replayed. All state is written in place, so a replay continues where the last one ended.
"""

import platform
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from kotha.generation.batch_state import Plan, Rows
from kotha.generation.cache import RowCache
from kotha.generation.native import NativeStep, native
from kotha.generation.weights import JoinedAttention
from kotha.model.evaluating import evaluating
from kotha.model.gpt import GPT

_WARM_UP = 3  # number of runs before recording, in which kernels are selected and memory is allocated


@contextmanager
def at_work(model: GPT) -> Iterator[None]:
    """Disable gradients, dropout and, on ARM, oneDNN for the ``with`` block.

    On ARM, oneDNN has a high cost per call: an exact GELU of 2,048 numbers takes 280 microseconds with it and 13
    without, and matrix products are no faster (``docs/dev/experiments.md``).
    """
    had_onednn = torch._C._get_mkldnn_enabled()
    if had_onednn and platform.machine() not in ("x86_64", "AMD64"):
        torch._C._set_mkldnn_enabled(False)
    try:
        with torch.no_grad(), evaluating(model):
            yield
    finally:
        torch._C._set_mkldnn_enabled(had_onednn)


class Steps:
    """Runs decoding steps of a model, with a cache and the rows' state."""

    def __init__(self, model: GPT, cache: RowCache, rows: Rows) -> None:
        self.model, self.cache, self.rows = model, cache, rows
        self._recorded: dict[Plan, Callable[[], None]] = {}
        self._pool: Any = None
        self.update_addresses()

    def update_addresses(self) -> None:
        """Drop recorded graphs and the step in C, which hold addresses of the cache's tensors, after a reallocation.

        The step in C is faster than BLAS for few rows and within 10% of it for 32, and a row's result does not depend
        on other rows. It is used only with the engine's own copy of the weights, because it ignores the hooks and the
        attention implementation of a live model.
        """
        self._recorded.clear()
        cache = self.cache
        joined = all(isinstance(block.attention, JoinedAttention) for block in self.model.stack.blocks)
        on_cpu = joined and self.model.head.weight.device.type == "cpu" and cache.keys[0].dtype == torch.float32
        library = native() if on_cpu else None
        self._native = None if library is None else NativeStep(self.model, cache, library)

    def read(self, cache: RowCache, first: int, texts: Sequence[Sequence[int]], start: int = 0) -> None:
        """Process texts into rows of a cache, from row ``first`` on, after the ``start`` tokens already there."""
        if not any(texts):
            return
        if self._native is not None:
            tokens = [
                (token, index, row) for row, text in enumerate(texts, first) for index, token in enumerate(text, start)
            ]
            self._native.read(self.model, cache, *zip(*tokens, strict=True))
            return
        cache.first, cache.n_rows, cache.even = first, len(texts), start
        padded = pad_sequence([torch.tensor(text, dtype=torch.long) for text in texts], batch_first=True)
        self.model.hidden(padded.to(self.rows.device), cache=cache)
        cache.first = 0

    def run(self, plan: Plan, count: int) -> None:
        """Run ``count`` steps; the sampled tokens are in ``rows.drawn``."""
        self.cache.n_rows, self.cache.span, self.cache.even = plan.n_rows, plan.span, plan.even
        if self.rows.device.type != "cuda":
            for _ in range(count):
                self._one(plan)
            return
        if plan not in self._recorded:
            self._recorded[plan] = self._record(plan)
        for _ in range(count):
            self._recorded[plan]()

    def _read(self, plan: Plan) -> Tensor:
        """Read the pending tokens and return the logits of the next ones: (B, V)."""
        if self._native is not None:
            logits = self._native(self.model, self.rows.pending[: plan.n_rows])
            self.cache.advance()
            return logits[:, : self.rows.vocab_size]
        hidden = self.model.hidden(self.rows.pending[: plan.n_rows, None], cache=self.cache)  # (B, 1, C)
        self.cache.advance()
        scores: Tensor = self.model.head(hidden[:, 0])
        return scores[:, : self.rows.vocab_size].float()

    def _one(self, plan: Plan) -> None:
        self.rows.take(self._read(plan), plan)

    def _record(self, plan: Plan) -> Callable[[], None]:
        """Record a step as a CUDA graph; state changed by the warm-up is restored."""
        from torch.nn.attention import SDPBackend, sdpa_kernel

        changed = [self.rows.pending, self.rows.slot, self.rows.drawn, self.cache.lengths]
        changed += [tensor for tensor in (self.rows.seen, *(self.rows.reported or ())) if tensor is not None]
        before = [tensor.clone() for tensor in changed]
        side = torch.cuda.Stream()  # type: ignore[no-untyped-call]
        side.wait_stream(torch.cuda.current_stream())
        graph = torch.cuda.CUDAGraph()
        # cuDNN's attention makes a plan for each shape and is no faster for one query; flash does not support such
        # masks.
        with sdpa_kernel([SDPBackend.EFFICIENT_ATTENTION, SDPBackend.MATH]):
            with torch.cuda.stream(side):
                for _ in range(_WARM_UP):
                    self._one(plan)
                    self.rows.slot.zero_()
            torch.cuda.current_stream().wait_stream(side)
            with torch.cuda.graph(graph, pool=self._pool):
                self._one(plan)
        self._pool = self._pool or graph.pool()
        for tensor, old in zip(changed, before, strict=True):
            tensor.copy_(old)
        return graph.replay
