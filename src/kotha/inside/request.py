"""What a user wants a model to read: a text, a pair, an image, and how many words of its own the model shall add.

The words that the model adds are written here, with the simplest generation that there is: a GPT goes on (greedy, or
by temperature), a Seq2Seq translates (beam search of one).

Images are read by ``pictures.py``.
"""

import textwrap
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from kotha.artifacts.model_folder import Bundle
from kotha.errors import UsageError
from kotha.generation.beam import BeamSettings, beam_search
from kotha.generation.plain import continue_plainly
from kotha.generation.settings import SamplingSettings
from kotha.i18n.message import Message, Option, Text
from kotha.inside.inputs import ModelInput, Write, read, read_image
from kotha.model.config import ViTConfig
from kotha.model.gpt import GPT
from kotha.model.seq2seq import Seq2Seq
from kotha.storage.images import read_picture
from kotha.text.akshara import aksharas

_LONGEST_TITLE, _CUT = 90, " …"


@dataclass(frozen=True)
class Asked:
    """What shall be read."""

    text: str | None = None
    second: str | None = None  # the other sentence, for a BERT
    target: str | None = None  # the translation, for a Seq2Seq; left out, the model writes it
    image: str | Path | NDArray[np.float32] | None = None  # for a ViT: a file, or pixels as ``pictures.py`` gives them
    generate: int | None = None  # tokens that the model shall add
    temperature: float = 0.0
    seed: int = 0

    def __post_init__(self) -> None:
        if self.generate is not None and self.generate < 1:
            given = Option("generate", self.generate)
            raise UsageError("{generate} writes nothing; use 1 or more, or leave it out", generate=given)
        if self.generate is None and (self.temperature or self.seed):
            raise UsageError(
                "{temperature} and {seed} say how the model goes on; say how far with {generate}",
                **{name: Option(name) for name in ("temperature", "seed", "generate")},
            )
        if self.text is not None and self.image is not None:
            raise UsageError("a text and an image are for different models; give one of them")

    def headline(self, otherwise: str = "") -> Text:
        """A page's title: the text (``otherwise`` if none was given), cut between words, or letters, if it is long."""
        if self.image is not None:
            return Message("An image") if isinstance(self.image, np.ndarray) else Path(self.image).name
        text = " ".join((otherwise if self.text is None else self.text).split())
        if not text:
            return Message("An empty text")
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
        raise UsageError("an image is for a ViT, and this model is a {family}; give it a text", family=config.family)
    if asked.text is None and isinstance(config, ViTConfig):
        raise UsageError("a {family} model needs an image", family=config.family)
    if asked.text is None:
        raise UsageError("a {family} model needs a text", family=config.family)
    write = _writer(bundle, asked)
    return read(bundle.model, bundle.tokenizer, asked.text, second=asked.second, target=asked.target, write=write)


def _writer(bundle: Bundle, asked: Asked) -> Write | None:
    """The model's own words: of a GPT if asked for, of a Seq2Seq also where no target is given."""
    model = bundle.model
    special = {} if bundle.tokenizer is None else bundle.tokenizer.special
    if isinstance(model, Seq2Seq) and (asked.generate is not None or asked.target is None):
        if asked.temperature:
            given = Option("temperature")
            raise UsageError("a Seq2Seq's translation is its best one; leave {temperature} out", temperature=given)
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


def load_picture(image: str | Path | NDArray[np.float32], config: ViTConfig) -> Tensor:
    """Read an image for a model, where it is not read yet: -> (n_channels, height, width)."""
    if isinstance(image, np.ndarray):
        return torch.from_numpy(image)
    return torch.from_numpy(read_picture(Path(image), config.image_size, config.n_channels))


def as_bytes(image: Tensor) -> Tensor:
    """An input as it looks, whatever its scale: (n_channels, height, width) -> uint8 (height, width, 3)."""
    low, high = float(image.min()), float(image.max())
    low, high = (-1.0, 1.0) if low >= -1 and high <= 1 else (low, high)
    bright = ((image - low) / (high - low) * 255).round().clamp(0, 255).to(torch.uint8)
    bright = bright if len(bright) in (1, 3) else bright.float().mean(0, keepdim=True).round().to(torch.uint8)  # grey
    return bright.expand(3, -1, -1).permute(1, 2, 0)
