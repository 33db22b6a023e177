"""What a user wants a model to read: a text, a pair, an image, and how many words of its own the model shall add.

The words that the model adds are written here, with the simplest generation that there is: a GPT goes on (greedy, or
by temperature), a Seq2Seq translates (beam search of one).

Of images, arrays (``.npy``, and ``.json`` as nested lists) and plain ``.pgm`` files are read here; all else needs
Pillow, which is imported when it is needed. Bytes from 0 to 255 become -1 to 1, as in training; fractions are taken as
given.
"""

import json
import textwrap
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from kotha.bundle import Bundle
from kotha.errors import UsageError
from kotha.generate.beam import BeamSettings, beam_search
from kotha.generate.plain import continue_plainly
from kotha.generate.settings import SamplingSettings
from kotha.inside.inputs import ModelInput, Write, read, read_image
from kotha.model.config import ViTConfig
from kotha.model.gpt import GPT
from kotha.model.seq2seq import Seq2Seq
from kotha.text.akshara import aksharas

_LONGEST_TITLE, _CUT = 90, " …"
# Far more than any picture for a model of this kind.
_MOST_BYTES = 64 << 20


@dataclass(frozen=True)
class Asked:
    """What shall be read."""

    text: str | None = None
    second: str | None = None  # the other sentence, for a BERT
    target: str | None = None  # the translation, for a Seq2Seq; left out, the model writes it
    image: str | Path | None = None  # a file, for a ViT
    generate: int | None = None  # tokens that the model shall add
    temperature: float = 0.0
    seed: int = 0

    def __post_init__(self) -> None:
        if self.generate is not None and self.generate < 1:
            raise UsageError(f"generate={self.generate} writes nothing; use 1 or more, or leave it out")
        if self.generate is None and (self.temperature or self.seed):
            raise UsageError("temperature and seed say how the model goes on; say how far with generate")
        if self.text is not None and self.image is not None:
            raise UsageError("a text and an image are for different models; give one of them")

    def headline(self, otherwise: str = "") -> str:
        """A page's title: the text (``otherwise`` if none was given), cut between words, or letters, if it is long."""
        if self.image is not None:
            return Path(self.image).name
        text = " ".join((otherwise if self.text is None else self.text).split())
        if not text:
            return "An empty text"
        whole_words = textwrap.shorten(text, _LONGEST_TITLE, placeholder=_CUT)
        return "".join(aksharas(text)[: _LONGEST_TITLE // 2]) + _CUT if whole_words == _CUT.strip() else whole_words


def as_asked(asked: Asked | str) -> Asked:
    """A text alone stands for asking that it be read."""
    return Asked(asked) if isinstance(asked, str) else asked


def read_asked(bundle: Bundle, asked: Asked | str) -> ModelInput:
    """What shall be read, as the model's input."""
    asked, config = as_asked(asked), bundle.config
    if asked.image is not None and isinstance(config, ViTConfig):
        return read_image(bundle.model, load_picture(asked.image, config))
    if asked.image is not None:
        raise UsageError(f"an image is for a ViT, and this model is a {config.family}; give it a text")
    if asked.text is None:
        raise UsageError(f"a {config.family} model needs {'an image' if isinstance(config, ViTConfig) else 'a text'}")
    write = _writer(bundle, asked)
    return read(bundle.model, bundle.tokenizer, asked.text, second=asked.second, target=asked.target, write=write)


def _writer(bundle: Bundle, asked: Asked) -> Write | None:
    """The model's own words: of a GPT if asked for, of a Seq2Seq also where no target is given."""
    model = bundle.model
    special = {} if bundle.tokenizer is None else bundle.tokenizer.special
    if isinstance(model, Seq2Seq) and (asked.generate is not None or asked.target is None):
        if asked.temperature:
            raise UsageError("a Seq2Seq's translation is its best one; leave temperature out")
        if not {"bos", "eos"} <= special.keys():
            raise UsageError("this tokenizer has no mark to start and end a target; give the target")
        room = model.config.context_length - 1
        beams = BeamSettings(
            start=special["bos"], end=special["eos"], beams=1, tokens=min(asked.generate or room, room)
        )
        return lambda source: beam_search(model, source, beams)[0].ids
    if asked.generate is None:
        return None
    if not isinstance(model, GPT):
        return lambda _ids: ()  # `read` says why this body cannot write
    settings = SamplingSettings(temperature=asked.temperature, seed=asked.seed, repetition_penalty=None)
    ends = {special["eos"]} if "eos" in special else set()
    return lambda ids: continue_plainly(model, ids, asked.generate or 0, settings, ends)


def load_picture(file: str | Path, config: ViTConfig) -> Tensor:
    """Read an image for a model: -> (n_channels, height, width)."""
    path = Path(file)
    if not path.is_file():
        raise UsageError(f"there is no image {path}; give a PNG, JPEG, PGM, .npy or .json file")
    if path.stat().st_size > _MOST_BYTES:
        raise UsageError(f"{path} has {path.stat().st_size:,} bytes, more than {_MOST_BYTES:,}; make it smaller")
    if path.suffix.lower() in (".npy", ".json"):
        pixels = _read_array(path)
    elif path.suffix.lower() == ".pgm":
        pixels = _read_pgm(path)
    else:
        pixels = _read_with_pillow(path, config.image_size)
    return _fit(path, pixels, config)


def as_bytes(image: Tensor) -> Tensor:
    """An input as it looks, whatever its scale: (n_channels, height, width) -> uint8 (height, width, 3)."""
    low, high = float(image.min()), float(image.max())
    low, high = (-1.0, 1.0) if low >= -1 and high <= 1 else (low, high)
    bright = ((image - low) / (high - low) * 255).round().clamp(0, 255).to(torch.uint8)
    bright = bright if len(bright) in (1, 3) else bright.float().mean(0, keepdim=True).round().to(torch.uint8)  # grey
    return bright.expand(3, -1, -1).permute(1, 2, 0)


def _read_array(path: Path) -> np.ndarray[Any, Any]:
    try:
        if path.suffix.lower() == ".npy":
            return np.asarray(np.load(path, allow_pickle=False))
        return np.asarray(json.loads(path.read_text(encoding="utf-8")))
    except (ValueError, OSError, RecursionError) as error:
        raise UsageError(f"{path} holds no array of pixels: {error}") from error


def _read_pgm(path: Path) -> np.ndarray[Any, Any]:
    """A grey picture, written as bytes (P5) or as numbers (P2)."""
    data = path.read_bytes()
    words: list[bytes] = []
    place = 0
    while len(words) < 4 and place < len(data):  # magic, width, height, the value of white
        end = data.find(b"\n", place)
        if data[place : place + 1] == b"#":
            place = len(data) if end < 0 else end + 1
        elif data[place : place + 1].isspace():
            place += 1
        else:
            start = place
            while place < len(data) and not data[place : place + 1].isspace():
                place += 1
            words.append(data[start:place])
    try:
        width, height, white = (int(word) for word in words[1:])
        if words[0] == b"P5" and 0 < white < 256:
            values = np.frombuffer(data, np.uint8, count=width * height, offset=place + 1)
        elif words[0] == b"P2":
            values = np.array(data[place:].split()[: width * height], dtype=np.int64)
        else:
            raise ValueError("only P2, and P5 of one byte a pixel")
        return (values.reshape(height, width) * (255 / white)).round().astype(np.uint8)
    except (ValueError, IndexError, ZeroDivisionError) as error:
        raise UsageError(f"{path} is no grey picture that can be read: {error}") from error


def _read_with_pillow(path: Path, size: int) -> np.ndarray[Any, Any]:
    try:
        from PIL import Image
    except ImportError as error:
        raise UsageError(
            f"{path.suffix or path} needs Pillow (`pip install pillow`); .npy, .json and .pgm files need nothing"
        ) from error
    try:
        with Image.open(path) as picture:
            grey = picture.mode in ("1", "L", "LA", "I;16")
            return np.asarray(picture.convert("L" if grey else "RGB").resize((size, size)))
    except (OSError, ValueError, Image.DecompressionBombError) as error:
        raise UsageError(f"{path} is no image that can be read: {error}") from error


def _fit(path: Path, pixels: np.ndarray[Any, Any], config: ViTConfig) -> Tensor:
    if pixels.ndim not in (2, 3) or pixels.dtype.kind not in "uif" or not pixels.size:
        raise UsageError(f"{path} has shape {pixels.shape} of {pixels.dtype}; an image is (height, width[, colours])")
    whole = pixels.dtype.kind in "ui"
    if not np.isfinite(pixels).all() or (whole and (pixels.min() < 0 or pixels.max() > 255)):
        raise UsageError(f"{path} has pixels outside 0 to 255; give bytes, or fractions")
    image = torch.from_numpy(pixels.astype(np.float32))
    image = image[None] if image.ndim == 2 else image.permute(2, 0, 1) if image.shape[-1] in (1, 3, 4) else image
    image = image[:3] if len(image) == 4 else image  # what is see-through is left out
    if len(image) == 3 and config.n_channels == 1:
        image = image.mean(0, keepdim=True)
    elif len(image) == 1:
        image = image.expand(config.n_channels, -1, -1)
    return image / 127.5 - 1 if whole else image
