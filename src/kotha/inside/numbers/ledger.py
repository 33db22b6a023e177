"""The ledger: every matrix in one forward pass by site, with the operation that computed it and the inputs.

Sites are those of ``hook_points.py`` plus intermediate steps that a trace does not name: ``L.attention.query`` (before
its norm and rotation), ``L.attention.joined`` (all heads concatenated), ``L.feedforward.up``, ``gate`` and ``inner``,
and the sums before a post-norm. Weights are included as matrices, transposed so that a row times a column gives a
number: ``L.attention.query.weight`` is (C, D) for each head.

Apart from reshaping and the final softmax, all numbers come from the model itself. Weights are not copied.

``residual_columns`` summarizes the residual stream as a grid of tokens by layers: the length of each vector, its change
in the layer and, for models that predict tokens, the prediction at that layer (the logit lens).
"""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any

import torch
from torch import Tensor, nn

from kotha.inside.heads.importance import silence
from kotha.inside.hook_points import AFTER, Site, layers, parts_of, stacks
from kotha.inside.inputs import ModelInput
from kotha.inside.lens import PositionPrediction, lens
from kotha.inside.numbers import arithmetic as by
from kotha.inside.numbers.arithmetic import CellOperation, Entry
from kotha.inside.trace import trace
from kotha.model.attention import Attention
from kotha.model.bert import BERT
from kotha.model.block import Block
from kotha.model.family import Model
from kotha.model.feedforward import SwiGLU
from kotha.model.lora import LowRankLinear
from kotha.model.norm import RMSNorm
from kotha.model.position import LearnedPositions, NoPositions
from kotha.model.seq2seq import Seq2Seq
from kotha.model.vit import ViT

NUMBERS, WORDS, CLASSES, TABLE = "numbers", "words", "classes", "table"
# Modules inside an attention or feed-forward module, and the site of each projection's output.
_INNER = ("query", "key", "value", "query_norm", "key_norm", "up", "gate")
_ENDS = {"query": "queries", "key": "keys", "value": "values"}


def keep(model: Model, given: ModelInput, silenced: Sequence[str] = ()) -> "Ledger":
    """Run a model and keep every matrix; ``silenced`` heads contribute nothing."""
    with silence(model, silenced), trace(model, more=_steps(model)) as seen:
        output = given.pass_through(model)
    return Ledger(model, given, silenced, {site: seen.passes(site) for site in seen}, output)


def _steps(model: Model) -> Iterator[Site]:
    """Yield the sites inside the parts that a trace does not name."""
    for name, block in layers(model).items():
        for part, module in parts_of(block).items():
            named = ((step, getattr(module, step, None)) for step in _INNER)
            yield from (Site(f"{name}.{part}.{step}", inner) for step, inner in named if inner is not None)
            yield Site(f"{name}.{part}_norm.input", getattr(block, f"{part}_norm"), entering=True)
        yield Site(f"{name}.feedforward.inner", block.feedforward.down, entering=True)
    if isinstance(model, ViT):
        yield Site("pixels", model.patches.projection, entering=True)
    if isinstance(model, BERT):
        yield from (Site(step, getattr(model, step)) for step in ("segments", "transform", "transform_norm"))
        yield Site("transform_bent", model.transform_norm, entering=True)


class Ledger:
    """All matrices in a forward pass, from the embedding lookup to the final softmax."""

    def __init__(
        self, model: Model, given: ModelInput, silenced: Sequence[str], seen: dict[str, list[Tensor]], output: Any
    ) -> None:
        self.model, self.given, self.output = model, given, output
        self.entries: dict[str, Entry] = {}
        self._body: Any = model
        self._seen, self._silenced = seen, silenced
        memory: str | None = None
        for order, (name, stack) in enumerate(stacks(model).items()):
            line = list(given.lines)[order]
            stream = self._embed_image(line) if isinstance(model, ViT) else self._embed(line, order)
            for layer, block in layers(model).items():
                if layer.startswith(f"{name}."):
                    entering = f"{layer}.residual_in"
                    if isinstance(model, BERT) and layer == "blocks.0":
                        self._norm(entering, stream, model.embedding_norm, line, "embedding_norm")
                    else:
                        self._put(entering, line, by.same(stream))
                    stream = self._layer(layer, block, line, memory)
            end = "norm" if name == "blocks" else f"{name}.norm"
            memory = stream = self._norm(end, stream, stack.norm, line)
        self._answer(stream, line)

    def __getitem__(self, site: str) -> Entry:
        return self.entries[site]

    def uses(self, site: str) -> list[str]:
        """Return the sites computed from a matrix, in the order of computation."""
        made = self.entries.values()
        return [each.site for each in made if each.operation is not None and site in each.operation.operands]

    @property
    def n_bytes(self) -> int:
        """Size of the recorded activations in bytes, without weights."""
        return sum(each.nbytes for passes in self._seen.values() for each in passes)

    def _at(self, site: str, order: int = -1) -> Tensor:
        """Return the value at a site, without the batch dimension."""
        return self._seen[site][order][0]

    def _put(
        self,
        site: str,
        rows: str,
        operation: CellOperation | None = None,
        values: Tensor | None = None,
        columns: str = NUMBERS,
        **heads: Any,
    ) -> str:
        """Add a matrix unless it exists already: the value recorded at its site, or the given values."""
        if site not in self.entries:
            values = self._at(site) if values is None else values
            self.entries[site] = Entry(site, values.detach().cpu(), rows, columns, operation, **heads)
        return site

    def _weights(
        self, name: str, module: Any, view: Callable[[Tensor], Tensor] = lambda values: values, **heads: Any
    ) -> list[str]:
        """Add a module's matrix as (in, out), or a norm's gain as (1, out), and its bias as (1, out)."""
        weight = module.merged() if isinstance(module, LowRankLinear) else module.weight
        found = {"weight": weight.mT if weight.ndim == 2 else weight[None]}
        if getattr(module, "bias", None) is not None:
            found["bias"] = module.bias[None]
        return [self._put(f"{name}.{part}", NUMBERS, None, view(each), **heads) for part, each in found.items()]

    def _product(self, site: str, rows: str, left: str, module: nn.Module, name: str = "", **more: Any) -> str:
        return self._put(site, rows, by.row_times_column(left, *self._weights(name or site, module)), **more)

    def _norm(self, site: str, stream: str, module: nn.Module, rows: str, name: str = "") -> str:
        if isinstance(module, RMSNorm | nn.LayerNorm):
            return self._put(site, rows, by.normed(stream, *self._weights(name or site, module), eps=module.eps))
        return self._put(site, rows, by.same(stream))

    # -- from pieces to vectors -----------------------------------------------------------------------------------

    def _embed(self, line: str, order: int) -> str:
        assert not hasattr(self.model, "body"), "inputs.read() rejects classifiers"
        model, ending = self._body, self._ending(line)
        ids = [int(piece.id or 0) for piece in self.given.lines[line]]
        table = self._put("tokens.weight", WORDS, values=model.tokens.weight)
        parts = [self._put(f"tokens{ending}", line, by.looked_up(table, ids=ids), self._at("tokens", order))]
        if isinstance(model, BERT):
            sentences = self._put("segments.weight", TABLE, values=model.segments.weight)
            parts.append(self._put("segments", line, by.looked_up(sentences, ids=self.given.inputs[1][0].tolist())))
        parts += self._places(model.positions, len(ids), line, f"places{ending}")
        factor = math.sqrt(model.config.d_model) if isinstance(model, Seq2Seq) else 1.0
        if len(parts) == 1 and factor == 1:
            return parts[0]
        added = by.sum_of_cells(*parts, factor=factor)
        return self._put(f"positions{ending}", line, added, self._at("positions", order))

    def _ending(self, line: str) -> str:
        """Return the suffix that distinguishes sites of this line, if there are several lines."""
        return "" if len(self.given.lines) == 1 else f".{line}"

    def _range(self, count: int) -> Tensor:
        return torch.arange(count, device=next(self.model.parameters()).device)

    def _places(self, positions: NoPositions, count: int, line: str, site: str) -> list[str]:
        """Add the position embeddings, if the model adds any to its input."""
        if isinstance(positions, LearnedPositions):
            learned = positions.table.weight
            table = self._put("places.weight", TABLE, values=learned)
            return [self._put(site, line, by.looked_up(table, ids=range(count)), learned[:count])]
        places = self._range(count)
        waves = positions(torch.zeros(1, count, self.model.config.d_model, device=places.device), places)[0]
        return [self._put(site, line, values=waves)] if bool(waves.any()) else []

    def _embed_image(self, line: str) -> str:
        model = self._body
        pixels = self._put("pixels", "squares", columns="pixels")
        patches = self._product("patches", "squares", pixels, model.patches.projection, "patches.projection")
        first = self._put("class_token", NUMBERS, values=model.class_token[None])
        joined = torch.cat((self[first].values, self[patches].values))
        sequence = self._put("sequence", line, by.behind(first, patches), joined)
        places = self._put("positions", line, values=model.positions(*model.patches.grid(self.given.inputs[0])))
        return self._put("embedded", line, by.sum_of_cells(sequence, places), self._at("blocks.0.residual_in"))

    # -- a layer --------------------------------------------------------------------------------------------------

    def _layer(self, name: str, block: Block, line: str, memory: str | None) -> str:
        stream, first = f"{name}.residual_in", block.norm_order == "pre"
        for part, module in parts_of(block).items():
            site, norm = f"{name}.{part}", getattr(block, f"{part}_norm")
            x = self._norm(f"{site}_norm", stream, norm, line) if first else stream
            if isinstance(module, Attention):
                added = self._attention(site, module, x, memory if part == "cross" and memory else x)
            else:
                added = self._feedforward(site, block, x, line)
            total = by.sum_of_cells(stream, added)
            if first:
                stream = self._put(f"{name}.{AFTER[part]}", line, total)
            else:
                summed = self._put(f"{site}_sum", line, total, self._at(f"{site}_norm.input"))
                stream = self._norm(f"{site}_norm", summed, norm, line)
        return self._put(f"{name}.residual_out", line, by.same(stream))  # already recorded in pre-norm models

    def _feedforward(self, site: str, block: Block, x: str, line: str) -> str:
        part = block.feedforward
        bent = [self._product(f"{site}.up", line, x, part.up)]
        if isinstance(part, SwiGLU):
            bent = [self._product(f"{site}.gate", line, x, part.gate), *bent]
        bend = self.model.config.activation.replace("swiglu", "silu")
        inner = self._put(f"{site}.inner", line, by.activated(*bent, bend=bend))
        return self._product(site, line, inner, part.down, f"{site}.down")

    def _attention(self, site: str, attention: Attention, x: str, memory: str) -> str:
        queries, keys = self.given.lines_of(site)
        heads = attention.heads
        shared = (place for place, n_heads in enumerate(attention.queries_per_kv_head) for _ in range(n_heads))
        own: dict[str, Any] = {"heads": heads, "places": tuple(range(len(heads)))}
        kv_heads: dict[str, Any] = {"heads": heads, "places": tuple(shared)}
        turn = () if site.endswith("cross") else self._rotation(queries)
        q = self._projected(site, attention, "query", x, queries, own, turn)
        k = self._projected(site, attention, "key", memory, keys, kv_heads, turn)
        v = self._projected(site, attention, "value", memory, keys, kv_heads, ())
        scores = self._put(f"{site}.scores", queries, by.row_times_row(q, k), columns=keys, **own)
        hidden = self._at(f"{site}.masked_scores")[0].isneginf().cpu()  # the same for every head
        if bool(hidden.any()):
            hiding = by.masked_score(scores, hidden=hidden)
            scores = self._put(f"{site}.masked_scores", queries, hiding, columns=keys, **own)
        weights = self._put(f"{site}.weights", queries, by.softmaxed(scores), columns=keys, **own)
        silent = [number for number in heads if f"{site}.{number}" in self._silenced]
        mixed = self._put(f"{site}.head_outputs", queries, by.mixed_by_weights(weights, v, silent=silent), **own)
        side_by_side = self._at(mixed).transpose(0, 1).flatten(1)  # (H, T, D) -> (T, H D)
        joining = by.joined(mixed, heads=heads, width=attention.d_head)
        joined = self._put(f"{site}.joined", queries, joining, side_by_side)
        return self._product(site, queries, joined, attention.output, f"{site}.output")

    def _projected(
        self,
        site: str,
        attention: Attention,
        step: str,
        x: str,
        line: str,
        heads: dict[str, Any],
        turn: tuple[str, ...],
    ) -> str:
        """Add the steps from vectors to queries, keys or values: product, then norm and rotation if present."""
        name, ends = f"{site}.{step}", f"{site}.{_ENDS[step]}"
        norm = getattr(attention, f"{step}_norm", None)

        def split(values: Tensor) -> Tensor:
            return values.reshape(values.shape[0], -1, attention.d_head).transpose(0, 1)  # (C, n D) -> (n, C, D)

        product = by.row_times_column(x, *self._weights(name, getattr(attention, step), split, **heads))
        normed = f"{name}_norm"
        stages = [name, *([normed] if isinstance(norm, RMSNorm) else []), *([ends] if turn else [])]
        stages[-1] = ends  # the last stage has the site's own name
        self._put(stages[0], line, product, split(self._at(name)), **heads)
        if isinstance(norm, RMSNorm):
            operation = by.normed(name, *self._weights(normed, norm), eps=norm.eps)
            self._put(stages[1], line, operation, self._at(normed), **heads)
        if turn:
            self._put(ends, line, by.rotated(stages[-2], *turn), **heads)
        return ends

    def _rotation(self, line: str) -> tuple[str, ...]:
        """Add the cosines and sines for rotary positions, if the model has them."""
        positions: Any = getattr(self.model, "positions", None)
        turn = None
        if isinstance(positions, NoPositions):
            turn = positions.rotation(self._range(len(self.given.lines[line])))
        if turn is None:
            return ()
        parts = {"cosines": turn.cos, "sines": turn.sin}
        return tuple(self._put(name + self._ending(line), line, values=part) for name, part in parts.items())

    # -- the prediction -------------------------------------------------------------------------------------------

    def _answer(self, stream: str, line: str) -> None:
        model, columns, logits = self._body, WORDS, self._seen["logits"][-1]
        if isinstance(model, ViT):
            columns, line = CLASSES, "answer"
            stream = self._put("summary", line, by.same(stream), self[stream].values[:1])
        else:
            logits = logits[0]
        if isinstance(model, BERT):
            self._product("transform", line, stream, model.transform)
            bent = self._put("transform_bent", line, by.activated("transform", bend="gelu"))
            stream = self._norm("transform_norm", bent, model.transform_norm, line)
        self._product("logits", line, stream, model.head, "head", values=logits, columns=columns)
        self._put("probabilities", line, by.softmaxed("logits"), logits.float().softmax(dim=-1), columns)


# -- the residual stream ----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class ResidualColumn:
    """The vectors at all positions, before the first layer or after one of the layers."""

    site: str
    layer: str | None  # None before the first layer
    line: str
    lengths: tuple[float, ...]
    changes: tuple[float, ...] | None  # length of the change in this layer, relative to the input
    cells: tuple[PositionPrediction, ...] | None  # for models that predict tokens


def residual_columns(ledger: Ledger) -> list[ResidualColumn]:
    """Return every column in the order of computation; silence the same heads as in the ledger."""
    model, given = ledger.model, ledger.given
    predictions = [] if isinstance(model, ViT) else [layer.positions for layer in lens(model, given).layers]
    columns = []
    for line, (name, stack) in zip(given.lines, stacks(model).items(), strict=True):
        predictions_of_line = predictions if line == list(given.lines)[-1] else []
        numbers = range(len(stack.blocks))
        sites = {None: f"{name}.0.residual_in"} | {f"{name}.{n}": f"{name}.{n}.residual_out" for n in numbers}
        before: Tensor | None = None
        for (layer, site), layer_predictions in zip_longest(sites.items(), predictions_of_line):
            vectors = ledger[site].values.double()  # (T, C)
            changes = None if before is None else (vectors - before).norm(dim=-1) / before.norm(dim=-1)
            lengths, moved = (
                None if each is None else tuple(each.tolist()) for each in (vectors.norm(dim=-1), changes)
            )
            columns.append(ResidualColumn(site, layer, line, lengths or (), moved, layer_predictions))
            before = vectors
    return columns
