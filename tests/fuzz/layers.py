"""The layers of a file: a header and a body, members of an archive, chunks of an image, parts of a request.

Damage to the outer layer of such a file is nearly always detected by a checksum or a length. The file is therefore
unpacked, one part is damaged, and the file is packed again with correct checksums and lengths, so that the reader has
to parse the damaged part.
"""

import gzip
import io
import struct
import zipfile
import zlib
from collections.abc import Callable

Parcel = dict[str, bytes]  # names and contents
Opened = tuple[Parcel, Callable[[Parcel], bytes]]

_PNG = b"\x89PNG\r\n\x1a\n"
_MOST_BYTES = 1 << 20
# Errors that libraries raise if they cannot open a file; zipfile raises RuntimeError for an encrypted member.
_CLOSED = (ValueError, OSError, zipfile.BadZipFile, zlib.error, EOFError, RuntimeError, struct.error)


def opened(name: str, data: bytes) -> Opened | None:
    """Return the parts of a file and a function that packs them; None if there are none, or they cannot be parsed."""
    ways = {".safetensors": _safetensors, ".npz": _zip, ".bin": _zip, ".png": _png, ".http": _request}
    ways |= {".gz": _gzip, ".zst": _zstandard}
    way = next((way for ending, way in ways.items() if name.endswith(ending)), None)
    try:
        return None if way is None else way(name, data)
    except _CLOSED:
        return None


def _safetensors(_: str, data: bytes) -> Opened | None:
    size = int.from_bytes(data[:8], "little")
    if not 2 <= size <= len(data) - 8:
        return None
    parts = {"header.json": data[8 : 8 + size], "numbers": data[8 + size :]}
    return parts, lambda new: len(new["header.json"]).to_bytes(8, "little") + new["header.json"] + new["numbers"]


def _zip(_: str, data: bytes) -> Opened:
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        if sum(entry.file_size for entry in archive.infolist()) > _MOST_BYTES:
            raise ValueError("it grows")
        parts = {entry.filename: archive.read(entry) for entry in archive.infolist()}

    def close(new: Parcel) -> bytes:
        held = io.BytesIO()
        with zipfile.ZipFile(held, "w") as archive:
            for name, part in new.items():
                archive.writestr(zipfile.ZipInfo(name), part)
        return held.getvalue()

    return parts, close


def _png(_: str, data: bytes) -> Opened:
    if not data.startswith(_PNG):
        raise ValueError("no picture")
    parts, place = {}, len(_PNG)
    while place < len(data):
        (size,) = struct.unpack_from(">I", data, place)
        kind = data[place + 4 : place + 8].decode("latin-1")
        parts[f"{len(parts)} {kind}"] = data[place + 8 : place + 8 + size]
        place += size + 12

    def close(new: Parcel) -> bytes:
        chunks = [(name.partition(" ")[2].encode("latin-1"), part) for name, part in new.items()]
        return _PNG + b"".join(
            struct.pack(">I", len(part)) + kind + part + struct.pack(">I", zlib.crc32(kind + part))
            for kind, part in chunks
        )

    return parts, close


def _gzip(name: str, data: bytes) -> Opened:
    with gzip.GzipFile(fileobj=io.BytesIO(data)) as stream:
        inner = name.removesuffix(".gz")
        return {inner: stream.read(_MOST_BYTES)}, lambda new: gzip.compress(new.get(inner, b""), 1, mtime=0)


def _zstandard(name: str, data: bytes) -> Opened:
    import zstandard

    inner = name.removesuffix(".zst")
    try:
        unpacked = zstandard.ZstdDecompressor().decompressobj().decompress(data)
    except zstandard.ZstdError as error:
        raise ValueError(error) from error
    return {inner: unpacked}, lambda new: zstandard.ZstdCompressor().compress(new.get(inner, b""))


def _request(_: str, data: bytes) -> Opened:
    head, _, body = data.partition(b"\r\n\r\n")
    line, _, headers = head.partition(b"\r\n")
    parts = {"line": line, "headers": headers, "body.json": body}

    def close(new: Parcel) -> bytes:
        line, headers, body = (new.get(name, b"") for name in ("line", "headers", "body.json"))
        return line + b"\r\n" + headers + b"\r\n\r\n" + body

    return parts, close
