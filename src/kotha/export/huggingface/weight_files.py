"""The weights of a folder from elsewhere: found, checked and only then read.

One file or many, safetensors or what ``torch.save`` writes. Nothing is believed: a shard's name may not lead out of
the folder, the index and the shards must name the same weights, and names, shapes and types are known before a weight
is given memory. A pickle is opened as weights alone, from a file that is mapped and not unpacked; code in it is never
run.
"""

import math
import pickletools
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import safetensors
import torch
from torch import Tensor

from kotha.artifacts.model_folder import DTYPES
from kotha.errors import KothaError, reason
from kotha.i18n.message import Message
from kotha.storage.json_files import read_table
from kotha.storage.status import is_file, is_there
from kotha.storage.weights import read_header, reading_weights

# What a folder is searched for, best first: a file of weights, or an index of several.
_FILES = ("model.safetensors", "model.safetensors.index.json", "pytorch_model.bin", "pytorch_model.bin.index.json")
_INDEX = ".index.json"
_MAX_INDEX_BYTES = 1 << 24
_MAX_SHARDS = 1000
_MAX_PICKLE_BYTES = 1 << 24  # of names and shapes; the numbers lie beside it
_LONGEST_NAME = 200  # of what a pickle asks for: torch._utils._rebuild_tensor_v2
# Names under which one weight may lie in a pickle: Marian's table of words has four.
_MAX_NAMES = 4
# Bytes of a number of each type that a safetensors file may hold; weights are floats, other tensors need not be.
_ITEM_BYTES = {"BOOL": 1, "U8": 1, "I8": 1, "F8_E4M3": 1, "F8_E5M2": 1, "I16": 2, "U16": 2, "F16": 2, "BF16": 2}
_ITEM_BYTES |= {"I32": 4, "U32": 4, "F32": 4, "I64": 8, "U64": 8, "F64": 8}


@dataclass(frozen=True)
class FoundWeight:
    """A weight of a file that was not read yet."""

    file: Path
    name: str
    shape: tuple[int, ...]
    dtype: str  # one of ours (float32, …), or what the file calls another
    tensor: Tensor | None = None  # where the file had to be opened whole: the weight, still on the disk

    def read(self) -> Tensor:
        """The weight itself, in memory that is its own."""
        if self.tensor is not None:
            return self.tensor.clone()
        with reading_weights(self.file), safetensors.safe_open(self.file, framework="pt") as opened:
            weight: Tensor = opened.get_tensor(self.name)
            return weight


def find_weights(folder: Path) -> list[FoundWeight]:
    """All weights of a folder, by the names that its files have; none is read."""
    start = next((name for name in _FILES if is_there(folder / name)), None)
    if start is None:
        raise KothaError("{path} holds no weights: none of {names}", path=folder, names=_FILES)
    file = inside(folder, start)
    if not start.endswith(_INDEX):
        return _weights_of(file)
    placed = read_table(file, most_bytes=_MAX_INDEX_BYTES).get("weight_map")
    if not isinstance(placed, dict) or not placed or not all(isinstance(shard, str) for shard in placed.values()):
        raise KothaError("{path} is broken: weight_map must say for each weight the file that holds it", path=file)
    ending = Path(start.removesuffix(_INDEX)).suffix
    shards = sorted(set(placed.values()))
    if len(shards) > _MAX_SHARDS:
        raise KothaError(
            "{path} names {n:,} shards; more than {most:,} is no model",
            path=file,
            n=len(shards),
            most=_MAX_SHARDS,
        )
    for shard in shards:
        if Path(shard).suffix != ending:
            raise KothaError(
                "{path}: {shard!r} is no shard of this model; they end in {ending}",
                path=file,
                shard=shard[:200],
                ending=ending,
            )
    found: dict[str, FoundWeight] = {}
    for shard, path in [(shard, inside(folder, shard)) for shard in shards]:
        for weight in _weights_of(path):
            if weight.name in found:
                raise KothaError(
                    "{name} is in two shards, {first} and {shard}",
                    name=weight.name,
                    first=found[weight.name].file.name,
                    shard=shard,
                )
            if placed.get(weight.name) != shard:
                raise KothaError(
                    "{shard} holds {name}, which {index} does not place there",
                    shard=shard,
                    name=weight.name[:200],
                    index=file.name,
                )
            found[weight.name] = weight
    for name, shard in placed.items():
        if name not in found:
            raise KothaError(
                "{shard} lacks {name}, which {index} places there", shard=shard, name=name[:200], index=file.name
            )
    return list(found.values())


def inside(folder: Path, name: str) -> Path:
    """A file of a folder by its plain name; a path or a link that leads out of the folder is refused."""
    if not name or name in (".", "..") or any(mark in name for mark in "/\\\0") or len(name) > 255:
        raise KothaError("{name!r} is not the name of a file in {path}", name=name[:200], path=folder)
    try:
        target = (folder / name).resolve(strict=True)
    except (OSError, RuntimeError, ValueError) as error:  # the last, of half a character
        raise KothaError("{path} lacks {name}, or it is a link that leads nowhere", path=folder, name=name) from error
    roots = [folder.resolve()]
    if folder.resolve().parent.name == "snapshots":  # the hub's cache keeps the files themselves beside the folder
        roots.append(folder.resolve().parent.parent / "blobs")
    if not any(target.is_relative_to(root) for root in roots):
        raise KothaError(
            "{path} is a link out of the folder, to {target}; put the file itself there",
            path=folder / name,
            target=target,
        )
    if not is_file(target):
        raise KothaError("{path} is not a file", path=folder / name)
    return folder / name


def _weights_of(file: Path) -> list[FoundWeight]:
    return _from_safetensors(file) if file.suffix == ".safetensors" else _from_pickle(file)


def _from_safetensors(file: Path) -> list[FoundWeight]:
    header, n_bytes = read_header(file)
    ours = {written: name for name, written in DTYPES.items()}
    found, n_claimed = [], 0
    for name, entry in header.items():
        shape, dtype = entry.get("shape"), entry.get("dtype")
        if not isinstance(dtype, str) or dtype not in _ITEM_BYTES:
            raise KothaError(
                "{path}: {name} is of type {dtype!r}, which cannot be read",
                path=file,
                name=name[:200],
                dtype=str(dtype)[:50],
            )
        if not isinstance(shape, list) or not all(type(size) is int and 0 <= size < 1 << 40 for size in shape):
            raise KothaError(
                "{path}: {name} has shape {shape}, which is none", path=file, name=name[:200], shape=str(shape)[:100]
            )
        n_claimed += _ITEM_BYTES[dtype] * math.prod(shape)
        found.append(FoundWeight(file, name, tuple(shape), ours.get(dtype, dtype)))
    if n_claimed != n_bytes:
        raise KothaError(
            "{path} is truncated or broken: its header speaks of {claimed:,} bytes, {n:,} follow",
            path=file,
            claimed=n_claimed,
            n=n_bytes,
        )
    return found


def _from_pickle(file: Path) -> list[FoundWeight]:
    _check_archive(file)
    try:
        values: Any = torch.load(file, map_location="cpu", weights_only=True, mmap=True)
    except Exception as error:  # whatever a pickle made by someone else can bring about
        raise KothaError(
            "{path} cannot be opened as weights alone: {why!r}; nothing in it was run; ask for safetensors",
            path=file,
            why=str(error).splitlines()[0][:200] if str(error) else type(error).__name__,
        ) from error
    if not isinstance(values, dict):
        raise KothaError("{path} holds no table of weights", path=file)
    for name, tensor in values.items():
        plain = isinstance(tensor, Tensor) and tensor.layout == torch.strided and tensor.device.type == "cpu"
        if not isinstance(name, str) or not plain:
            raise KothaError("{path}: {name!r} is not a plain weight", path=file, name=str(name)[:200])
    n_claimed, size = sum(each.numel() * each.itemsize for each in values.values()), file.stat().st_size
    if n_claimed > _MAX_NAMES * size:  # one number may stand for a whole matrix, and many names for one place
        raise KothaError(
            "{path} claims {claimed:,} bytes of weights, and has {n:,}; ask for safetensors",
            path=file,
            claimed=n_claimed,
            n=size,
        )
    dtypes = {name: str(each.dtype).removeprefix("torch.") for name, each in values.items()}
    return [FoundWeight(file, name, tuple(each.shape), dtypes[name], each.detach()) for name, each in values.items()]


def _check_archive(file: Path) -> None:
    """Only what lies in a zip as it is: nothing to unpack, so nothing grows."""
    advice = Message("save the model as safetensors with the library that made it")
    try:
        if not zipfile.is_zipfile(file):
            raise KothaError(
                "{path} is not what torch.save writes today (a zip of tensors); {advice}", path=file, advice=advice
            )
        with zipfile.ZipFile(file) as archive:
            entries = archive.infolist()
            pickles = [entry for entry in entries if entry.filename.endswith("data.pkl")]
            small = sum(entry.file_size for entry in pickles) <= _MAX_PICKLE_BYTES
            held = [archive.read(entry) for entry in pickles if small and entry.compress_type == zipfile.ZIP_STORED]
    except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError) as error:
        raise KothaError("{path} is truncated or broken: {why}", path=file, why=reason(error)) from error
    size = file.stat().st_size
    if any(entry.compress_type != zipfile.ZIP_STORED for entry in entries) or sum(e.file_size for e in entries) > size:
        raise KothaError(
            "{path} is a packed archive, which torch.save does not write; {advice}", path=file, advice=advice
        )
    if not small:
        raise KothaError(
            "{path} has a table of weights of more than {most:,} bytes; {advice}",
            path=file,
            most=_MAX_PICKLE_BYTES,
            advice=advice,
        )
    if not all(_is_table(each) for each in held):
        raise KothaError(
            "{path} cannot be opened as weights alone: its table is broken; nothing in it was run; {advice}",
            path=file,
            advice=advice,
        )


def _is_table(pickle: bytes) -> bool:
    """Whether a pickle can be gone through to its end, and speaks of nothing with an endless name.

    torch looks for such a name in its own message with a pattern that takes minutes for a long one.
    """
    try:
        steps = [(step.name, argument) for step, argument, _ in pickletools.genops(pickle)]
    except Exception:  # whatever broken bytes can bring about
        return False
    return all(len(str(argument)) <= _LONGEST_NAME for step, argument in steps if step in ("GLOBAL", "INST"))
