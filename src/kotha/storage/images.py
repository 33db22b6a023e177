"""Read images: one file, a folder with a subfolder per class, or an ``.npz`` archive.

Arrays (``.npy``, and nested lists in ``.json``) are read directly; other formats are read with Pillow and scaled to the
model's image size. Byte values from 0 to 255 are mapped to the range -1 to 1, as in training; fractions are used
unchanged. An archive contains ``images`` and ``labels`` (or ``x`` and ``y``), or several parts with common names such
as ``x_train`` and ``test_images``.
"""

import io
import json
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kotha.errors import DataError, InstallCommand, UsageError, reason
from kotha.i18n.message import Message

# Larger than any image that such a model needs.
_MOST_BYTES = 64 << 20
_MOST_PIXELS = 1 << 26
_PARTS = {"train": ("train",), "validation": ("validation", "valid", "val", "dev"), "test": ("test",)}
_IMAGES, _LABELS = ("images", "image", "x"), ("labels", "label", "y")
_ENDINGS = {".png", ".jpg", ".jpeg", ".gif", ".bmp", ".webp", ".tif", ".tiff", ".pgm", ".npy"}

Pixels = NDArray[Any]


@dataclass(frozen=True, eq=False)
class LabelledImages:
    """Images and their class names."""

    images: NDArray[np.uint8]  # (N, n_channels, height, width)
    labels: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.labels)

    def chosen(self, indices: Sequence[int]) -> "LabelledImages":
        """Return a subset by index."""
        return LabelledImages(self.images[list(indices)], tuple(self.labels[index] for index in indices))


def read_picture(path: Path, size: int, n_channels: int) -> NDArray[np.float32]:
    """Read an image as model input: -> (n_channels, height, width)."""
    if not path.is_file():
        raise UsageError("image {path} not found; give a PNG, JPEG, PGM, .npy or .json file", path=path)
    n = path.stat().st_size
    if n > _MOST_BYTES:
        raise UsageError(
            "{path} is {n:,} bytes, over the limit of {most:,}; make it smaller", path=path, n=n, most=_MOST_BYTES
        )
    is_array = path.suffix.lower() in (".npy", ".json")
    return _fit(path, _read_array(path) if is_array else _read_with_pillow(path, path, size), n_channels)


def decode_png(data: bytes, size: int, n_channels: int, most_pixels: int) -> NDArray[np.float32]:
    """Decode an untrusted PNG as model input: -> (n_channels, height, width); its size is checked before decoding.

    >>> decode_png(b"GIF89a", 8, 1, 4096)
    Traceback (most recent call last):
    ...
    kotha.errors.UsageError: the image is not a PNG
    """
    if not data.startswith(b"\x89PNG\r\n\x1a\n"):
        raise UsageError("the image is not a PNG")
    name = Message("the image")
    return _fit(name, _read_with_pillow(name, io.BytesIO(data), size, most_pixels, ("PNG",)), n_channels)


def read_labelled_images(path: Path, size: int, n_channels: int) -> dict[str, LabelledImages]:
    """Read labelled images from a folder or an archive; return its parts: train, and validation and test if present."""
    wanted = (n_channels, size, size)
    if path.is_file():
        parts = _read_archive(path)
        for part, each in parts.items():
            _check_size(part, path, each.images.shape[1:], wanted)
        return parts
    named = {folder.name.lower(): folder for folder in _folders(path)}
    found = {part: [named[name] for name in names if name in named] for part, names in _PARTS.items()}
    folders = found if found["train"] else {"train": [path]}
    return {part: _read_classes(part, some[0], wanted) for part, some in folders.items() if some}


def holds_images(path: Path) -> bool:
    """Whether a path is an archive of arrays, or a folder whose subfolders contain images."""
    if path.is_file():
        return path.suffix == ".npz"
    found = (file for pattern in ("[!.]*/*", "[!.]*/[!.]*/*") for file in path.glob(pattern))
    return any(map(_is_image, found))


def _check_size(part: str, path: Path, found: Sequence[int], wanted: Sequence[int]) -> None:
    if tuple(found) != tuple(wanted):
        raise DataError(
            "the {part} images of {path} are {found} (colours, height, width), but the model reads {wanted}; "
            "scale them, or change image_size and n_channels",
            part=part,
            path=path,
            found=" x ".join(map(str, found)),
            wanted=" x ".join(map(str, wanted)),
        )


# -- folders ----------------------------------------------------------------------------------------------------------


def _read_classes(part: str, path: Path, wanted: tuple[int, int, int]) -> LabelledImages:
    """Read a folder that has a subfolder for each class."""
    images: list[NDArray[np.uint8]] = []
    labels: list[str] = []
    for folder in _folders(path):
        files = [file for file in sorted(folder.iterdir()) if _is_image(file)]
        if not files:
            raise DataError(
                "the class {name!r} of {path} has no images; add some, or remove the class",
                name=folder.name,
                path=path,
            )
        for file in files:
            pixels = read_picture(file, wanted[1], wanted[0])
            _check_size(part, file, pixels.shape, wanted)
            images.append(((pixels + 1) * 127.5).round().clip(0, 255).astype(np.uint8))
            labels.append(unicodedata.normalize("NFC", folder.name))  # some file systems decompose characters
    if not images:
        raise DataError(
            "{path} has no images; put the images of each class into a folder named after the class", path=path
        )
    return LabelledImages(np.stack(images), tuple(labels))


def _folders(path: Path) -> list[Path]:
    return sorted(each for each in path.iterdir() if each.is_dir() and not each.name.startswith("."))


def _is_image(file: Path) -> bool:
    return file.suffix.lower() in _ENDINGS and not file.name.startswith(".")


# -- archives ---------------------------------------------------------------------------------------------------------


def _read_archive(path: Path) -> dict[str, LabelledImages]:
    if path.suffix != ".npz":
        raise DataError(
            "{path} contains no images; give an .npz archive, or a folder with a subfolder for each class", path=path
        )
    try:
        with np.load(path, allow_pickle=False) as archive:
            arrays = {name.lower(): np.asarray(archive[name]) for name in archive.files}
    except Exception as error:  # corrupted files raise many kinds of errors in numpy and zipfile
        raise DataError("{path} does not contain readable arrays: {why}", path=path, why=reason(error)) from error
    found = {}
    for part, names in _PARTS.items():
        images, labels = (_array(arrays, kinds, names, part == "train") for kinds in (_IMAGES, _LABELS))
        if images is not None and labels is not None:
            found[part] = _labelled(path, part, images, labels)
    if "train" not in found:
        raise DataError(
            "{path} has the arrays {names}; name them images and labels, or x_train, y_train",
            path=path,
            names=list(arrays),
        )
    return found


def _array(arrays: Mapping[str, Pixels], kinds: Sequence[str], parts: Sequence[str], alone: bool) -> Pixels | None:
    """Find a part's array by names such as ``x_test`` or ``test_images``; if ``alone``, also by ``images``."""
    names = [name for kind in kinds for part in parts for name in (f"{kind}_{part}", f"{part}_{kind}")]
    return next((arrays[name] for name in [*names, *kinds][: None if alone else len(names)] if name in arrays), None)


def _labelled(path: Path, part: str, images: Pixels, labels: Pixels) -> LabelledImages:
    labels = labels.reshape(len(labels)) if labels.ndim > 1 and labels.size == len(labels) else labels
    if images.ndim not in (3, 4) or labels.shape != images.shape[:1] or not images.size:
        raise DataError(
            "the {part} images of {path} have shape {shape} and their labels {labels}; give (N, height, "
            "width[, colours]) and (N,)",
            part=part,
            path=path,
            shape=str(images.shape),
            labels=str(labels.shape),
        )
    if images.dtype.kind == "f" and 0 <= images.min() <= images.max() <= 1:  # also false for NaN
        images = (images * 255).round()
    if images.dtype.kind not in "uif" or not 0 <= images.min() <= images.max() <= 255:
        raise DataError(
            "the {part} images of {path} have pixels outside 0 to 255; give bytes, or fractions from 0 to 1",
            part=part,
            path=path,
        )
    if images.ndim == 3:
        images = images[:, None]
    elif images.shape[-1] in (1, 3) and images.shape[1] not in (1, 3):
        images = images.transpose(0, 3, 1, 2)
    try:
        if labels.dtype.kind == "f":
            if not (labels == labels.round()).all() or not np.isfinite(labels).all():
                raise ValueError(Message("they are not all integers or names; label each image with a class"))
            labels = labels.astype(np.int64)
        names = tuple(unicodedata.normalize("NFC", str(label)) for label in labels.tolist())
    except (SystemError, ValueError) as error:  # numpy raises one for invalid Unicode
        raise DataError(
            "the {part} labels of {path} cannot be read: {why}", part=part, path=path, why=reason(error)
        ) from error
    return LabelledImages(images.astype(np.uint8), names)


# -- one file ---------------------------------------------------------------------------------------------------------


def _read_array(path: Path) -> Pixels:
    try:
        if path.suffix.lower() == ".json":
            return np.asarray(json.loads(path.read_text(encoding="utf-8")))
        # A memory map is never larger than the file, whatever the header claims.
        return np.array(np.load(path, mmap_mode="r", allow_pickle=False))
    except Exception as error:  # corrupted files raise many kinds of errors; numpy parses a header as Python
        raise UsageError("{path} does not contain an array of pixels: {why}", path=path, why=reason(error)) from error


def _read_with_pillow(
    path: Path | Message,
    source: Path | io.BytesIO,
    size: int,
    most_pixels: int = _MOST_PIXELS,
    formats: tuple[str, ...] | None = None,
) -> Pixels:
    """Read an image from a file or from bytes, in any format that Pillow supports or only in ``formats``."""
    try:
        from PIL import Image
    except ImportError as error:
        template = "{what} needs Pillow; install it with: {command} (.npy and .json files do not need it)"
        raise UsageError(template, what=path, command=InstallCommand("images")) from error
    try:
        with Image.open(source, formats=formats) as picture:
            width, height = picture.size
            if not 0 < width * height <= most_pixels:  # checked before decoding
                much = "it has {width:,} x {height:,} pixels, more than {most:,}; make it smaller"
                raise ValueError(Message(much, width=width, height=height, most=most_pixels))
            grey = picture.mode in ("1", "L", "LA", "I;16")
            return np.asarray(picture.convert("L" if grey else "RGB").resize((size, size)))
    except Exception as error:  # corrupted files raise many kinds of errors
        raise UsageError("{path} cannot be read as an image: {why}", path=path, why=reason(error)) from error


def _fit(path: Path | Message, pixels: Pixels, n_channels: int) -> NDArray[np.float32]:
    if pixels.ndim not in (2, 3) or pixels.dtype.kind not in "uif" or not pixels.size:
        raise UsageError(
            "{path} has shape {shape} and type {dtype}; an image is (height, width[, colours])",
            path=path,
            shape=str(pixels.shape),
            dtype=str(pixels.dtype),
        )
    is_integer = pixels.dtype.kind in "ui"
    if not np.isfinite(pixels).all() or (is_integer and not 0 <= pixels.min() <= pixels.max() <= 255):
        raise UsageError("{path} has pixels outside 0 to 255; give bytes, or fractions", path=path)
    image = np.atleast_3d(pixels.astype(np.float32))
    image = image.transpose(2, 0, 1) if image.shape[-1] in (1, 3, 4) else image
    image = image[:3] if len(image) == 4 else image  # drop the alpha channel
    if len(image) == 3 and n_channels == 1:
        image = image.mean(0, keepdims=True)
    elif len(image) == 1:
        image = np.repeat(image, n_channels, axis=0)
    image = image / np.float32(127.5) - 1 if is_integer else image
    return np.ascontiguousarray(image, dtype=np.float32)
