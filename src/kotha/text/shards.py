"""Token shards on disk: a data folder, memory-mapped in training.

::

    dataset.json         the description: format, tokenizer, and for each split its counts and shards with their sha256
    tokenizer.json       the tokenizer that made the ids
    train-00000.bin …    ids, little-endian uint16 (uint32 when the vocabulary needs it); each document ends with eos
    train.offsets        start of each document in the split's ids, and the end; little-endian uint64

A folder is written atomically. Loading rejects a shard that was truncated, swapped or encoded with another tokenizer.
"""

import hashlib
import json
import os
import shlex
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass, field, fields
from functools import cached_property
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from kotha.errors import DataError
from kotha.storage.atomic import atomic_write
from kotha.storage.json_files import as_json, read_table
from kotha.storage.output_paths import is_made_of
from kotha.storage.status import exists, is_directory, is_file, is_file_in, reading
from kotha.text.corpus.sources import kind_of
from kotha.text.encoding import Ids
from kotha.text.tokenizer.tokenizer import FILE_NAME as TOKENIZER_FILE
from kotha.text.tokenizer.tokenizer import Tokenizer

DATASET_FILE = "dataset.json"
FORMAT = "kotha-dataset"
FORMAT_VERSION = 1
DTYPES = {"uint16": "<u2", "uint32": "<u4"}
_TOKENS_PER_SHARD = 1 << 26
_MOST_BYTES = 1 << 26  # limit for dataset.json, which has an entry per shard


def dtype_for(vocab_size: int) -> str:
    """Return the smallest id type for a vocabulary size.

    >>> dtype_for(65_536), dtype_for(65_537)
    ('uint16', 'uint32')
    """
    return "uint16" if vocab_size <= 1 << 16 else "uint32"


@dataclass
class ShardInfo:
    """One file of ids."""

    file: str
    tokens: int
    sha256: str


@dataclass
class SplitInfo:
    """Counts and shards of a split; bytes and characters refer to the normalized text."""

    documents: int = 0
    tokens: int = 0
    bytes: int = 0
    characters: int = 0
    shards: list[ShardInfo] = field(default_factory=list)
    offsets_sha256: str = ""


class SplitWriter:
    """Writes the shards of one split, document by document."""

    def __init__(self, folder: Path, name: str, dtype: str, eos: int, shard_tokens: int = _TOKENS_PER_SHARD) -> None:
        self.info = SplitInfo()
        self._folder, self._name = folder, name
        self._dtype = np.dtype(DTYPES[dtype])
        self._eos = np.array([eos], self._dtype).tobytes()
        self._shard_tokens = shard_tokens
        self._shard: _HashedFile | None = None
        self._offsets = _HashedFile(folder / f"{name}.offsets")
        self._offsets.write(np.array([0], "<u8").tobytes())

    def __enter__(self) -> "SplitWriter":
        return self

    def __exit__(self, *_: object) -> None:
        """Close the files, even incomplete ones."""
        for file in (self._offsets, self._shard):
            if file is not None:
                file.release()

    def add(self, ids: Ids, n_bytes: int, n_characters: int) -> None:
        """Add a document; its end-of-text token is appended."""
        assert ids.dtype == self._dtype, f"ids of {ids.dtype} for shards of {self._dtype}"
        if self._shard is None or self._shard.size >= self._shard_tokens * self._dtype.itemsize:
            self._finish_shard()
            self._shard = _HashedFile(self._folder / f"{self._name}-{len(self.info.shards):05d}.bin")
        self._shard.write(ids.tobytes() + self._eos)
        self.info.documents += 1
        self.info.tokens += len(ids) + 1
        self.info.bytes += n_bytes
        self.info.characters += n_characters
        self._offsets.write(np.array([self.info.tokens], "<u8").tobytes())

    def close(self) -> SplitInfo:
        """Finish all files and sync them to disk."""
        self._finish_shard()
        self.info.offsets_sha256 = self._offsets.close()
        return self.info

    def _finish_shard(self) -> None:
        if self._shard is not None:
            tokens = self._shard.size // self._dtype.itemsize
            self.info.shards.append(ShardInfo(self._shard.path.name, tokens, self._shard.close()))
            self._shard = None


class _HashedFile:
    """A file that returns its SHA-256 when closed."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.size = 0
        self._file: BinaryIO = path.open("xb", buffering=1 << 20)
        self._hash = hashlib.sha256()

    def write(self, data: bytes) -> None:
        self._file.write(data)
        self._hash.update(data)
        self.size += len(data)

    def close(self) -> str:
        self._file.flush()
        os.fsync(self._file.fileno())
        self._file.close()
        return self._hash.hexdigest()

    def release(self) -> None:
        with suppress(OSError):  # on a full disk, closing the file also fails; report the first error
            self._file.close()


def write_description(
    folder: Path, tokenizer: Tokenizer, splits: dict[str, SplitInfo], made_by: dict[str, Any]
) -> None:
    """Write ``tokenizer.json`` and, last, ``dataset.json``."""
    tokenizer.save(folder)
    description = {
        "format": FORMAT,
        "format_version": FORMAT_VERSION,
        "tokenizer": tokenizer.fingerprint,
        "vocab_size": tokenizer.vocab_size,
        "dtype": dtype_for(tokenizer.vocab_size),
        "splits": {name: asdict(info) for name, info in splits.items()},
        "made_by": made_by,
    }
    atomic_write(folder / DATASET_FILE, as_json(description, indent=1) + "\n")


def is_data_folder(folder: Path) -> bool:
    """Return whether a folder is a data folder without other files."""
    written = [TOKENIZER_FILE, "*-[0-9][0-9][0-9][0-9][0-9].bin", "*.offsets"]
    return is_made_of(folder, DATASET_FILE, lambda values: values.get("format") == FORMAT, written)


class Split:
    """The documents of one split, memory-mapped."""

    def __init__(self, folder: Path, name: str, info: SplitInfo, dtype: str) -> None:
        self.name, self.info = name, info
        self._folder = folder
        self._dtype = np.dtype(DTYPES[dtype])

    def __len__(self) -> int:
        return self.info.documents

    def __getitem__(self, index: int) -> Ids:
        """Return the ids of a document, including its end-of-text token."""
        if not 0 <= index < len(self):
            raise IndexError(f"document {index} of {len(self)}")
        start, end = int(self.offsets[index]), int(self.offsets[index + 1])
        shard = int(np.searchsorted(self._shard_starts, start, side="right")) - 1
        base = int(self._shard_starts[shard])
        return self.shards[shard][start - base : end - base]

    def __iter__(self) -> Iterator[Ids]:
        return (self[index] for index in range(len(self)))

    @cached_property
    def shards(self) -> list[Ids]:
        """Each shard as a memory-mapped array; no document spans two shards."""
        return [_map(self._folder / shard.file, self._dtype, shard.tokens) for shard in self.info.shards]

    @cached_property
    def offsets(self) -> NDArray[np.uint64]:
        """The start of each document in the ids of all shards, and the end of the last."""
        path = self._folder / f"{self.name}.offsets"
        offsets: NDArray[np.uint64] = _map(path, np.dtype("<u8"), len(self) + 1)
        starts = self._shard_starts.astype(np.uint64)
        sorted_ends = offsets[0] == 0 and offsets[-1] == starts[-1] and bool((offsets[:-1] <= offsets[1:]).all())
        if not sorted_ends or not np.array_equal(offsets[np.searchsorted(offsets, starts)], starts):
            raise DataError(
                "{path} does not match the shards of {name}; run `kotha prepare` again",
                path=path,
                name=self.name,
            )
        return offsets

    @cached_property
    def _shard_starts(self) -> NDArray[np.int64]:
        return np.cumsum([0, *(shard.tokens for shard in self.info.shards)])

    def check(self, hashes: bool) -> None:
        """Check the size of every file of the split and, with ``hashes``, its SHA-256."""
        width = self._dtype.itemsize
        files = [(shard.file, shard.tokens * width, shard.sha256) for shard in self.info.shards]
        for name, size, sha256 in [*files, (f"{self.name}.offsets", 8 * (len(self) + 1), self.info.offsets_sha256)]:
            path = self._folder / name
            if not is_file_in(self._folder, name):
                raise DataError("{path} is missing; run `kotha prepare` again", path=self._folder / name[:200])
            found = path.stat().st_size
            if found != size:
                raise DataError(
                    "{path} is {n:,} bytes instead of {size:,}; run `kotha prepare` again",
                    path=path,
                    n=found,
                    size=size,
                )
            if hashes:
                with reading(path), path.open("rb") as file:
                    if hashlib.file_digest(file, "sha256").hexdigest() != sha256:
                        raise DataError("{path} has changed since it was prepared: its sha256 differs", path=path)
        if sum(shard.tokens for shard in self.info.shards) != self.info.tokens:
            raise DataError(
                "{path}: the shards of {name} do not add up to its {tokens:,} tokens",
                path=self._folder / DATASET_FILE,
                name=self.name,
                tokens=self.info.tokens,
            )


class Dataset:
    """A data folder: its splits and their tokenizer."""

    def __init__(self, path: str | Path, verify: bool = True) -> None:
        self.path = Path(path)
        self.description, infos = _read_description(self.path)
        self.tokenizer = Tokenizer.load(self.path / TOKENIZER_FILE)
        if self.tokenizer.fingerprint != self.description["tokenizer"]:
            raise DataError(
                "{path} has fingerprint {found}, but the shards were encoded with {wanted}; run `kotha prepare` again",
                path=self.path / TOKENIZER_FILE,
                found=self.tokenizer.fingerprint,
                wanted=self.description["tokenizer"],
            )
        dtype = self.description["dtype"]
        self.splits = {name: Split(self.path, name, info, dtype) for name, info in infos.items()}
        for split in self.splits.values():
            split.check(hashes=verify)

    @property
    def identity(self) -> str:
        """A hash that identifies this data, independent of its path."""
        return identity_of(self.description)

    def __getitem__(self, name: str) -> Split:
        if name not in self.splits:
            raise DataError(
                "{path} has no split {name!r}; it has {splits}", path=self.path, name=name, splits=[*self.splits]
            )
        return self.splits[name]


def identity_of(description: dict[str, Any]) -> str:
    """Hash the tokenizer and the splits (including all shard hashes) of a data folder."""
    content = json.dumps([description.get("tokenizer"), description.get("splits")], sort_keys=True)
    return hashlib.sha256(content.encode()).hexdigest()[:16]


def _read_description(folder: Path) -> tuple[dict[str, Any], dict[str, SplitInfo]]:
    """Return the contents of ``dataset.json``, and the splits it describes."""
    path = folder / DATASET_FILE
    if not is_file(path):
        raise not_a_data_folder(folder)
    description = read_table(path, DataError, most_bytes=_MOST_BYTES)
    if (description.get("format"), description.get("format_version")) != (FORMAT, FORMAT_VERSION):
        raise DataError(
            "{path} does not describe a Kotha data folder in format version {reads}; run `kotha prepare` again",
            path=path,
            reads=FORMAT_VERSION,
        )
    try:
        infos = {name: _split_info(values) for name, values in description["splits"].items()}
        if not isinstance(description["tokenizer"], str) or description["dtype"] not in [*DTYPES]:
            raise TypeError(f"tokenizer={description['tokenizer']!r}, dtype={description['dtype']!r}")
        files = [shard.file for info in infos.values() for shard in info.shards]
        if any(Path(name).name != name for name in [*infos, *files]):
            raise DataError("{path} names a file outside its folder", path=path)
    except (KeyError, TypeError, AttributeError) as error:
        raise DataError("{path} is not valid: {why}; run `kotha prepare` again", path=path, why=str(error)) from error
    return description, infos


def not_a_data_folder(path: Path) -> DataError:
    """Return an error that describes what the path contains and how to create a data folder."""
    if not exists(path):
        return DataError("{path} not found; create a data folder with `kotha prepare`", path=path)
    if not is_directory(path):
        if not _is_text(path):
            return DataError("{path} is a file; specify a data folder created with `kotha prepare`", path=path)
        template = "{path} is a file, not a data folder; prepare the text first: {commands}"
        return DataError(template, path=path, commands=prepare_commands(path))
    inner = next((each for each in sorted(path.iterdir()) if is_file(each / DATASET_FILE)), None)
    if inner is not None:
        return DataError("{path} is not a data folder; did you mean {inner}?", path=path, inner=inner)
    if is_file(path / "config.json"):
        template = "{path} is a run or model folder; specify the data folder created with `kotha prepare`"
        return DataError(template, path=path)
    if any(_is_text(each) for each in path.iterdir()):
        template = "{path} contains text files but is not a data folder; prepare the text first: {commands}"
        return DataError(template, path=path, commands=prepare_commands(path))
    template = "{path} is not a data folder: it has no {file}; create one with `kotha prepare`"
    return DataError(template, path=path, file=DATASET_FILE)


def prepare_commands(texts: Path) -> str:
    """Return the commands that create a data folder from text.

    >>> prepare_commands(Path("my texts"))
    "kotha tokenizer train 'my texts' --out tok && kotha prepare 'my texts' --tokenizer tok --out data"
    """
    name = shlex.quote(os.fspath(texts))
    return f"kotha tokenizer train {name} --out tok && kotha prepare {name} --tokenizer tok --out data"


def _is_text(path: Path) -> bool:
    """Return whether a file has an extension that the corpus readers support."""
    with suppress(ValueError):
        return is_file(path) and bool(kind_of(path.name))
    return False


def _split_info(values: dict[str, Any]) -> SplitInfo:
    shards = [ShardInfo(**each) for each in values["shards"]]
    info = SplitInfo(**{**values, "shards": shards})
    parts: list[SplitInfo | ShardInfo] = [info, *shards]
    for part in parts:
        for each in fields(part):
            value = getattr(part, each.name)
            if each.type is int and (type(value) is not int or not 0 <= value < 1 << 60):
                raise TypeError(f"{each.name}={value!r} is not a count")
    return info


def _map(path: Path, dtype: np.dtype[Any], length: int) -> NDArray[Any]:
    if length == 0:
        return np.empty(0, dtype)  # an empty file cannot be mapped
    with reading(path):
        return np.memmap(path, dtype, mode="r", shape=(length,))
