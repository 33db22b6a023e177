"""Byte streams: files and their decompression, in bounded memory.

A compressed file may have several frames (``cat a.zst b.zst``), may be truncated or corrupted, or may be a
decompression bomb. Decoders therefore get small pieces of input, which limits the output of each step. A frame that is
incomplete at the end of the file raises an error.
"""

import io
import zlib
from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from typing import Any, BinaryIO

from kotha.i18n.message import Message
from kotha.text.corpus.problems import Unreadable, foreign

_CHUNK = 1 << 16
# This limits the output per piece: 4 bytes of zstd can decompress to 128 KiB (8 MiB per piece), and a byte of gzip to 1
# KiB (1 MiB per piece).
_PIECE = {"gz": 1024, "zst": 256}

_UTF8_MARK = b"\xef\xbb\xbf"
_WRONG_STARTS = {
    b"\xff\xfe": Message("UTF-16 text; convert it first: iconv -f UTF-16 -t UTF-8"),
    b"\xfe\xff": Message("UTF-16 text; convert it first: iconv -f UTF-16 -t UTF-8"),
    b"\x1f\x8b": Message("gzip-compressed data; add the extension .gz to the file name"),
    b"\x28\xb5\x2f\xfd": Message("zstd-compressed data; add the extension .zst to the file name"),
    b"PAR1": Message("a parquet file; add the extension .parquet to its name"),
}


def _decoder(compression: str) -> tuple[Any, type[Exception]]:
    """Return a decoder for one frame, and the exception it raises for corrupted data."""
    if compression == "gz":
        return zlib.decompressobj(wbits=31), zlib.error
    import zstandard  # optional; needed only for zstd files

    return zstandard.ZstdDecompressor().decompressobj(), zstandard.ZstdError


def file_chunks(file: BinaryIO, on_bytes: Callable[[int], None] | None = None) -> Iterator[bytes]:
    """Read a file in chunks; ``on_bytes`` is called with the length of each chunk."""
    while True:
        try:
            chunk = file.read(_CHUNK)
        except Exception as error:  # packages for remote files raise their own exceptions
            raise Unreadable(Message("cannot be read ({why})", why=foreign(error))) from error
        if not chunk:
            return
        if on_bytes is not None:
            on_bytes(len(chunk))
        yield chunk


def decompress(chunks: Iterable[bytes], compression: str | None) -> Iterator[bytes]:
    """Decompress gzip (``gz``) or zstandard (``zst``) with any number of frames.

    >>> b"".join(decompress([zlib.compress(b"ab", wbits=31) + zlib.compress(b"c", wbits=31)], "gz"))
    b'abc'
    """
    if compression is None:
        yield from chunks
        return
    decoder, failure = None, Exception
    frames = 0
    for chunk in chunks:
        data = memoryview(chunk)
        while data:
            if decoder is None:
                if compression == "gz" and frames and not any(data):
                    break  # zeros after the last gzip member are padding, as in gunzip
                decoder, failure = _decoder(compression)
            piece = data[: _PIECE[compression]]
            try:
                out = decoder.decompress(piece)
            except failure as error:
                raise Unreadable(Message("corrupt {kind} data ({why})", kind=compression, why=str(error))) from error
            data = data[len(piece) - len(decoder.unused_data) :]
            if out:
                yield out
            if decoder.eof:
                decoder, frames = None, frames + 1
    if decoder is not None:
        raise Unreadable(Message("the {kind} data is truncated", kind=compression))


class _ChunkReader(io.RawIOBase):
    """Wraps an iterator of byte strings as a raw file, from which the standard buffered reader can read lines."""

    def __init__(self, chunks: Iterator[bytes]) -> None:
        self._chunks = chunks
        self._rest = memoryview(b"")

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any, /) -> int:
        while not self._rest and (chunk := next(self._chunks, None)) is not None:
            self._rest = memoryview(chunk)
        count = min(len(buffer), len(self._rest))
        buffer[:count], self._rest = self._rest[:count], self._rest[count:]
        return count


class TextBytes:
    """The decompressed bytes of a text file, without the byte-order mark."""

    def __init__(self, chunks: Iterator[bytes]) -> None:
        start = b""
        while len(start) < 4 and (chunk := next(chunks, None)):
            start += chunk
        for mark, reason in _WRONG_STARTS.items():
            if start.startswith(mark):
                raise Unreadable(reason)
        start = start.removeprefix(_UTF8_MARK)
        if not start:
            raise Unreadable(Message("the file is empty"))
        self._file = io.BufferedReader(_ChunkReader(chain([start], chunks)), 1 << 18)

    def lines(self, limit: int) -> Iterator[tuple[int, bytes | None]]:
        """Yield the number (from 1) and bytes of each line; None for a line over the limit, which is not stored."""
        readline, number = self._file.readline, 0
        while line := readline(limit + 2):
            number += 1
            if len(line) <= limit or len(line.rstrip(b"\r\n")) <= limit:
                yield number, line
                continue
            while line and not line.endswith(b"\n"):
                line = readline(_CHUNK)
            yield number, None
