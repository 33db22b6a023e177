"""Run the decoding step of a GPT on a CPU by calling ``native.c`` through ctypes, with all data in NumPy arrays.

This module does not import torch, so a model can generate text without it. A ``NativeModel`` (weights) or a
``NativeStep`` (buffers) checks all arrays that the C code reads and keeps them alive.
"""

import ctypes
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import accumulate
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kotha.generation.cache_memory import CacheMemory
from kotha.model.config import GPTConfig

# Weights by their names in the model, with the queries, keys and values of a layer joined (``weights.py``).
Arrays = Mapping[str, NDArray[Any]]
_PIECE = 64  # prompt tokens per call
_ACTIVATIONS = {"relu": 1, "gelu": 2, "gelu-tanh": 3, "swiglu": 4}
_POINTER, _LONG = ctypes.c_void_p, ctypes.c_long
# The parts of a layer; the gate and the norms of queries and keys are optional.
_MATRICES = ("joined", "output", "up", "gate", "down")
_NORMS = ("attention_norm", "feedforward_norm", "query_norm", "key_norm")


class _Matrix(ctypes.Structure):
    """A linear layer in float32, or in int8 with scales."""

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
    """Buffers for one thread's intermediate results."""

    _fields_ = tuple((name, _POINTER) for name in ("x", "read", "scale", "quantized"))


class Pace:
    """Chooses one thread or all threads for a step, depending on which was faster recently.

    Threads synchronize forty times in a step of a few milliseconds. On a busy machine threads are often delayed, and a
    single thread is then much faster. The choice does not affect the result, because each sum is computed by one
    thread.
    """

    first, again = 3, 64  # trials of each option at the start, and steps between trials of the slower one

    def __init__(self, most: int) -> None:
        self._seconds = dict.fromkeys(sorted({1, most}, reverse=True), 0.0)
        self._steps, self._last = 0, 0

    def threads(self) -> int:
        """Return the number of threads for the next step."""
        options = list(self._seconds)
        if self._steps < self.first * len(options):
            return options[self._steps % len(options)]
        faster, *slower = sorted(options, key=lambda option: self._seconds[option])
        return slower[0] if slower and self._steps % self.again == 0 else faster

    def took(self, threads: int, seconds: float) -> None:
        """Record the duration of a step, as a moving average unless the number of threads has just changed."""
        known = self._seconds[threads]
        self._seconds[threads] = 0.7 * known + 0.3 * seconds if threads == self._last else seconds
        self._steps, self._last = self._steps + 1, threads


class NativeModel:
    """A float32 or int8 GPT in arrays, with C structs that point to them; raises ValueError for wrong shapes."""

    def __init__(self, config: GPTConfig, weights: Arrays, library: ctypes.CDLL, threads: int = 1) -> None:
        self.config, self.weights, self.library, self.threads = config, weights, library, threads
        self._left = dict(weights)  # arrays not yet checked
        self._firsts: list[NDArray[np.int64]] = []
        self._address("tokens.weight", config.vocab_size, config.d_model)
        if config.positions == "learned":
            self._address("positions.table.weight", config.context_length, config.d_model)
        self._layers = (_Layer * config.n_layers)(*map(self._layer, range(config.n_layers)))
        self.struct = _Model(
            layers=self._layers,
            head=self._matrix("head", config.vocab_size, config.d_model, config.head_bias),
            last=self._norm("stack.norm") if config.final_norm else _Norm(),
            pre_norm=config.norm_order == "pre",
            activation=_ACTIVATIONS[config.activation],
            **{name: getattr(config, name) for name in ("n_layers", "d_model", "d_head", "d_ff")},
        )
        if self._left:
            raise ValueError(f"the model has no {', '.join(self._left)}")

    def _layer(self, number: int) -> _Layer:
        config, block = self.config, f"stack.blocks.{number}"
        heads = config.heads_of(f"blocks.{number}.attention")
        queries_per_kv_head = Counter(head * config.n_kv_heads // config.n_heads for head in heads)  # in order
        n_heads, n_kv_heads, d_model, d_ff = len(heads), len(queries_per_kv_head), config.d_model, config.d_ff
        self._firsts.append(np.array([0, *accumulate(queries_per_kv_head.values())], np.int64))
        attention = {"joined": ((n_heads + 2 * n_kv_heads) * config.d_head, d_model)}
        attention["output"] = (d_model, n_heads * config.d_head)
        feedforward = {"up": (d_ff, d_model), "down": (d_model, d_ff)}
        if config.activation == "swiglu":
            feedforward["gate"] = (d_ff, d_model)
        parts: dict[str, Any] = {
            f"{part}_norm": self._norm(f"{block}.{part}_norm") for part in ("attention", "feedforward")
        }
        for name, shape in attention.items():
            parts[name] = self._matrix(f"{block}.attention.{name}", *shape, config.attention_bias)
        for name, shape in feedforward.items():
            parts[name] = self._matrix(f"{block}.feedforward.{name}", *shape, config.feedforward_bias)
        for name in ("query_norm", "key_norm") if config.qk_norm else ():
            weight = self._address(f"{block}.attention.{name}.weight", config.d_head)
            parts[name] = _Norm(weight=weight, eps=config.norm_eps)
        return _Layer(first=_address(self._firsts[-1]), n_heads=n_heads, n_kv_heads=n_kv_heads, **parts)

    def _matrix(self, name: str, outs: int, width: int, bias: bool) -> _Matrix:
        is_int8 = f"{name}.scale" in self._left
        return _Matrix(
            self._address(f"{name}.weight", outs, width, dtype=np.int8 if is_int8 else np.float32),
            self._address(f"{name}.scale", outs) if is_int8 else None,
            self._address(f"{name}.bias", outs) if bias else None,
            *(outs, width),
        )

    def _norm(self, name: str) -> _Norm:
        weight = self._address(f"{name}.weight", self.config.d_model)
        bias = None if self.config.norm == "rms" else self._address(f"{name}.bias", self.config.d_model)
        return _Norm(weight, bias, self.config.norm_eps)

    def _address(self, name: str, *shape: int, dtype: type = np.float32) -> int:
        array = self._left.pop(name, None)
        if array is None or array.shape != shape or array.dtype != dtype:
            raise ValueError(f"{name} must have the shape {shape} and the type {dtype.__name__}")
        return _address(array) or 0


class NativeStep:
    """Runs a model in C: computes logits with a cache, and processes prompts into a cache."""

    def __init__(self, model: NativeModel, max_rows: int = 1) -> None:
        config, self._model = model.config, model
        self._kept: list[NDArray[Any]] = []  # buffers whose addresses the C code holds
        self._paces: dict[int, Pace] = {}  # by number of rows, a power of two
        self._most = max(max_rows, _PIECE)
        heads, n_keys = config.n_heads * config.d_head, config.n_kv_heads * config.d_head
        widest = max(config.d_ff, config.d_model, heads)
        shared = (heads + 2 * n_keys, heads, config.d_ff, config.d_ff, config.d_model)
        self._shared = _Shared(*(self._room(width) for width in shared))
        rooms = [
            _Own(self._room(config.d_model), self._room(widest), self._room(1), self._room(widest, np.int8))
            for _ in range(model.threads)
        ]
        self._owns = (_Own * model.threads)(*rooms)

    def _room(self, width: int, dtype: type = np.float32) -> int | None:
        self._kept.append(np.zeros((self._most, width), dtype))
        return _address(self._kept[-1])

    def __call__(self, cache: CacheMemory, tokens: Sequence[int]) -> NDArray[np.float32]:
        """Process one token for each row, (B,), and return the logits of the next one: (B, V)."""
        lengths = np.minimum(cache.lengths[: len(tokens)], cache.size - 1)
        logits = np.empty((len(tokens), self._model.config.vocab_size), np.float32)
        self._run(cache, np.array(tokens), lengths, None, logits)
        return logits

    def read(
        self, cache: CacheMemory, tokens: Sequence[int], positions: Sequence[int], cache_rows: Sequence[int]
    ) -> None:
        """Process prompt tokens into these rows and positions of a cache; the tokens of each text must be in order."""
        for start in range(0, len(tokens), self._most):
            some = slice(start, start + self._most)
            ids, lengths, rows = (np.array(each[some], np.int64) for each in (tokens, positions, cache_rows))
            self._run(cache, ids, lengths, rows, None)

    def _run(
        self,
        kv: CacheMemory,
        tokens: NDArray[np.int64],
        lengths: NDArray[np.int64],
        cache_rows: NDArray[np.int64] | None,
        logits: NDArray[np.float32] | None,
    ) -> None:
        model = self._model
        x = embed(model.config, model.weights, tokens, lengths)  # (B, C)
        angles = rotation(model.config, lengths)  # each (B, D/2)
        rows = _Rows(_address(cache_rows), _address(lengths), *map(_address, angles), len(tokens))
        tables = [(_POINTER * len(layers))(*map(_address, layers)) for layers in (kv.keys, kv.values)]
        cache = _Cache(*tables, kv.size)
        pace = self._paces.setdefault((len(tokens) - 1).bit_length(), Pace(model.threads))
        threads = pace.threads()
        given = (ctypes.byref(model.struct), ctypes.byref(cache), ctypes.byref(rows), _address(x))
        start = time.perf_counter()
        model.library.step(*given, ctypes.byref(self._shared), ctypes.byref(self._owns), _address(logits), threads)
        pace.took(threads, time.perf_counter() - start)


def embed(
    config: GPTConfig, weights: Arrays, tokens: NDArray[np.int64], positions: NDArray[np.int64]
) -> NDArray[np.float32]:
    """Embed tokens and their positions, as in ``model/position.py``: (B,), (B,) -> (B, C)."""
    x: NDArray[np.float32] = weights["tokens.weight"][tokens]
    if config.positions == "learned":
        x = x + weights["positions.table.weight"][positions]
    elif config.positions.startswith("sinusoidal"):
        angles = positions[:, None] / 10_000 ** (np.arange(0, config.d_model, 2) / config.d_model)
        waves = [np.sin(angles).astype(np.float32), np.cos(angles).astype(np.float32)]  # each (B, C/2)
        interleaved = config.positions == "sinusoidal"
        x = x + (np.stack(waves, -1).reshape(x.shape) if interleaved else np.concatenate(waves, -1))
    return x


def rotation(config: GPTConfig, positions: NDArray[np.int64]) -> tuple[NDArray[np.float32] | None, ...]:
    """Return the cosine and sine of the rotary angles of a head: (B,) -> two arrays (B, D/2), or two None."""
    if config.positions != "rotary":
        return None, None
    powers = config.rotary_base ** (np.arange(0, config.d_head, 2) / config.d_head)
    speeds = np.float32(1) / powers.astype(np.float32)  # rounded as in torch, for identical text
    angles = (positions[:, None].astype(np.float32) * speeds).astype(np.float64)
    return np.cos(angles).astype(np.float32), np.sin(angles).astype(np.float32)


def _address(array: NDArray[Any] | None) -> int | None:
    if array is None:
        return None
    assert array.flags.c_contiguous and array.flags.aligned, "the array must be contiguous"
    address: int = array.__array_interface__["data"][0]
    return address
