"""Decoding with torch: one token for every row in each step.

On a CPU each step is an ordinary call of the model. On a GPU the kernel launches would take longer than the kernels, so
a step, including sampling, is recorded once per plan as a CUDA graph and then replayed. All state is written in place,
so a replay continues where the last one ended.
"""

import platform
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from kotha.generation.batch_state import Plan, Rows
from kotha.generation.cache import RowCache
from kotha.generation.compilation import native
from kotha.generation.native import NativeModel
from kotha.generation.native_decoder import Drawn, NativeDecoder
from kotha.generation.request import Answer
from kotha.generation.weights import JoinedAttention, Weights, as_arrays, prepare
from kotha.model.evaluating import evaluating, overflow_as_nan
from kotha.model.gpt import GPT

# Steps between checks for ended rows, and whether the check overlaps with the next steps. Both keep a GPU busy, but do
# not help on a CPU.
_PACE = {"cuda": (32, True), "cpu": (1, False)}
# Tokens per chunk of a long prompt: enough for efficient matrix products, few enough not to delay other requests.
_PIECE = {"cuda": 512, "cpu": 64}
# The smallest span of cached positions on a GPU; larger spans are powers of two, so that few graphs are recorded.
_SHORTEST_SPAN = 64
_WARM_UP = 3  # warm-up runs before recording, which select kernels and allocate memory


@contextmanager
def at_work(model: GPT) -> Iterator[None]:
    """Disable gradients, dropout and (on ARM) oneDNN in the ``with`` block.

    On ARM, oneDNN has a high overhead per call: an exact GELU of 2,048 numbers takes 280 microseconds with oneDNN and
    13 without, and matrix products are no faster (``docs/dev/experiments.md``).
    """
    # With pre-norm, all sums reach the last norm, and observing only this norm takes less time in each step.
    observed = model.stack.norm if model.config.norm_order == "pre" else model
    had_onednn = torch._C._get_mkldnn_enabled()
    if had_onednn and platform.machine() not in ("x86_64", "AMD64"):
        torch._C._set_mkldnn_enabled(False)
    try:
        with torch.no_grad(), evaluating(model), overflow_as_nan(observed):
            yield
    finally:
        torch._C._set_mkldnn_enabled(had_onednn)


def decoder_of(
    live: GPT, weights: Weights | None, max_rows: int, vocab_size: int, ends: frozenset[int]
) -> "tuple[GPT, NativeDecoder | TorchDecoder]":
    """Return the engine's model (``live`` or a copy with these weights) and its decoder, in C if possible.

    The C step is faster than BLAS for few rows and within 10% of its speed for 32 rows, and the result of a row does
    not depend on other rows. It is used only with the engine's own copy of the weights, because it ignores the hooks
    and the attention implementation of a live model.
    """
    model = prepare(live, weights)
    joined = all(isinstance(block.attention, JoinedAttention) for block in model.stack.blocks)
    weight = model.tokens.weight
    on_cpu = joined and weight.device.type == "cpu" and weight.dtype == torch.float32
    library = native() if on_cpu else None
    if library is None:
        return model, TorchDecoder(model, max_rows, vocab_size, ends)
    arrays = NativeModel(model.config, as_arrays(model), library, torch.get_num_threads())
    return model, NativeDecoder(arrays, max_rows, vocab_size, ends)


class TorchDecoder:
    """Runs the steps of a model in torch for the rows of a batch."""

    def __init__(self, model: GPT, max_rows: int, vocab_size: int, ends: frozenset[int]) -> None:
        device, dtype = model.tokens.weight.device, model.tokens.weight.dtype
        self.model, self.cache = model, RowCache(model.config, max_rows, dtype, device)
        self.block, self.overlaps = _PACE.get(device.type, _PACE["cpu"])
        self.piece = _PIECE.get(device.type, _PIECE["cpu"])
        self.rows = Rows(max_rows, vocab_size, self.block, device, ends)
        self._max_rows = max_rows
        self._recorded: dict[Plan, Callable[[], None]] = {}
        self._recorded_size = 0
        self._pool: Any = None

    def new_cache(self, n_tokens: int) -> RowCache:
        """Return a cache for one prompt."""
        kept = self.cache.keys[0]
        return RowCache(self.cache.config, 1, kept.dtype, kept.device, longest=n_tokens)

    def put(self, first: int, answers: Sequence[Answer]) -> None:
        """Assign rows to answers, starting at ``first``."""
        self.rows.put(first, answers)

    def move(self, source: int, target: int) -> None:
        """Copy one row over another."""
        self.rows.move(source, target)
        self.cache.move(source, target)

    def read(self, cache: RowCache, first: int, texts: Sequence[Sequence[int]], start: int = 0) -> None:
        """Process texts into rows of a cache, starting at row ``first``, after the ``start`` tokens already cached."""
        if not any(texts):
            return
        cache.first, cache.n_rows, cache.even = first, len(texts), start
        padded = pad_sequence([torch.tensor(text, dtype=torch.long) for text in texts], batch_first=True)
        with at_work(self.model):
            self.model.hidden(padded.to(self.rows.device), cache=cache)
        cache.first = 0

    def start(self, answers: Sequence[Answer], count: int) -> Drawn:
        """Start ``count`` steps, without waiting for a GPU to finish them."""
        plan = self._plan(answers, count)
        self.rows.load(answers, count, plan)
        self.cache.n_rows, self.cache.span, self.cache.even = plan.n_rows, plan.span, plan.even
        with at_work(self.model):
            step = self._recorded_step(plan) if self.rows.device.type == "cuda" else partial(self._one, plan)
            for _ in range(count):
                step()
        return self.rows.copy_to_host(answers, count, plan).wait

    def _plan(self, answers: Sequence[Answer], count: int) -> Plan:
        """Return the plan for these rows; on a GPU sizes are rounded up, because each size is recorded separately."""
        read, n_rows = [answer.read for answer in answers], len(answers)
        span = min(max(read) + count, self.cache.size)
        if self.rows.device.type == "cuda":
            n_rows = min(_doubled(n_rows), self._max_rows)
            span = min(max(_SHORTEST_SPAN, _doubled(span)), self.cache.size)
            return self.rows.plan(answers, n_rows, span)
        even = read[0] if count == 1 and min(read) == max(read) < self.cache.size else None
        return self.rows.plan(answers, n_rows, span, even)

    def _read(self, plan: Plan) -> Tensor:
        """Process the pending tokens and return the logits of the next ones: (B, V)."""
        hidden = self.model.hidden(self.rows.pending[: plan.n_rows, None], cache=self.cache)  # (B, 1, C)
        self.cache.advance()
        scores: Tensor = self.model.head(hidden[:, 0])
        return scores[:, : self.rows.vocab_size].float()

    def _one(self, plan: Plan) -> None:
        self.rows.take(self._read(plan), plan)

    def _recorded_step(self, plan: Plan) -> Callable[[], None]:
        if self._recorded_size != self.cache.size:  # graphs hold the addresses of its tensors
            self._recorded.clear()
        if plan not in self._recorded:
            self._recorded[plan], self._recorded_size = self._record(plan), self.cache.size
        return self._recorded[plan]

    def _record(self, plan: Plan) -> Callable[[], None]:
        """Record a step as a CUDA graph, and restore the state that the warm-up changed."""
        from torch.nn.attention import SDPBackend, sdpa_kernel

        changed = [self.rows.pending, self.rows.slot, self.rows.drawn, self.cache.lengths]
        changed += [tensor for tensor in (self.rows.seen, *(self.rows.reported or ())) if tensor is not None]
        before = [tensor.clone() for tensor in changed]
        side = torch.cuda.Stream()  # type: ignore[no-untyped-call]
        side.wait_stream(torch.cuda.current_stream())
        graph = torch.cuda.CUDAGraph()
        # cuDNN attention builds a plan for each shape and is no faster for one query; flash attention does not support
        # these masks.
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


def _doubled(size: int) -> int:
    """Round a size up to a power of two."""
    return 1 << (size - 1).bit_length()
