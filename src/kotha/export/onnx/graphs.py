"""The model as ONNX graphs: inputs, outputs and dynamic dimensions.

The inputs of a GPT are new tokens and the keys and values of earlier ones; the outputs are logits and all keys and
values. With an empty past, the graph computes the plain model; if its output is passed back as the past, it generates
one token per step. A Seq2Seq has two graphs, encoder and decoder. BERT and ViT have no cache. All rows of a batch have
the same length; only encoders (BERT, a Seq2Seq's source) take a padding mask.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, cast

import torch
from torch import Tensor, nn

from kotha.model.attention import Attention, KeysValues
from kotha.model.bert import BERT
from kotha.model.family import Model
from kotha.model.gpt import GPT
from kotha.model.masks import Mask
from kotha.model.seq2seq import Seq2Seq
from kotha.model.vit import ViT

Sizes = dict[int, str]
# Example sizes, all different and none of them 1, because the exporter merges equal sizes and treats 1 as a constant.
_BATCH, _LENGTH, _PAST, _SOURCE = 2, 3, 5, 4


@dataclass(frozen=True)
class Graph:
    """A graph to export: a module, example inputs, and the names of inputs and outputs."""

    name: str
    module: nn.Module
    examples: tuple[Any, ...]
    inputs: dict[str, Sizes]  # names of the inputs, and of their dynamic dimensions
    outputs: dict[str, Sizes]


class GrowingCache:
    """A cache that concatenates past and new keys and values, and keeps the result as an output."""

    def __init__(self, past: Sequence[Tensor], n_read: int) -> None:
        self.past, self.n_read = past, n_read
        self.present: list[Tensor] = []

    def positions(self, n_new: int) -> Tensor:
        """Return the positions of the new tokens: (T,)."""
        return torch.arange(n_new, device=self.past[0].device) + self.n_read

    def mask(self, n_new: int) -> Mask:
        """Return the mask that lets each new token attend to itself and all earlier ones: (T, S)."""
        keys = torch.arange(self.n_read + n_new, device=self.past[0].device)
        return keys[None, :] <= self.positions(n_new)[:, None]

    def append(self, layer: int, keys: Tensor, values: Tensor) -> KeysValues:
        """Return past and new keys and values, each (B, n_kv_heads, S, D)."""
        grown = (torch.cat((self.past[2 * layer], keys), 2), torch.cat((self.past[2 * layer + 1], values), 2))
        self.present += grown
        return grown


class _WithPast(nn.Module):
    """A GPT, or a decoder with its memory, whose cache is an input and an output."""

    def __init__(self, model: Any) -> None:
        super().__init__()
        self.model = model

    def forward(self, ids: Tensor, past: list[Tensor]) -> tuple[Tensor, ...]:
        """(B, T) and 2 tensors per layer (B, n_kv_heads, P, D) -> (B, T, V) and 2 tensors per layer of length P + T."""
        cache = GrowingCache(past, past[0].shape[2])
        return self.model(ids, cache=cache), *cache.present


class _Decoder(_WithPast):
    def forward(self, ids: Tensor, encoded: Tensor, real: Tensor, past: list[Tensor]) -> tuple[Tensor, ...]:  # type: ignore[override]
        """(B, T), (B, S, C), (B, S) and the past -> (B, T, V) and the present."""
        cache = GrowingCache(past, past[0].shape[2])
        return self.model.head(self.model.decode(ids, encoded, real, cache)), *cache.present


class _Encoder(nn.Module):
    def __init__(self, model: Seq2Seq) -> None:
        super().__init__()
        self.model = model

    def forward(self, source: Tensor, real: Tensor) -> Tensor:
        """Encode the source: (B, S), (B, S) -> (B, S, C)."""
        return self.model.encode(source, real)


def graphs_of(model: Model) -> list[Graph]:
    """Return the graphs for a model, with its weights."""
    text, source = {0: "batch", 1: "length"}, {0: "batch", 1: "source_length"}
    ids = torch.zeros(_BATCH, _LENGTH, dtype=torch.int64)
    read, real = torch.zeros(_BATCH, _SOURCE, dtype=torch.int64), torch.ones(_BATCH, _SOURCE, dtype=torch.bool)
    match model:
        case GPT():
            past, inputs, outputs = _cache(model.stack.blocks)
            return [Graph("model", _WithPast(model), (ids, past), {"ids": text, **inputs}, outputs)]
        case BERT():
            inputs = dict.fromkeys(("ids", "segments", "real"), text)
            outputs = {"token_logits": text, "pair_logits": {0: "batch"}, "pooled": {0: "batch"}}
            return [Graph("model", model, (ids, ids.clone(), torch.ones_like(ids, dtype=torch.bool)), inputs, outputs)]
        case Seq2Seq():
            sides = {"source": source, "real": source}, {"encoded": source}
            past, inputs, outputs = _cache(model.decoder.blocks)
            examples = (ids, torch.zeros(_BATCH, _SOURCE, model.config.d_model), real, past)
            inputs = {"ids": text, "encoded": source, "real": source, **inputs}
            decoder = Graph("decoder", _Decoder(model), examples, inputs, outputs)
            return [Graph("encoder", _Encoder(model), (read, real), *sides), decoder]
        case ViT():
            size = model.config.image_size
            images = torch.zeros(_BATCH, model.config.n_channels, size, size)
            return [Graph("model", model, (images,), {"images": {0: "batch"}}, {"logits": {0: "batch"}})]
    raise AssertionError(f"no graph for {type(model).__name__}")


def past_names(n_layers: int, prefix: str = "past") -> list[str]:
    """Return the names of the tensors in a cache.

    >>> past_names(1)
    ['past.0.key', 'past.0.value']
    """
    return [f"{prefix}.{layer}.{part}" for layer in range(n_layers) for part in ("key", "value")]


def empty_past(blocks: Iterable[nn.Module], batch: int = 1, length: int = 0) -> list[Tensor]:
    """Return an empty cache, or one with ``length`` positions of zeros: 2 tensors per layer, (B, n_kv_heads, P, D).

    A pruned layer has only its remaining key heads.
    """
    attentions = [cast("Attention", block.attention) for block in blocks]
    sizes = [(batch, len(each.queries_per_kv_head), length, each.d_head) for each in attentions]
    return [torch.zeros(size) for size in sizes for _ in ("key", "value")]


def _cache(blocks: nn.ModuleList) -> tuple[list[Tensor], dict[str, Sizes], dict[str, Sizes]]:
    """Return an example cache, and the names of its inputs and outputs."""
    inputs = {name: {0: "batch", 2: "past"} for name in past_names(len(blocks))}
    present = {name: {0: "batch", 2: "past + length"} for name in past_names(len(blocks), "present")}
    return empty_past(blocks, _BATCH, _PAST), inputs, {"logits": {0: "batch", 1: "length"}, **present}
