"""Call ``native.c`` through ctypes: a GPT's step on a CPU, with weights, cache and buffers in NumPy arrays.

Nothing here imports torch, so a model can write without it. A ``NativeStep`` keeps references to the arrays whose
addresses it has passed on; the weights must not be reallocated during its lifetime.
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
# The parts of a layer, by their names in the model; the gate and the norms of queries and keys are optional.
_MATRICES = {
    **{name: f"attention.{name}" for name in ("joined", "output")},
    **{name: f"feedforward.{name}" for name in ("up", "gate", "down")},
}
_NORMS = {
    **{name: name for name in ("attention_norm", "feedforward_norm")},
    **{name: f"attention.{name}" for name in ("query_norm", "key_norm")},
}


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
    """Chooses the number of threads for a step: one or all, whichever was faster recently.

    Threads synchronize forty times in a step of a few milliseconds. On a busy machine one of them is often delayed, and
    a single thread is much faster. The result does not depend on the choice: every sum is computed by one thread.
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
        """Record a step's duration: as it is after a change of threads, else as a moving average."""
        known = self._seconds[threads]
        self._seconds[threads] = 0.7 * known + 0.3 * seconds if threads == self._last else seconds
        self._steps, self._last = self._steps + 1, threads


class NativeStep:
    """Runs a float32 or int8 model in C: tokens to logits with a cache, and prompts into a cache."""

    def __init__(
        self, config: GPTConfig, weights: Arrays, library: ctypes.CDLL, max_rows: int = 1, threads: int = 1
    ) -> None:
        self._config, self._weights, self._library = config, weights, library
        self._kept: list[NDArray[Any]] = []  # arrays whose addresses the C code holds, besides the weights
        self._threads = threads
        self._paces: dict[int, Pace] = {}  # by number of rows, in powers of two
        self._most = max(max_rows, _PIECE)
        heads, n_keys = config.n_heads * config.d_head, config.n_kv_heads * config.d_head
        widest = max(config.d_ff, config.d_model, heads)
        shared = (heads + 2 * n_keys, heads, config.d_ff, config.d_ff, config.d_model)
        self._shared = _Shared(*(self._room(width) for width in shared))
        rooms = [
            _Own(self._room(config.d_model), self._room(widest), self._room(1), self._room(widest, np.int8))
            for _ in range(threads)
        ]
        self._owns = (_Own * threads)(*rooms)
        self._layers = (_Layer * config.n_layers)(*map(self._layer, range(config.n_layers)))
        sizes = ("n_layers", "d_model", "d_head", "d_ff")
        self._model = _Model(
            layers=self._layers,
            head=_matrix(weights, "head"),
            last=_norm(weights, "stack.norm", config.norm_eps),
            pre_norm=config.norm_order == "pre",
            activation=_ACTIVATIONS[config.activation],
            **{name: getattr(config, name) for name in sizes},
        )

    def _room(self, width: int, dtype: type = np.float32) -> int | None:
        self._kept.append(np.zeros((self._most, width), dtype))
        return _address(self._kept[-1])

    def __call__(self, cache: CacheMemory, tokens: Sequence[int]) -> NDArray[np.float32]:
        """Read a token for each row, (B,), and return the logits of the next: (B, V)."""
        lengths = np.minimum(cache.lengths[: len(tokens)], cache.size - 1)
        logits = np.empty((len(tokens), self._model.head.outs), np.float32)
        self._run(cache, np.array(tokens), lengths, None, logits)
        return logits

    def read(
        self, cache: CacheMemory, tokens: Sequence[int], positions: Sequence[int], cache_rows: Sequence[int]
    ) -> None:
        """Read prompt tokens into a cache at these positions and rows; tokens of one text must be in order."""
        for start in range(0, len(tokens), self._most):
            some = slice(start, start + self._most)
            self._run(cache, *(np.array(each[some], np.int64) for each in (tokens, positions, cache_rows)), None)

    def _run(
        self,
        kv: CacheMemory,
        tokens: NDArray[np.int64],
        lengths: NDArray[np.int64],
        cache_rows: NDArray[np.int64] | None,
        logits: NDArray[np.float32] | None,
    ) -> None:
        x = embed(self._config, self._weights, tokens, lengths)  # (B, C)
        angles = rotation(self._config, lengths)  # each (B, D/2)
        rows = _Rows(_address(cache_rows), _address(lengths), *map(_address, angles), len(tokens))
        tables = [(_POINTER * len(layers))(*map(_address, layers)) for layers in (kv.keys, kv.values)]
        cache = _Cache(*tables, kv.size)
        pace = self._paces.setdefault((len(tokens) - 1).bit_length(), Pace(self._threads))
        threads = pace.threads()
        given = (ctypes.byref(self._model), ctypes.byref(cache), ctypes.byref(rows), _address(x))
        start = time.perf_counter()
        self._library.step(*given, ctypes.byref(self._shared), ctypes.byref(self._owns), _address(logits), threads)
        pace.took(threads, time.perf_counter() - start)

    def _layer(self, number: int) -> _Layer:
        config, weights, block = self._config, self._weights, f"stack.blocks.{number}"
        heads = config.heads_of(f"blocks.{number}.attention")
        queries_per_kv_head = Counter(head * config.n_kv_heads // config.n_heads for head in heads)  # in order
        first = np.array([0, *accumulate(queries_per_kv_head.values())], np.int64)
        self._kept.append(first)
        return _Layer(
            first=_address(first),
            n_heads=len(heads),
            n_kv_heads=len(queries_per_kv_head),
            **{name: _matrix(weights, f"{block}.{part}") for name, part in _MATRICES.items()},
            **{name: _norm(weights, f"{block}.{part}", config.norm_eps) for name, part in _NORMS.items()},
        )


def embed(
    config: GPTConfig, weights: Arrays, tokens: NDArray[np.int64], positions: NDArray[np.int64]
) -> NDArray[np.float32]:
    """Embedded tokens with their positions, as in ``model/position.py``: (B,), (B,) -> (B, C)."""
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
    """Cosine and sine of a head's rotary angles: (B,) -> two arrays (B, D/2), or two None."""
    if config.positions != "rotary":
        return None, None
    powers = config.rotary_base ** (np.arange(0, config.d_head, 2) / config.d_head)
    speeds = np.float32(1) / powers.astype(np.float32)  # rounded as by torch, for the same text
    angles = (positions[:, None].astype(np.float32) * speeds).astype(np.float64)
    return np.cos(angles).astype(np.float32), np.sin(angles).astype(np.float32)


def product(weights: Arrays, name: str, x: NDArray[Any], threads: int, library: ctypes.CDLL) -> NDArray[Any]:
    """Apply a float32 or int8 linear layer, by its name, to float32 rows: (B, in) -> (B, out)."""
    matrix = _matrix(weights, name)
    y, scale = np.empty((len(x), matrix.outs), np.float32), np.empty(len(x), np.float32)
    quantized = np.empty(x.shape, np.int8)
    own = _Own(quantized=_address(quantized), scale=_address(scale))
    library.linear(ctypes.byref(matrix), _address(x), ctypes.byref(own), _address(y), len(x), threads)
    return y


def _matrix(weights: Arrays, name: str) -> _Matrix:
    """A linear layer; one without a weight if the model does not have it."""
    weight, scale, bias = (weights.get(f"{name}.{part}".removeprefix(".")) for part in ("weight", "scale", "bias"))
    if weight is None:
        return _Matrix()
    assert weight.dtype == (np.float32 if scale is None else np.int8), "int8 has scales, float32 none"
    return _Matrix(_address(weight), _address(scale), _address(bias), *weight.shape)


def _norm(weights: Arrays, name: str, eps: float) -> _Norm:
    """A norm; one without a weight is the identity."""
    return _Norm(*(_address(weights.get(f"{name}.{part}")) for part in ("weight", "bias")), eps)


def _address(array: NDArray[Any] | None) -> int | None:
    if array is None:
        return None
    assert array.flags.c_contiguous and array.flags.aligned, "the array must be contiguous"
    address: int = array.__array_interface__["data"][0]
    return address
