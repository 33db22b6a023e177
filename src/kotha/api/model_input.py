"""The input to an inspected model: a text, a pair or an image, and the tokens that the model generates.

Generation here is kept as simple as possible: a GPT model continues the text (greedily or with a temperature), and a
Seq2Seq model translates it. ``kotha.inside`` receives the resulting input and does not generate text itself.
"""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from kotha.api.options import InputOptions
from kotha.artifacts.model_folder import Bundle
from kotha.errors import UsageError
from kotha.generation.beam import BeamSettings, beam_search
from kotha.generation.plain import continue_plainly
from kotha.generation.settings import SamplingSettings
from kotha.i18n.message import Message, Option, Text
from kotha.inside.inputs import ModelInput, Write, headline, read, read_image
from kotha.model.gpt import GPT
from kotha.model.seq2seq import Seq2Seq


def read_input(bundle: Bundle, options: InputOptions, otherwise: str | None = None) -> ModelInput:
    """Build the input to a model; ``otherwise`` is the text to use if none is given and the model takes text."""
    if options.image is not None:
        title: Text = Message("An image") if isinstance(options.image, np.ndarray) else Path(options.image).name
        return replace(read_image(bundle.model, options.image), title=title)
    text = otherwise if options.text is None and bundle.tokenizer is not None else options.text
    if text is None:
        what = "a {family} model needs an image" if bundle.config.family == "vit" else "a {family} model needs a text"
        raise UsageError(what, family=bundle.config.family)
    write = _writer(bundle, options)
    given = read(bundle.model, bundle.tokenizer, text, second=options.second, target=options.target, write=write)
    return replace(given, title=headline(text))


def _writer(bundle: Bundle, options: InputOptions) -> Write | None:
    """Return a function that generates ids: for a GPT on request; for a Seq2Seq model also if no target is given."""
    model, generate = bundle.model, options.generate
    special = {} if bundle.tokenizer is None else bundle.tokenizer.special
    if isinstance(model, Seq2Seq) and (generate is not None or options.target is None):
        if options.temperature:
            given = Option("temperature")
            raise UsageError("a Seq2Seq model returns only its best translation; omit {temperature}", temperature=given)
        return translator(bundle, beams=1, tokens=generate)
    if generate is None:
        return None
    if not isinstance(model, GPT):
        return lambda _ids: ()  # `read` reports why this architecture cannot generate
    settings = SamplingSettings(temperature=options.temperature, seed=options.seed, repetition_penalty=None)
    ends = {special["eos"]} if "eos" in special else set()
    return lambda ids: continue_plainly(model, ids, generate, settings, ends)


def translator(bundle: Bundle, beams: int, tokens: int | None = None) -> Write:
    """Return a function that translates to ids; tokenizing the translated text again could give different ids."""
    model: Any = bundle.model
    special = {} if bundle.tokenizer is None else bundle.tokenizer.special

    def write(source: list[int]) -> Sequence[int]:
        room = model.config.context_length - 1
        settings = BeamSettings(start=special["bos"], end=special["eos"], beams=beams, tokens=min(tokens or room, room))
        best = beam_search(model, source, settings)
        return best[0].ids if best else ()

    return write


def continuation(bundle: Bundle, options: InputOptions) -> str:
    """Return the model's continuation of a text, with the requested number of tokens."""
    given = read_input(bundle, options)
    ids = [piece.id for piece in given.last_line[given.written_from :] if piece.id is not None]
    return "" if bundle.tokenizer is None else bundle.tokenizer.decode(ids)
