"""A small program that runs a GGUF file in llama.cpp, to encode text and compute logits.

The program runs as a separate process (``python llamacpp.py FOLDER``), so that a crash in the C++ code does not affect
the caller. Its log output is not shown. The library is part of the ``xllamacpp`` wheel and is called through the C
functions in llama.h with default settings, whose fields are not accessed. llama.cpp's cache stores keys and values in
float16, regardless of the type of the weights.

This program does not import other Kotha modules, so that it starts quickly.
"""

import ctypes
import json
import os
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

REQUEST, ANSWER, LOGITS = "request.json", "answer.json", "logits.npy"
# The context length of llama.cpp's default settings.
MOST_POSITIONS = 512

_Pointer, _Int = ctypes.c_void_p, ctypes.c_int32
_Ints = ctypes.POINTER(ctypes.c_int32)


class _Settings(ctypes.Structure):
    """An opaque settings struct for llama.h, larger than in any version of it."""

    _fields_ = (("content", ctypes.c_uint64 * 256),)


class _Batch(ctypes.Structure):
    """llama.h's llama_batch."""

    _fields_ = (
        ("n_tokens", _Int),
        ("token", _Ints),
        ("embd", _Pointer),
        ("pos", _Ints),
        ("n_seq_id", _Ints),
        ("seq_id", ctypes.POINTER(_Ints)),
        ("logits", ctypes.POINTER(ctypes.c_int8)),
    )


_FUNCTIONS: dict[str, tuple[Any, list[Any]]] = {
    "llama_backend_init": (None, []),
    "llama_model_default_params": (_Settings, []),
    "llama_context_default_params": (_Settings, []),
    "llama_model_load_from_file": (_Pointer, [ctypes.c_char_p, _Settings]),
    "llama_init_from_model": (_Pointer, [_Pointer, _Settings]),
    "llama_set_n_threads": (None, [_Pointer, _Int, _Int]),
    "llama_model_get_vocab": (_Pointer, [_Pointer]),
    "llama_vocab_n_tokens": (_Int, [_Pointer]),
    "llama_tokenize": (_Int, [_Pointer, ctypes.c_char_p, _Int, _Ints, _Int, ctypes.c_bool, ctypes.c_bool]),
    "llama_token_to_piece": (_Int, [_Pointer, _Int, ctypes.c_char_p, _Int, _Int, ctypes.c_bool]),
    "llama_batch_init": (_Batch, [_Int, _Int, _Int]),
    "llama_decode": (_Int, [_Pointer, _Batch]),
    "llama_get_logits": (ctypes.POINTER(ctypes.c_float), [_Pointer]),
    "llama_get_memory": (_Pointer, [_Pointer]),
    "llama_memory_clear": (None, [_Pointer, ctypes.c_bool]),
}


class LlamaCpp:
    """A GGUF file opened by llama.cpp."""

    def __init__(self, path: str) -> None:
        self._library = ctypes.CDLL(str(import_module("xllamacpp.xllamacpp").__file__))
        for name, (result, arguments) in _FUNCTIONS.items():
            function = getattr(self._library, name)
            function.restype, function.argtypes = result, arguments
        call = self._library
        call.llama_backend_init()
        self._model = call.llama_model_load_from_file(os.fsencode(path), call.llama_model_default_params())
        if not self._model:
            raise RuntimeError("llama.cpp cannot open the file")
        self._context = call.llama_init_from_model(self._model, call.llama_context_default_params())
        if not self._context:
            raise RuntimeError("llama.cpp cannot create a context for the model")
        threads = int(os.environ.get("OMP_NUM_THREADS") or os.cpu_count() or 1)
        call.llama_set_n_threads(self._context, threads, threads)
        self._vocabulary = call.llama_model_get_vocab(self._model)
        self.vocab_size: int = call.llama_vocab_n_tokens(self._vocabulary)
        self._batch = call.llama_batch_init(MOST_POSITIONS, 0, 1)

    def encode(self, text: str) -> list[int]:
        """Return the token ids of a prompt, after the start token; names of special tokens are encoded as text."""
        data = text.encode()
        room = (ctypes.c_int32 * (2 * len(data) + 8))()
        count = self._library.llama_tokenize(self._vocabulary, data, len(data), room, len(room), True, False)
        return list(room[: max(0, count)])

    def decode(self, tokens: list[int]) -> bytes:
        """Return the bytes that token ids decode to."""
        room = ctypes.create_string_buffer(1024)
        found = b""
        for token in tokens:
            count = self._library.llama_token_to_piece(self._vocabulary, token, room, len(room), 0, False)
            found += room.raw[: max(0, count)]
        return found

    def logits(self, tokens: list[int]) -> "np.ndarray[Any, np.dtype[np.float32]]":
        """Return the logits after each token, starting with an empty cache: -> (T, V)."""
        self._library.llama_memory_clear(self._library.llama_get_memory(self._context), True)
        batch = self._batch
        batch.n_tokens = len(tokens)
        for index, token in enumerate(tokens):
            batch.token[index], batch.pos[index] = token, index
            batch.n_seq_id[index], batch.logits[index] = 1, 1
            batch.seq_id[index][0] = 0
        state = self._library.llama_decode(self._context, batch)
        if state:
            raise RuntimeError(f"llama.cpp cannot decode {len(tokens)} tokens (status {state})")
        found = np.ctypeslib.as_array(self._library.llama_get_logits(self._context), (len(tokens), self.vocab_size))
        return np.array(found)


def answer(folder: Path) -> None:
    """Read the request in a folder, run llama.cpp, and write the answer there."""
    request = json.loads((folder / REQUEST).read_text(encoding="utf-8"))
    model = LlamaCpp(request["model"])
    none = np.zeros((0, model.vocab_size), np.float32)
    np.save(folder / LOGITS, np.concatenate([none, *map(model.logits, request.get("windows", []))]))
    found = {
        "ids": [model.encode(line) for line in request.get("lines", [])],
        "text": [model.decode(ids).decode("utf-8", "replace") for ids in request.get("decode", [])],
    }
    (folder / ANSWER).write_text(json.dumps(found), encoding="utf-8")


if __name__ == "__main__":
    answer(Path(sys.argv[1]))
