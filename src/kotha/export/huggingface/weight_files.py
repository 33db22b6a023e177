"""The weights of a folder from elsewhere: found, checked and only then read.

One safetensors file or many. Nothing is believed: a shard's name may not lead out of the folder, the index and the
shards must name the same weights, and names, shapes and types are known before a weight is given memory. A pickle is
never opened.
"""

from dataclasses import dataclass
from pathlib import Path

import safetensors
from torch import Tensor

from kotha.artifacts.model_folder import DTYPES
from kotha.errors import KothaError
from kotha.storage.json_files import read_table
from kotha.storage.status import exists, is_file
from kotha.storage.weights import read_header, reading_weights

_FILE, _INDEX = "model.safetensors", "model.safetensors.index.json"
_MAX_INDEX_BYTES = 1 << 24


@dataclass(frozen=True)
class FoundWeight:
    """A weight of a file that was not read yet."""

    file: Path
    name: str
    shape: tuple[int, ...]
    dtype: str  # one of ours (float32, …), or what the file calls another

    def read(self) -> Tensor:
        """The weight itself, in memory that is its own."""
        with reading_weights(self.file), safetensors.safe_open(self.file, framework="pt") as opened:
            weight: Tensor = opened.get_tensor(self.name)
            return weight


def find_weights(folder: Path) -> list[FoundWeight]:
    """All weights of a folder, by the names that its files have; none is read."""
    if exists(folder / _FILE):
        return _weights_of(inside(folder, _FILE))
    if not exists(folder / _INDEX):
        raise KothaError(
            "{path} holds no weights: neither {file} nor {index}; save other formats as safetensors",
            path=folder,
            file=_FILE,
            index=_INDEX,
        )
    placed = read_table(inside(folder, _INDEX), most_bytes=_MAX_INDEX_BYTES).get("weight_map")
    if not isinstance(placed, dict) or not placed or not all(isinstance(shard, str) for shard in placed.values()):
        raise KothaError(
            "{path} is broken: weight_map must say for each weight the file that holds it", path=folder / _INDEX
        )
    files = [inside(folder, shard) for shard in sorted(set(placed.values()))]
    found = [weight for file in files for weight in _weights_of(file)]
    for name, shard in {(weight.name, weight.file.name) for weight in found} ^ set(placed.items()):
        raise KothaError(
            "{path} and {shard} disagree about {name!r}", path=folder / _INDEX, shard=shard, name=name[:200]
        )
    return found


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
    ours = {written: name for name, written in DTYPES.items()}
    read_header(file)  # bounds what the library is given to read, which checks the rest
    with reading_weights(file), safetensors.safe_open(file, framework="numpy") as opened:
        slices = {name: opened.get_slice(name) for name in opened.keys()}  # noqa: SIM118 - it is no dictionary
        return [
            FoundWeight(file, name, tuple(each.get_shape()), ours.get(each.get_dtype(), each.get_dtype()))
            for name, each in slices.items()
        ]
