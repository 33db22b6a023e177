"""The bridge to ``native.c``: compiled in a fraction of a second where there is a C compiler, called through ctypes.

The tables that it reads (weights, caches, room for results) are torch's own memory. A ``NativeStep`` keeps the tensors
alive that it has handed out the addresses of; the model's weights must not move while it lives.
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
# Sums may be taken in another order. Not -ffast-math: its start-up code would round the smallest numbers of the whole
# process to zero.
_REORDER = ("-fno-math-errno", "-fno-trapping-math", "-fno-signed-zeros", "-fassociative-math", "-freciprocal-math")
# What -O3 adds to vector arithmetic makes nothing here faster, and the compiler takes more than twice as long.
_FLAGS = ("-O2", "-ftree-vectorize", "-march=native", *_REORDER, "-fPIC", "-shared")
_PIECE = 64  # tokens of prompts that are read at once
_SLOW = 60  # seconds for a compiler that hangs
_ACTIVATIONS = {"relu": 1, "gelu": 2, "gelu-tanh": 3, "swiglu": 4}
_POINTER, _LONG = ctypes.c_void_p, ctypes.c_long
# What a layer is made of, by its names in the model; not every one has a gate.
_MATRICES = ("joined", "output", "up", "gate", "down")
_NORMS = ("attention_norm", "feedforward_norm", "query_norm", "key_norm")


class _Matrix(ctypes.Structure):
    """A linear layer, in float32 or in whole numbers with scales."""

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
    _fields_ = (*((name, _POINTER) for name in ("seats", "lengths", "cosine", "sine")), ("count", _LONG))


class _Shared(ctypes.Structure):
    _fields_ = tuple((name, _POINTER) for name in ("joined", "mixed", "inner", "gate", "out"))


class _Own(ctypes.Structure):
    """A thread's own memory for intermediate results."""

    _fields_ = tuple((name, _POINTER) for name in ("x", "read", "scale", "whole"))


class Pace:
    """How many threads a step takes: one or all, whichever was quicker lately.

    Threads meet forty times in a step of a few milliseconds. On a machine with other work one of them is often not
    there, and a single thread wins by far. The result does not depend on it: every sum is made by one thread.
    """

    first, again = 3, 64  # tries of each at the beginning, and how often the slower one is tried again

    def __init__(self, most: int) -> None:
        self._seconds = dict.fromkeys(sorted({1, most}, reverse=True), 0.0)
        self._steps, self._last = 0, 0

    def threads(self) -> int:
        """For the next step."""
        options = list(self._seconds)
        if self._steps < self.first * len(options):
            return options[self._steps % len(options)]
        quicker, *slower = sorted(options, key=lambda option: self._seconds[option])
        return slower[0] if slower and self._steps % self.again == 0 else quicker

    def took(self, threads: int, seconds: float) -> None:
        """How long that was: a fresh try counts as it is, a run of steps by its average."""
        known = self._seconds[threads]
        self._seconds[threads] = 0.7 * known + 0.3 * seconds if threads == self._last else seconds
        self._steps, self._last = self._steps + 1, threads


class NativeStep:
    """A model in float32 or int8 over a cache: a token for each row in, logits out; and prompts into a cache."""

    def __init__(self, model: GPT, kv: RowCache, library: ctypes.CDLL) -> None:
        config, self._cache, self._library = model.config, kv, library
        self._kept: list[Any] = [model]  # what the C side has addresses of
        self._threads = torch.get_num_threads()
        self._paces: dict[int, Pace] = {}  # by rows, in powers of two
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
        """Read a token for each row, (B,), and give the scores of the next: (B, V)."""
        lengths = self._cache.lengths[: len(tokens)].clamp(max=self._cache.size - 1)
        logits = torch.empty(len(tokens), self._model.head.outs)
        self._run(model, self._cache, tokens, lengths, None, logits)
        return logits

    def read(
        self, model: GPT, into: RowCache, tokens: Sequence[int], positions: Sequence[int], seats: Sequence[int]
    ) -> None:
        """Read tokens of prompts into a cache, where each says; those of one text in their order."""
        for start in range(0, len(tokens), self._most):
            some = slice(start, start + self._most)
            ids, places, rows = (torch.tensor(each[some]) for each in (tokens, positions, seats))
            self._run(model, into, ids, places, rows, None)

    def _run(
        self,
        model: GPT,
        held: RowCache,
        tokens: Tensor,
        lengths: Tensor,
        seats: Tensor | None,
        logits: Tensor | None,
    ) -> None:
        x = model.positions(model.tokens(tokens[:, None]), lengths[:, None])[:, 0].contiguous()  # (B, C)
        rotation = model.positions.rotation(lengths[:, None])
        turns = [None, None] if rotation is None else [part.flatten(0, 2).contiguous() for part in rotation]
        rows = _Rows(_at(seats), _at(lengths), *map(_at, turns), len(tokens))
        places = [(_POINTER * len(kept))(*map(_at, kept)) for kept in (held.keys, held.values)]
        cache = _Cache(*places, held.size)
        pace = self._paces.setdefault((len(tokens) - 1).bit_length(), Pace(self._threads))
        threads = pace.threads()
        given = (ctypes.byref(self._model), ctypes.byref(cache), ctypes.byref(rows), _at(x))
        start = time.perf_counter()
        self._library.step(*given, ctypes.byref(self._shared), ctypes.byref(self._owns), _at(logits), threads)
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
    """A linear layer, in float32 or whole numbers, of float32 rows: (..., in) -> (..., out)."""
    given, n_rows = x.contiguous(), x.numel() // x.shape[-1]
    found = torch.empty(*x.shape[:-1], linear.weight.shape[0])
    whole, scale = torch.empty(x.shape, dtype=torch.int8), torch.empty(n_rows)
    own = _Own(whole=_at(whole), scale=_at(scale))
    where = (ctypes.byref(_matrix(linear)), _at(given), ctypes.byref(own), _at(found))
    library.linear(*where, n_rows, threads)
    return found


def _matrix(linear: Any) -> _Matrix:
    scale = getattr(linear, "scale", None)
    return _Matrix(_at(linear.weight), _at(scale), _at(linear.bias), *linear.weight.shape)


def _norm(norm: nn.Module) -> _Norm:
    if isinstance(norm, RMSNorm | nn.LayerNorm):
        return _Norm(_at(norm.weight), _at(getattr(norm, "bias", None)), norm.eps)
    return _Norm()  # an identity


def _at(tensor: Tensor | None) -> int | None:
    assert tensor is None or tensor.is_contiguous(), "addresses of contiguous tensors only"
    return None if tensor is None else tensor.data_ptr()


@cache
def native() -> ctypes.CDLL | None:
    """The compiled ``native.c``; None where there is no compiler."""
    compiler = shutil.which("cc")
    if compiler is None:
        return None
    openmp = _openmp()
    with scratch_folder() as folder:  # private to this user; once loaded, the file is not needed
        path = folder / "native.so"
        command = [compiler, *_FLAGS, *openmp, str(_SOURCE), "-o", str(path), "-lm"]
        try:
            subprocess.run(command, check=True, capture_output=True, timeout=_SLOW)
            library = ctypes.CDLL(str(path))
        except (subprocess.SubprocessError, OSError):
            return None
    library.step.argtypes = [*[_POINTER] * 7, ctypes.c_int]
    library.linear.argtypes = [*[_POINTER] * 4, _LONG, ctypes.c_int]
    library.step.restype = library.linear.restype = None
    return library


def _openmp() -> list[str]:
    """Flags for several threads: torch's own OpenMP, because a second one's threads would stand in its way."""
    lines: list[str] = []
    with suppress(OSError):  # only Linux tells, and not everybody
        lines = Path("/proc/self/maps").read_text(encoding="utf-8", errors="surrogateescape").splitlines()
    # Five columns and then the path, which may hold spaces.
    loaded = [found[1] for line in lines if (found := re.match(r"(?:\S+\s+){5}(/.*/libgomp[^/]*)$", line))]
    try:
        ctypes.CDLL(loaded[0], mode=ctypes.RTLD_GLOBAL)
    except (IndexError, OSError):  # none, or replaced while we run: one thread will do
        return []
    return ["-fopenmp", loaded[0]]
