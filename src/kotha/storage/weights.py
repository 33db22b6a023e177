"""Weights files (safetensors): headers are checked before weights are read.

No code from a weights file is ever executed.
"""

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from safetensors import SafetensorError

from kotha.errors import KothaError, reason
from kotha.i18n.message import Message
from kotha.storage.atomic import NotWrittenError

if TYPE_CHECKING:
    from torch import Tensor

_MAX_HEADER_BYTES = 1 << 23


def read_header(file: Path) -> tuple[dict[str, Any], int]:
    """Return the header of a safetensors file (names, types, shapes) and the number of bytes of weights after it."""
    with reading_weights(file), file.open("rb") as stream:
        size = int.from_bytes(stream.read(8), "little")
        if not 2 <= size <= min(_MAX_HEADER_BYTES, file.stat().st_size - 8):
            raise KothaError(
                "{path} is truncated or not a safetensors file: its header claims {n:,} bytes", path=file, n=size
            )
        try:
            header = json.loads(stream.read(size))
        except (ValueError, RecursionError) as error:
            raise KothaError("{path} is not a safetensors file: {why}", path=file, why=reason(error)) from error
    if not isinstance(header, dict) or not all(isinstance(entry, dict) for entry in header.values()):
        raise KothaError("{path} is not a safetensors file: its header is not a table of tensors", path=file)
    header.pop("__metadata__", None)
    return header, file.stat().st_size - 8 - size


@contextmanager
def reading_weights(file: Path, kind: type[KothaError] = KothaError) -> Iterator[Path]:
    """Raise ``kind`` for errors while weights are read from a file.

    safetensors makes torch open the file a second time, and torch raises a plain RuntimeError if that fails.
    """
    try:
        yield file
    except (SafetensorError, OSError) as error:
        raise kind("{path} cannot be read: {why}", path=file, why=reason(error)) from error
    except RuntimeError as error:
        if f"<{file}>" not in str(error):
            raise
        why = str(error).rpartition(">")[2].rpartition(": ")[2].strip() or reason(error)
        raise kind("{path} cannot be read: {why}", path=file, why=why) from error


def write_weights(file: Path, weights: "dict[str, Tensor]", **about: str) -> None:
    """Write a safetensors file with ``about`` in its header, and sync it to disk."""
    import safetensors.torch  # reading headers needs no torch

    try:
        safetensors.torch.save_file(weights, file, metadata=about or {"format": "pt"})
    except SafetensorError as error:
        raise NotWrittenError(
            Message("{path} could not be written: {why}", path=file.name, why=reason(error))
        ) from error
    file.chmod(file.parent.stat().st_mode & 0o666)  # the library makes it readable only by the owner
    with file.open("rb") as stream:
        os.fsync(stream.fileno())
