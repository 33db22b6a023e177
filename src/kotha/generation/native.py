"""Compile ``native.c``, in a fraction of a second, and call it through ctypes.

Weights, caches and result buffers are the memory of torch tensors. A ``NativeStep`` keeps references to the tensors
whose addresses it has passed to C; the model's weights must not be reallocated during its lifetime.
"""

import ctypes
import re
import shutil
import subprocess
import time
from collections.abc import Sequence
from contextlib import suppress
from functools import cache
from itertools import accumulate
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from kotha.generation.cache import RowCache
from kotha.model.gpt import GPT
from kotha.model.norm import RMSNorm
from kotha.storage.atomic import scratch_folder

_SOURCE = Path(__file__).with_name("native.c")
# Allow reordering of sums, but not -ffast-math, whose start-up code makes the whole process flush denormals to zero.
_REORDER = ("-fno-math-errno", "-fno-trapping-math", "-fno-signed-zeros", "-fassociative-math", "-freciprocal-math")
# -O3 is no faster here, and compiling takes more than twice as long.
_FLAGS = ("-O2", "-ftree-vectorize", "-march=native", *_REORDER, "-fPIC", "-shared")
_PIECE = 64  # prompt tokens per call
_TIMEOUT = 60  # seconds for the compiler
_ACTIVATIONS = {"relu": 1, "gelu": 2, "gelu-tanh": 3, "swiglu": 4}
_POINTER, _LONG = ctypes.c_void_p, ctypes.c_long
# The parts of a layer, by their names in the model; the gate is optional.
_MATRICES = ("joined", "output", "up", "gate", "down")
_NORMS = ("attention_norm", "feedforward_norm", "query_norm", "key_norm")


class _Matrix(ctypes.Structure):
    """A linear layer, in float32 or in int8 with scales."""

    _fields_ = (("weight", _POINTER), ("scale", _POINTER), ("bias", _POINTER), ("outs", _LONG), ("width", _LONG))


class _Norm(ctypes.Structure):
    _fields_ = (("weight", _POINTER), ("bias", _POINTER), ("eps", ctypes.c_float))


class _Layer(ctypes.Structure):
    _fields_ = (
        *((name, _Matrix) for name in _MATRICES),
        *((name, _Norm) for name in _NORMS),
        ("first", _POINTER),
        *((name, _LONG) for name in ("n_heads", "n_kv_heads")),
    )


class _Model(ctypes.Structure):
    _fields_ = (
        ("layers", ctypes.POINTER(_Layer)),
        ("head", _Matrix),
        ("last", _Norm),
        *((name, _LONG) for name in ("n_layers", "d_model", "d_head", "d_ff")),
        ("pre_norm", ctypes.c_int),
        ("activation", ctypes.c_int),
    )


class _Cache(ctypes.Structure):
    _fields_ = (("keys", ctypes.POINTER(_POINTER)), ("values", ctypes.POINTER(_POINTER)), ("size", _LONG))


class _Rows(ctypes.Structure):
    _fields_ = (*((name, _POINTER) for name in ("cache_rows", "lengths", "cosine", "sine")), ("count", _LONG))


class _Shared(ctypes.Structure):
    _fields_ = tuple((name, _POINTER) for name in ("joined", "mixed", "inner", "gate", "out"))


class _Own(ctypes.Structure):
    """A thread's buffers for intermediate results."""

    _fields_ = tuple((name, _POINTER) for name in ("x", "read", "scale", "quantized"))


class Pace:
    """Chooses one thread or all for a step, whichever was faster recently.

    Threads synchronize forty times in a step of a few milliseconds. On a busy machine one of them is often delayed, and
    a single thread is much faster. The result does not depend on the choice, because one thread computes each sum.
    """

    first, again = 3, 64  # tries of each option at the start; steps between retries of the slower one

    def __init__(self, most: int) -> None:
        self._seconds = dict.fromkeys(sorted({1, most}, reverse=True), 0.0)
        self._steps, self._last = 0, 0

    def threads(self) -> int:
        """The number of threads for the next step."""
        options = list(self._seconds)
        if self._steps < self.first * len(options):
            return options[self._steps % len(options)]
        faster, *slower = sorted(options, key=lambda option: self._seconds[option])
        return slower[0] if slower and self._steps % self.again == 0 else faster

    def took(self, threads: int, seconds: float) -> None:
        """Record the duration of a step: unchanged after a change of threads, otherwise as a moving average."""
        known = self._seconds[threads]
        self._seconds[threads] = 0.7 * known + 0.3 * seconds if threads == self._last else seconds
        self._steps, self._last = self._steps + 1, threads


class NativeStep:
    """Runs a float32 or int8 model in C: tokens to logits with a cache, and prompts into a cache."""

    def __init__(self, model: GPT, kv: RowCache, library: ctypes.CDLL) -> None:
        config, self._cache, self._library = model.config, kv, library
        self._kept: list[Any] = [model]  # objects whose addresses the C code holds
        self._threads = torch.get_num_threads()
        self._paces: dict[int, Pace] = {}  # by number of rows, in powers of two
        self._most = max(len(kv.lengths), _PIECE)
        heads, n_keys = config.n_heads * config.d_head, config.n_kv_heads * config.d_head
        widest = max(config.d_ff, config.d_model, heads)
        shared = (heads + 2 * n_keys, heads, config.d_ff, config.d_ff, config.d_model)
        self._shared = _Shared(*(self._room(width) for width in shared))
        rooms = [
            _Own(self._room(config.d_model), self._room(widest), self._room(1), self._room(widest, torch.int8))
            for _ in range(self._threads)
        ]
        self._owns = (_Own * self._threads)(*rooms)
        self._layers = (_Layer * config.n_layers)(*map(self._layer, model.stack.blocks))
        sizes = ("n_layers", "d_model", "d_head", "d_ff")
        self._model = _Model(
            layers=self._layers,
            head=_matrix(model.head),
            last=_norm(model.stack.norm),
            pre_norm=config.norm_order == "pre",
            activation=_ACTIVATIONS[config.activation],
            **{name: getattr(config, name) for name in sizes},
        )

    def _room(self, width: int, dtype: torch.dtype = torch.float32) -> int:
        tensor = torch.zeros(self._most, width, dtype=dtype)
        self._kept.append(tensor)
        return tensor.data_ptr()

    def __call__(self, model: GPT, tokens: Tensor) -> Tensor:
        """Process a token for each row, (B,), and return the logits of the next one: (B, V)."""
        lengths = self._cache.lengths[: len(tokens)].clamp(max=self._cache.size - 1)
        logits = torch.empty(len(tokens), self._model.head.outs)
        self._run(model, self._cache, tokens, lengths, None, logits)
        return logits

    def read(
        self, model: GPT, into: RowCache, tokens: Sequence[int], positions: Sequence[int], cache_rows: Sequence[int]
    ) -> None:
        """Process prompt tokens into a cache at these positions and rows; tokens of one text must be in order."""
        for start in range(0, len(tokens), self._most):
            some = slice(start, start + self._most)
            ids, lengths, rows = (torch.tensor(each[some]) for each in (tokens, positions, cache_rows))
            self._run(model, into, ids, lengths, rows, None)

    def _run(
        self,
        model: GPT,
        kv: RowCache,
        tokens: Tensor,
        lengths: Tensor,
        cache_rows: Tensor | None,
        logits: Tensor | None,
    ) -> None:
        x = model.positions(model.tokens(tokens[:, None]), lengths[:, None])[:, 0].contiguous()  # (B, C)
        rotation = model.positions.rotation(lengths[:, None])
        angles = [None, None] if rotation is None else [part.flatten(0, 2).contiguous() for part in rotation]
        rows = _Rows(_address(cache_rows), _address(lengths), *map(_address, angles), len(tokens))
        tables = [(_POINTER * len(layers))(*map(_address, layers)) for layers in (kv.keys, kv.values)]
        cache = _Cache(*tables, kv.size)
        pace = self._paces.setdefault((len(tokens) - 1).bit_length(), Pace(self._threads))
        threads = pace.threads()
        given = (ctypes.byref(self._model), ctypes.byref(cache), ctypes.byref(rows), _address(x))
        start = time.perf_counter()
        self._library.step(*given, ctypes.byref(self._shared), ctypes.byref(self._owns), _address(logits), threads)
        pace.took(threads, time.perf_counter() - start)

    def _layer(self, block: Any) -> _Layer:
        attention = block.attention
        parts = {name.rpartition(".")[2]: part for name, part in block.named_modules()}
        first = torch.tensor([0, *accumulate(attention.queries_per_kv_head)])
        self._kept.append(first)
        return _Layer(
            first=first.data_ptr(),
            n_heads=len(attention.heads),
            n_kv_heads=len(attention.queries_per_kv_head),
            **{name: _matrix(parts[name]) for name in _MATRICES if name in parts},
            **{name: _norm(parts[name]) for name in _NORMS},
        )


def product(linear: Any, x: Tensor, threads: int, library: ctypes.CDLL) -> Tensor:
    """Apply a float32 or int8 linear layer to float32 rows: (..., in) -> (..., out)."""
    rows, n_rows = x.contiguous(), x.numel() // x.shape[-1]
    y = torch.empty(*x.shape[:-1], linear.weight.shape[0])
    quantized, scale = torch.empty(x.shape, dtype=torch.int8), torch.empty(n_rows)
    own = _Own(quantized=_address(quantized), scale=_address(scale))
    arguments = (ctypes.byref(_matrix(linear)), _address(rows), ctypes.byref(own), _address(y))
    library.linear(*arguments, n_rows, threads)
    return y


def _matrix(linear: Any) -> _Matrix:
    scale = getattr(linear, "scale", None)
    return _Matrix(_address(linear.weight), _address(scale), _address(linear.bias), *linear.weight.shape)


def _norm(norm: nn.Module) -> _Norm:
    if isinstance(norm, RMSNorm | nn.LayerNorm):
        return _Norm(_address(norm.weight), _address(getattr(norm, "bias", None)), norm.eps)
    return _Norm()  # an identity


def _address(tensor: Tensor | None) -> int | None:
    assert tensor is None or tensor.is_contiguous(), "the tensor must be contiguous"
    return None if tensor is None else tensor.data_ptr()


@cache
def native() -> ctypes.CDLL | None:
    """Return the compiled ``native.c``, or None without a C compiler."""
    compiler = shutil.which("cc")
    if compiler is None:
        return None
    openmp = _openmp()
    with scratch_folder() as folder:  # private to this user; once loaded, the file is not needed
        path = folder / "native.so"
        command = [compiler, *_FLAGS, *openmp, str(_SOURCE), "-o", str(path), "-lm"]
        try:
            subprocess.run(command, check=True, capture_output=True, timeout=_TIMEOUT)
            library = ctypes.CDLL(str(path))
        except (subprocess.SubprocessError, OSError):
            return None
    library.step.argtypes = [*[_POINTER] * 7, ctypes.c_int]
    library.linear.argtypes = [*[_POINTER] * 4, _LONG, ctypes.c_int]
    library.step.restype = library.linear.restype = None
    return library


def _openmp() -> list[str]:
    """Return compiler flags for torch's own OpenMP, because the threads of a second OpenMP would compete with it."""
    lines: list[str] = []
    with suppress(OSError):  # Linux only, and may be forbidden
        lines = Path("/proc/self/maps").read_text(encoding="utf-8", errors="surrogateescape").splitlines()
    # Five columns, then the path, which may contain spaces.
    loaded = [found[1] for line in lines if (found := re.match(r"(?:\S+\s+){5}(/.*/libgomp[^/]*)$", line))]
    try:
        ctypes.CDLL(loaded[0], mode=ctypes.RTLD_GLOBAL)
    except (IndexError, OSError):  # not loaded, or the file was replaced; use one thread
        return []
    return ["-fopenmp", loaded[0]]
