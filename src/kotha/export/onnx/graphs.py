"""The model as graphs: what goes in, what comes out, and which sizes are free.

A GPT reads new tokens and the keys and values of those before, and gives logits and all keys and values: with an
empty past it is the model as it stands, with its own answer fed back it writes one token a step. A Seq2Seq is two such
graphs, encoder and decoder. BERT and ViT have nothing to remember. Every row of a batch has the same length; only the
readers of whole texts (BERT, a Seq2Seq's source) take a mask for padding.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, cast

import torch
from torch import Tensor, nn

from kotha.errors import ConfigError
from kotha.model.attention import Attention, KeysValues
from kotha.model.bert import BERT
from kotha.model.family import Model
from kotha.model.gpt import GPT
from kotha.model.masks import Mask
from kotha.model.seq2seq import Seq2Seq
from kotha.model.vit import ViT

Sizes = dict[int, str]
# Example sizes, all different, none of them one: an exporter takes what is equal for one thing, and one for a constant.
_BATCH, _LENGTH, _PAST, _SOURCE = 2, 3, 5, 4


@dataclass(frozen=True)
class Graph:
    """One graph: a module of plain tensors, examples of them, and the names of everything."""

    name: str
    module: nn.Module
    examples: tuple[Any, ...]
    inputs: dict[str, Sizes]  # each input's name, and its free sizes by name
    outputs: dict[str, Sizes]


class GrowingCache:
    """Keys and values that came in as tensors, made longer by the new ones; kept for the way out."""

    def __init__(self, past: Sequence[Tensor], n_read: int) -> None:
        self.past, self.n_read = past, n_read
        self.present: list[Tensor] = []

    def positions(self, n_new: int) -> Tensor:
        """Where the new tokens stand: (T,)."""
        return torch.arange(n_new, device=self.past[0].device) + self.n_read

    def mask(self, n_new: int) -> Mask:
        """Each new token looks at itself and all before it: (T, S)."""
        places = torch.arange(self.n_read + n_new, device=self.past[0].device)
        return places[None, :] <= self.positions(n_new)[:, None]

    def append(self, layer: int, keys: Tensor, values: Tensor) -> KeysValues:
        """The past and the new, each (B, n_kv_heads, S, D)."""
        grown = (torch.cat((self.past[2 * layer], keys), 2), torch.cat((self.past[2 * layer + 1], values), 2))
        self.present += grown
        return grown


class _Around(nn.Module):
    """A model with another way in and out."""

    def __init__(self, model: Any) -> None:
        super().__init__()
        self.model = model


class _GPTGraph(_Around):
    def forward(self, ids: Tensor, past: list[Tensor]) -> tuple[Tensor, ...]:
        """(B, T) and 2 tensors a layer (B, n_kv_heads, P, D) -> (B, T, V) and as many of P + T."""
        cache = GrowingCache(past, past[0].shape[2])
        logits = self.model(ids, cache=cache)
        return logits, *cache.present


class _EncoderGraph(_Around):
    def forward(self, source: Tensor, real: Tensor) -> Tensor:
        """The source, read once: (B, S), twice -> (B, S, C)."""
        encoded: Tensor = self.model.encode(source, real)
        return encoded


class _DecoderGraph(_Around):
    def forward(self, ids: Tensor, encoded: Tensor, real: Tensor, past: list[Tensor]) -> tuple[Tensor, ...]:
        """(B, T), (B, S, C), (B, S) and the past -> (B, T, V) and the present."""
        cache = GrowingCache(past, past[0].shape[2])
        hidden = self.model.decode(ids, encoded, real, cache)
        return self.model.head(hidden), *cache.present


class _BERTGraph(_Around):
    def forward(self, ids: Tensor, segments: Tensor, real: Tensor) -> tuple[Tensor, ...]:
        """(B, T), three times -> words (B, T, V), the pair (B, 2), the text as a vector (B, C)."""
        return tuple(self.model(ids, segments, real))


def graphs_of(model: Model) -> list[Graph]:
    """The graphs of a model, with its weights."""
    match model:
        case GPT():
            n_layers = model.config.n_layers
            examples = (_ids(_LENGTH), empty_past(model.stack.blocks, _BATCH, _PAST))
            inputs = {"ids": _text("length"), **_past(n_layers)}
            return [Graph("model", _GPTGraph(model), examples, inputs, _answers(n_layers))]
        case BERT():
            inputs = {name: _text("length") for name in ("ids", "segments", "real")}
            outputs = {"token_logits": _text("length"), "pair_logits": {0: "batch"}, "pooled": {0: "batch"}}
            return [Graph("model", _BERTGraph(model), (_ids(_LENGTH), _ids(_LENGTH), _real(_LENGTH)), inputs, outputs)]
        case Seq2Seq():
            n_layers, source = model.config.n_decoder_layers, _text("source_length")
            sides = {"source": source, "real": source}, {"encoded": source}
            encoder = Graph("encoder", _EncoderGraph(model), (_ids(_SOURCE), _real(_SOURCE)), *sides)
            encoded = torch.zeros(_BATCH, _SOURCE, model.config.d_model)
            past = empty_past(model.decoder.blocks, _BATCH, _PAST)
            inputs = {"ids": _text("length"), "encoded": source, "real": source, **_past(n_layers)}
            asked = (_ids(_LENGTH), encoded, _real(_SOURCE), past)
            return [encoder, Graph("decoder", _DecoderGraph(model), asked, inputs, _answers(n_layers))]
        case ViT():
            size = model.config.image_size
            images = torch.zeros(_BATCH, model.config.n_channels, size, size)
            return [Graph("model", model, (images,), {"images": {0: "batch"}}, {"logits": {0: "batch"}})]
    raise ConfigError("a {family} has no graph here; take it to Hugging Face (hf)", family=model.config.family)


def past_names(n_layers: int, prefix: str = "past") -> list[str]:
    """Names of a cache's tensors.

    >>> past_names(1)
    ['past.0.key', 'past.0.value']
    """
    return [f"{prefix}.{layer}.{part}" for layer in range(n_layers) for part in ("key", "value")]


def empty_past(blocks: Iterable[nn.Module], batch: int = 1, length: int = 0) -> list[Tensor]:
    """A cache that has read nothing (or ``length`` zeros): 2 tensors a layer, (B, n_kv_heads, P, D).

    A layer that lost heads to pruning has as many key heads as are left.
    """
    attentions = [cast("Attention", block.attention) for block in blocks]
    sizes = [(batch, len(each.shares), length, each.d_head) for each in attentions]
    return [torch.zeros(size) for size in sizes for _ in ("key", "value")]


def _ids(length: int) -> Tensor:
    return torch.zeros(_BATCH, length, dtype=torch.int64)


def _real(length: int) -> Tensor:
    return torch.ones(_BATCH, length, dtype=torch.bool)


def _text(length: str) -> Sizes:
    return {0: "batch", 1: length}


def _past(n_layers: int) -> dict[str, Sizes]:
    return {name: {0: "batch", 2: "past"} for name in past_names(n_layers)}


def _answers(n_layers: int) -> dict[str, Sizes]:
    present = {name: {0: "batch", 2: "past + length"} for name in past_names(n_layers, "present")}
    return {"logits": _text("length"), **present}
