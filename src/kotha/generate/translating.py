"""Translating with a Seq2Seq: text in, text out, by beam search, with the marks of training."""

from collections.abc import Sequence

from kotha.errors import DataError
from kotha.generate.beam import BeamSettings, beam_search
from kotha.model.seq2seq import Seq2Seq
from kotha.text.tokenizer.tokenizer import Tokenizer
from kotha.wording import OnProgress


def translate(
    model: Seq2Seq, tokenizer: Tokenizer, sources: Sequence[str], beams: int = 4, on_progress: OnProgress | None = None
) -> list[str]:
    """The best translation of each source; of one that is too long the beginning is read, of an empty one nothing."""
    if not {"bos", "eos"} <= tokenizer.special.keys():
        raise DataError("the tokenizer has no mark to start and end a target; use the one the model was trained with")
    settings = BeamSettings(start=tokenizer.special["bos"], end=tokenizer.special["eos"], beams=beams)
    room = model.config.context_length - 1
    found = []
    for done, source in enumerate(sources, 1):
        ids = tokenizer.encode(source)[:room] if source.strip() else []
        best = beam_search(model, [*ids, settings.end], settings) if ids else []
        found.append(tokenizer.decode(best[0].ids) if best else "")
        if on_progress is not None:
            on_progress("translating", done, len(sources))
    return found
