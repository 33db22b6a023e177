"""Alignment: which words of a source each word of a translation was written from, as one layer's cross-attention.

A row is what was written, a column what was read; the weights are the mean over the heads of one decoder layer. Of
several layers the last but one aligns best in deep models (https://arxiv.org/abs/1909.02074), so that is the one
that is shown where none is named. Attention is where a model looks, and a hint of why: not a proof.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from torch import Tensor

from kotha.artifacts.model_folder import Bundle
from kotha.errors import UsageError
from kotha.generation.beam import BeamSettings, beam_search
from kotha.i18n.message import Option, Plural, Text
from kotha.inside.attention.maps import attention_maps
from kotha.inside.inputs import Piece, Write, read
from kotha.inside.view import View
from kotha.model.seq2seq import Seq2Seq
from kotha.report.single_file import view_page
from kotha.text.tokenizer.tokenizer import Tokenizer


@dataclass(frozen=True)
class Alignment:
    """What was written, what was read, and how strongly each looked at each."""

    source: tuple[Piece, ...]
    written: tuple[Piece, ...]
    weights: Tensor  # (written, source); each row sums to one
    layer: int

    @property
    def strongest(self) -> list[int]:
        """For each piece that was written, the place in the source that it looked at most."""
        places: list[int] = self.weights.argmax(dim=-1).tolist()
        return places

    def to_dict(self) -> dict[str, Any]:
        """All of it, ready for JSON."""
        return {
            "source": [piece.text for piece in self.source],
            "written": [piece.text for piece in self.written],
            "weights": self.weights.double().mul(1e6).round().div(1e6).tolist(),
            "strongest": self.strongest,
            "layer": self.layer,
        }


def alignment_view(
    bundle: Bundle, text: str, target: str | None = None, layer: int | None = None, beams: int = 4
) -> View[Alignment]:
    """Where a translation comes from; without a ``target`` it is the model's own, by beam search."""
    model = bundle.model
    if not isinstance(model, Seq2Seq):
        raise UsageError(
            "this is a {family} model; only a Seq2Seq has a source to look at", family=bundle.config.family
        )
    n_layers = model.config.n_decoder_layers
    chosen = max(0, n_layers - 2) if layer is None else layer
    if not 0 <= chosen < n_layers:
        raise UsageError(
            "{layer}: the decoder has {layers}, counted from 0",
            layer=Option("layer", chosen),
            layers=Plural("{n} layer", "{n:,} layers", n=n_layers),
        )
    write = _writer(model, bundle.tokenizer, beams) if target is None else None
    given = read(model, bundle.tokenizer, text, target=target, write=write)
    maps = attention_maps(model, given, [f"decoder.{chosen}"])
    (cross,) = (each for each in maps.maps if each.name.endswith(".cross"))
    written = maps.line("target")[1:]  # a row looks as it writes what comes after it; the last one writes the end
    found = Alignment(maps.line("source"), written, cross.weights.mean(dim=0)[: len(written)], chosen)
    return View(text, found, lambda: alignment_page(found, text, given.remarks), found.to_dict, given.remarks)


def _writer(model: Seq2Seq, tokenizer: Tokenizer | None, beams: int) -> Write | None:
    """The model's own translation, as ids: its text could be cut into other pieces than those that were written."""
    if tokenizer is None or not {"bos", "eos"} <= tokenizer.special.keys():
        return None  # reading says what is missing
    start, end = tokenizer.special["bos"], tokenizer.special["eos"]
    settings = BeamSettings(start=start, end=end, beams=beams, tokens=model.config.context_length - 1)

    def write(source: list[int]) -> Sequence[int]:
        best = beam_search(model, source, settings)
        return best[0].ids if best else ()

    return write


def alignment_page(found: Alignment, title: str, remarks: Sequence[Text] = ()) -> str:
    """One offline page: the alignment as a shaded matrix (``web/src/parts/Alignment.svelte``)."""
    pieces = {name: [piece.to_dict() for piece in getattr(found, name)] for name in ("source", "written")}
    return view_page("alignment", title, {**found.to_dict(), **pieces}, remarks, made_by="kotha translate")
