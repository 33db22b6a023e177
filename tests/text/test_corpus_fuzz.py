"""Every reader gets 10,000 byte strings; each gives documents or a CorpusError, never another exception."""

import gzip
import io
import random
from collections.abc import Callable

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import zstandard

from kotha.errors import CorpusError
from kotha.text.corpus import documents
from kotha.text.corpus.documents import read_records
from kotha.text.corpus.sources import Source

TEXTS = ["আমার সোনার বাংলা", "কথা", 'ক্ষমা, "ঠিক" আছে', "x" * 60, "শেষ নথি 🙂"]


def parquet() -> bytes:
    out = io.BytesIO()
    pq.write_table(pa.table({"id": range(5), "text": TEXTS}), out, row_group_size=2, compression="zstd")
    return out.getvalue()


SOUND = {
    "txt": "\n\n".join(TEXTS).encode(),
    "jsonl": "".join(f'{{"id": {i}, "text": "{t.replace(chr(34), "")}"}}\n' for i, t in enumerate(TEXTS)).encode(),
    "csv": ("id,text\n" + "".join(f'{i},"{t.replace(chr(34), chr(34) * 2)}"\n' for i, t in enumerate(TEXTS))).encode(),
    "tsv": ("id\ttext\n" + "".join(f"{i}\t{t}\n" for i, t in enumerate(TEXTS))).encode(),
    "parquet": parquet(),
}
COMPRESSORS: dict[str | None, Callable[[bytes], bytes]] = {
    None: lambda data: data,
    "gz": lambda data: gzip.compress(data, 1, mtime=0),
    "zst": zstandard.ZstdCompressor().compress,
}
KINDS = [(f, c) for f in SOUND for c in COMPRESSORS if f != "parquet" or not c]
STRINGS = 10_000
PIECES = [*(bytes([each]) for each in b'",:[{}\t\n\r\0\xff '), b"\n\n", b'{"text": "', b'"}\n', b"\\ud800", b"\\u0000"]
PIECES += [b"\xef\xbb\xbf", b"\xff\xfe", b"text", b"id,text\n", b"id\ttext\n", b"1e999", "ক্ষ".encode()]


def noise(rng: random.Random) -> bytes:
    """Uniform random bytes, or a random mix of format fragments."""
    if rng.random() < 0.4:
        return rng.randbytes(rng.randrange(120))
    return b"".join(rng.choices(PIECES, k=rng.randrange(40)))


def damage(data: bytes, rng: random.Random) -> bytes:
    """Cut, flip, overwrite, insert or repeat bytes of a valid file."""
    broken = bytearray(data)
    for _ in range(rng.randrange(1, 4)):
        at = rng.randrange(len(broken) + 1)
        end = min(len(broken), at + rng.randrange(1, 16))
        match rng.randrange(5):
            case 0:
                del broken[at:]
            case 1 if at < len(broken):
                broken[at] ^= 1 << rng.randrange(8)
            case 2:
                broken[at:end] = rng.randbytes(end - at)
            case 3:
                broken[at:at] = rng.choice(PIECES)
            case _:
                broken[at:at] = broken[at:end]
    return bytes(broken)


def strings(format: str, squeeze: Callable[[bytes], bytes], rng: random.Random) -> bytes:
    sound = SOUND[format]
    match rng.randrange(4):
        case 0:
            return noise(rng)
        case 1:
            return squeeze(noise(rng))
        case 2:
            return squeeze(damage(sound, rng))
        case _:
            return damage(squeeze(sound), rng)


@pytest.mark.parametrize(("format", "compression"), KINDS)
def test_ten_thousand_strings_give_documents_or_a_corpus_error(monkeypatch, format, compression):
    rng = random.Random(f"{format}{compression}")
    source = Source("fuzz", format, compression, None)
    read = stopped = 0
    for turn in range(STRINGS):
        data = strings(format, COMPRESSORS[compression], rng)
        monkeypatch.setattr(documents, "_open", lambda _, data=data: io.BytesIO(data))
        errors = ("stop", "skip")[turn % 2]
        limit = 32 if rng.random() < 0.3 else 1 << 20
        try:
            for _, ((text,), position) in read_records([source], ("text",), errors=errors, max_document_bytes=limit):
                assert position >= 1
                assert "\0" not in text
                text.encode()
                read += 1
        except CorpusError as error:
            assert errors == "stop", f"{errors} must not raise, but {error} on {data!r}"
            str(error).encode()
            stopped += 1
        except Exception as error:
            pytest.fail(f"{error!r} on {data!r}")
    assert read > 1000, "the strings never reach the documents"
    assert stopped > 1000, "the strings are never broken"
