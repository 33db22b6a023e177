"""Translating with a Seq2Seq: text in, text out, by beam search, with the marks of training."""

from collections.abc import Iterator, Sequence

from kotha.errors import DataError
from kotha.generation.beam import BeamSettings, beam_searches
from kotha.i18n.message import Message
from kotha.i18n.wording import OnProgress
from kotha.model.config import Seq2SeqConfig
from kotha.model.seq2seq import Seq2Seq
from kotha.text.tokenizer.tokenizer import Tokenizer

# Sentences that are searched side by side: as many as keep two cores busy, while their cache stays below so many bytes.
_AT_ONCE = 32
_CACHE_BYTES = 256 << 20


def translate(
    model: Seq2Seq, tokenizer: Tokenizer, sources: Sequence[str], beams: int = 4, on_progress: OnProgress | None = None
) -> list[str]:
    """The best translation of each source; of one that is too long the beginning is read, of an empty one nothing."""
    if not {"bos", "eos"} <= tokenizer.special.keys():
        raise DataError("the tokenizer has no mark to start and end a target; use the one the model was trained with")
    settings = BeamSettings(start=tokenizer.special["bos"], end=tokenizer.special["eos"], beams=beams)
    room = model.config.context_length - 1
    read = [tokenizer.encode(source)[:room] if source.strip() else [] for source in sources]
    asked = {place: [*ids, settings.end] for place, ids in enumerate(read) if ids}
    found, done = [""] * len(sources), len(sources) - len(asked)
    for places in _groups(asked, _side_by_side(model.config, beams)):
        for place, best in zip(places, beam_searches(model, [asked[each] for each in places], settings), strict=True):
            found[place] = tokenizer.decode(best[0].ids) if best else ""
        done += len(places)
        if on_progress is not None:
            on_progress(Message("translating"), done, len(sources))
    return found


def _side_by_side(config: Seq2SeqConfig, beams: int) -> int:
    """How many sentences are searched at once."""
    one = 2 * 4 * config.n_decoder_layers * config.n_kv_heads * config.d_head * config.context_length * beams
    return max(1, min(_AT_ONCE, _CACHE_BYTES // one))


def _groups(asked: dict[int, list[int]], size: int) -> Iterator[list[int]]:
    """The places of sentences, those of like length together: what is filled up is read for nothing."""
    places = sorted(asked, key=lambda place: len(asked[place]))
    for start in range(0, len(places), size):
        yield places[start : start + size]
