"""What a model shall read while it is watched: a text, a pair or an image, and how many words of its own it adds.

The words that the model adds are written here, with the simplest generation that there is: a GPT goes on (greedy, or
by temperature), a Seq2Seq translates. ``kotha.inside`` reads them and writes nothing.
"""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from kotha.api.options import Asked
from kotha.artifacts.model_folder import Bundle
from kotha.errors import UsageError
from kotha.generation.beam import BeamSettings, beam_search
from kotha.generation.plain import continue_plainly
from kotha.generation.settings import SamplingSettings
from kotha.i18n.message import Message, Option, Text
from kotha.inside.inputs import ModelInput, Write, headline, read, read_image
from kotha.model.gpt import GPT
from kotha.model.seq2seq import Seq2Seq


def read_asked(bundle: Bundle, asked: Asked, otherwise: str | None = None) -> ModelInput:
    """What shall be read, as the model's input; ``otherwise`` is a text for whoever reads text and is given nothing."""
    if asked.image is not None:
        title: Text = Message("An image") if isinstance(asked.image, np.ndarray) else Path(asked.image).name
        return replace(read_image(bundle.model, asked.image), title=title)
    text = otherwise if asked.text is None and bundle.tokenizer is not None else asked.text
    if text is None:
        what = "a {family} model needs an image" if bundle.config.family == "vit" else "a {family} model needs a text"
        raise UsageError(what, family=bundle.config.family)
    write = _writer(bundle, asked)
    given = read(bundle.model, bundle.tokenizer, text, second=asked.second, target=asked.target, write=write)
    return replace(given, title=headline(text))


def _writer(bundle: Bundle, asked: Asked) -> Write | None:
    """The model's own words: of a GPT if asked for, of a Seq2Seq also where no target is given."""
    model, generate = bundle.model, asked.generate
    special = {} if bundle.tokenizer is None else bundle.tokenizer.special
    if isinstance(model, Seq2Seq) and (generate is not None or asked.target is None):
        if asked.temperature:
            given = Option("temperature")
            raise UsageError("a Seq2Seq gives only its best translation; omit {temperature}", temperature=given)
        return translator(bundle, beams=1, tokens=generate)
    if generate is None:
        return None
    if not isinstance(model, GPT):
        return lambda _ids: ()  # `read` says why this body cannot write
    settings = SamplingSettings(temperature=asked.temperature, seed=asked.seed, repetition_penalty=None)
    ends = {special["eos"]} if "eos" in special else set()
    return lambda ids: continue_plainly(model, ids, generate, settings, ends)


def translator(bundle: Bundle, beams: int, tokens: int | None = None) -> Write:
    """A Seq2Seq's own translation, as ids: its text could be cut into other pieces than those that were written."""
    model: Any = bundle.model
    special = {} if bundle.tokenizer is None else bundle.tokenizer.special

    def write(source: list[int]) -> Sequence[int]:
        room = model.config.context_length - 1
        settings = BeamSettings(start=special["bos"], end=special["eos"], beams=beams, tokens=min(tokens or room, room))
        best = beam_search(model, source, settings)
        return best[0].ids if best else ()

    return write


def continuation(bundle: Bundle, asked: Asked) -> str:
    """How a model goes on with a text, as far as is asked."""
    given = read_asked(bundle, asked)
    ids = [piece.id for piece in given.last_line[given.written_from :] if piece.id is not None]
    return "" if bundle.tokenizer is None else bundle.tokenizer.decode(ids)
