"""The ledger: every matrix of one pass by its site, with the operation that made it and the matrices it read.

Sites are those of ``hook_points.py``, and between them the steps that a forward hook can see but a trace does not name:
``L.attention.query`` (before its norm and its turn), ``L.attention.joined`` (all heads side by side),
``L.feedforward.up``, ``gate`` and ``inner``, sums before a norm that comes last. Weights stand in it as matrices too,
turned so that a row times a column makes a number: ``L.attention.query.weight`` is (C, D) for each head.

Nothing is computed here that the model did not compute itself, but for shapes and the softmax at the end. Weights are
not copied.

``weave`` shows the residual stream of a ledger at one glance, tokens by layers: how long each vector is, how far its
layer moved it, and, for bodies that give words, what it would say if the model ended there (the logit lens).
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from kotha.inside.heads.importance import places_of, silence
from kotha.inside.hook_points import PARTS, Site, layers, stacks
from kotha.inside.inputs import ModelInput
from kotha.inside.lens import Opinion, lens
from kotha.inside.numbers import arithmetic as by
from kotha.inside.numbers.arithmetic import CellOperation, CellSource, Entry
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
# Steps inside an attention or a feed-forward, and what a projection ends in.
_INNER = ("query", "key", "value", "query_norm", "key_norm", "up", "gate")
_ENDS = {"query": "queries", "key": "keys", "value": "values"}


def keep(model: Model, given: ModelInput, silenced: Sequence[str] = ()) -> "Ledger":
    """Let a model read, and keep every matrix of it; ``silenced`` heads add nothing."""
    with silence(model, silenced), trace(model, more=_steps(model)) as seen:
        output = given.pass_through(model)
    return Ledger(model, given, silenced, {site: seen.passes(site) for site in seen}, output)


def _steps(model: Model) -> Iterator[Site]:
    """What can be watched inside the parts, beyond the sites that a trace names."""
    for name, block in layers(model).items():
        for part in PARTS:
            module = getattr(block, part)
            if module is not None:
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
    """All matrices of a pass, from the first lookup to the last softmax."""

    def __init__(
        self, model: Model, given: ModelInput, silenced: Sequence[str], seen: dict[str, list[Tensor]], output: Any
    ) -> None:
        self.model, self.given, self.output = model, given, output
        self.entries: dict[str, Entry] = {}
        self._seen, self._silent = seen, places_of(model, silenced)
        self._device = next(model.parameters()).device
        memory: str | None = None
        for order, (name, stack) in enumerate(stacks(model).items()):
            line = list(given.lines)[order]
            stream = self._embed(line, order)
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
        """What is made of a matrix, in the order of the arithmetic."""
        made = (each for each in self.entries.values() if each.operation is not None)
        return [each.site for each in made if each.operation and site in each.operation.operands]

    @property
    def n_bytes(self) -> int:
        """What it holds in memory, weights aside."""
        return sum(each.nbytes for passes in self._seen.values() for each in passes)

    def _at(self, site: str, order: int = -1) -> Tensor:
        """What a place showed, without the batch of one."""
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
        """Enter a matrix: what was seen at its site, or other values."""
        values = self._at(site) if values is None else values
        self.entries[site] = Entry(site, values.detach().cpu(), rows, columns, operation, **heads)
        return site

    def _given(self, site: str, values: Tensor, rows: str = NUMBERS, **heads: Any) -> str:
        return site if site in self.entries else self._put(site, rows, None, values, **heads)

    def _product(self, site: str, rows: str, left: str, module: nn.Linear, name: str = "", **more: Any) -> str:
        """A product with a matrix as it is multiplied, (in, out), and its bias, (1, out)."""
        name = name or site
        weight = self._given(f"{name}.weight", _merged(module).mT)
        bias = None if module.bias is None else self._given(f"{name}.bias", module.bias[None])
        return self._put(site, rows, by.row_times_column(left, weight, bias), **more)

    def _norm(self, site: str, stream: str, module: nn.Module, rows: str, name: str = "") -> str:
        operation: CellOperation = by.same(stream)
        if isinstance(module, RMSNorm | nn.LayerNorm):
            gain = self._given(f"{name or site}.weight", module.weight[None])
            bias = None
            if isinstance(module, nn.LayerNorm):
                bias = self._given(f"{name or site}.bias", module.bias[None])
            operation = by.normed(stream, gain, bias, module.eps)
        return self._put(site, rows, operation)

    # -- from pieces to vectors -----------------------------------------------------------------------------------

    def _embed(self, line: str, order: int) -> str:
        if isinstance(self.model, ViT):
            return self._embed_image(self.model, line)
        assert not hasattr(self.model, "body"), "a classifier is refused by whoever has the input"
        model: Any = self.model
        ending = "" if len(self.given.lines) == 1 else f".{line}"
        ids = [int(piece.id or 0) for piece in self.given.lines[line]]
        table = self._given("tokens.weight", model.tokens.weight, WORDS)
        parts = [self._put(f"tokens{ending}", line, by.looked_up(table, ids), self._at("tokens", order))]
        factor = math.sqrt(model.config.d_model) if isinstance(model, Seq2Seq) else 1.0
        if isinstance(model, BERT):
            which = self.given.inputs[1][0].tolist()
            sentences = self._given("segments.weight", model.segments.weight, TABLE)
            parts.append(self._put("segments", line, by.looked_up(sentences, which)))
        places = self._places(model.positions, len(ids), line, f"places{ending}")
        if places is None and len(parts) == 1 and factor == 1:
            return parts[0]
        parts += [] if places is None else [places]
        added = by.sum_of_cells(tuple(parts), (factor, *[1.0] * (len(parts) - 1)))
        return self._put(f"positions{ending}", line, added, self._at("positions", order))

    def _places(self, positions: NoPositions, count: int, line: str, site: str) -> str | None:
        """What each place adds, where places are added."""
        if isinstance(positions, LearnedPositions):
            table = self._given("places.weight", positions.table.weight, TABLE)
            return self._put(site, line, by.looked_up(table, range(count)), positions.table.weight[:count])
        nothing = torch.zeros(1, count, self.model.config.d_model, device=self._device)
        waves = positions(nothing, torch.arange(count, device=self._device))[0]
        return self._put(site, line, values=waves) if bool(waves.any()) else None

    def _embed_image(self, model: ViT, line: str) -> str:
        pixels = self._put("pixels", "squares", columns="pixels")
        self._product("patches", "squares", pixels, model.patches.projection, "patches.projection")
        first = self._given("class_token", model.class_token[None])
        whole = torch.cat((model.class_token[None].cpu(), self._at("patches").cpu()))

        def find(row: int, column: int) -> CellSource:
            return CellSource(first, 0, column) if row == 0 else CellSource("patches", row - 1, column)

        self._put("sequence", line, by.copied((first, "patches"), find), whole)
        self._put("positions", line, values=model.positions(*model.patches.grid(self.given.inputs[0])))
        added = by.sum_of_cells(("sequence", "positions"))
        return self._put("embedded", line, added, self._at("blocks.0.residual_in"))

    # -- a layer --------------------------------------------------------------------------------------------------

    def _layer(self, name: str, block: Block, line: str, memory: str | None) -> str:
        stream, parts = f"{name}.residual_in", [part for part in PARTS if getattr(block, part) is not None]
        sums = {"attention": f"{name}.residual_mid", "cross": f"{name}.residual_cross"}
        for at, part in enumerate(parts):
            site, norm = f"{name}.{part}", getattr(block, f"{part}_norm")
            if block.norm_order == "pre":
                added = self._part(site, block, self._norm(f"{site}_norm", stream, norm, line), line, memory)
                following = f"{name}.{parts[at + 1]}_norm.input" if part != "feedforward" else f"{name}.residual_out"
                total, values = sums.get(part, f"{name}.residual_out"), self._at(following)
                stream = self._put(total, line, by.sum_of_cells((stream, added)), values)
            else:
                added = self._part(site, block, stream, line, memory)
                before = self._at(f"{site}_norm.input")
                total = self._put(f"{site}_sum", line, by.sum_of_cells((stream, added)), before)
                stream = self._norm(f"{site}_norm", total, norm, line)
        return stream if block.norm_order == "pre" else self._put(f"{name}.residual_out", line, by.same(stream))

    def _part(self, site: str, block: Block, x: str, line: str, memory: str | None) -> str:
        if site.endswith("feedforward"):
            return self._feedforward(site, block, x, line)
        attention = block.cross if site.endswith("cross") else block.attention
        assert attention is not None, "the layer has it"
        return self._attention(site, attention, x, memory if site.endswith("cross") and memory is not None else x)

    def _feedforward(self, site: str, block: Block, x: str, line: str) -> str:
        part = block.feedforward
        up = self._product(f"{site}.up", line, x, part.up)
        if isinstance(part, SwiGLU):
            bent = by.activated(self._product(f"{site}.gate", line, x, part.gate), "silu", up)
        else:
            bent = by.activated(up, self.model.config.activation)
        return self._product(site, line, self._put(f"{site}.inner", line, bent), part.down, f"{site}.down")

    def _attention(self, site: str, attention: Attention, x: str, memory: str) -> str:
        queries, keys = self.given.lines_of(site)
        heads, width = attention.heads, attention.d_head
        shared = [place for place, n_heads in enumerate(attention.shares) for _ in range(n_heads)]
        own: dict[str, Any] = {"heads": heads, "places": tuple(range(len(heads)))}
        lent: dict[str, Any] = {"heads": heads, "places": tuple(shared)}
        rotation = None if site.endswith("cross") else self._rotation(queries)
        q = self._projected(site, attention, "query", x, queries, own, rotation)
        k = self._projected(site, attention, "key", memory, keys, lent, rotation)
        v = self._projected(site, attention, "value", memory, keys, lent)
        scores = self._put(f"{site}.scores", queries, by.row_times_row(q, k), columns=keys, **own)
        hidden = self._at(f"{site}.masked_scores")[0].isneginf().cpu()  # from every head alike
        if bool(hidden.any()):
            hiding = by.masked_score(scores, lambda row, column: bool(hidden[row, column]))
            scores = self._put(f"{site}.masked_scores", queries, hiding, columns=keys, **own)
        weights = self._put(f"{site}.weights", queries, by.softmaxed(scores), columns=keys, **own)
        silent = tuple(heads[place] for place in self._silent.get(site, ()))
        mixed = self._put(f"{site}.head_outputs", queries, by.mixed_by_weights(weights, v, silent), **own)  # (H, T, D)

        def find(row: int, column: int) -> CellSource:
            return CellSource(mixed, row, column % width, heads[column // width])

        side_by_side = self._at(mixed).transpose(0, 1).flatten(1)
        joined = self._put(f"{site}.joined", queries, by.copied((mixed,), find, "join"), side_by_side)
        return self._product(site, queries, joined, attention.output, f"{site}.output")

    def _projected(
        self,
        site: str,
        attention: Attention,
        step: str,
        x: str,
        line: str,
        heads: dict[str, Any],
        rotation: tuple[str, str] | None = None,
    ) -> str:
        """From vectors to queries, keys or values: product, norm, turn, as far as the model has them."""
        module: nn.Linear = getattr(attention, step)
        norm, ends = getattr(attention, f"{step}_norm", None), f"{site}.{_ENDS[step]}"

        def split(values: Tensor) -> Tensor:
            return values.reshape(values.shape[0], -1, attention.d_head).transpose(0, 1)  # (C, n D) -> (n, C, D)

        by_head = self._given(f"{site}.{step}.weight", split(_merged(module).mT), **heads)
        bias = None
        if module.bias is not None:
            bias = self._given(f"{site}.{step}.bias", split(module.bias[None]), **heads)
        name = f"{site}.{step}"
        is_last = rotation is None and not isinstance(norm, RMSNorm)
        product, values = by.row_times_column(x, by_head, bias), split(self._at(name))
        before = self._put(ends if is_last else name, line, product, values, **heads)
        if isinstance(norm, RMSNorm):
            gain = self._given(f"{name}_norm.weight", norm.weight[None])
            operation, values = by.normed(before, gain, None, norm.eps), self._at(f"{name}_norm")  # already (n, T, D)
            before = self._put(ends if rotation is None else f"{name}_norm", line, operation, values, **heads)
        return before if rotation is None else self._put(ends, line, by.rotated(before, *rotation), **heads)

    def _rotation(self, line: str) -> tuple[str, str] | None:
        """Cosine and sine of the angles that places turn by, where they do."""
        positions: Any = getattr(self.model, "positions", None)
        if not isinstance(positions, NoPositions):
            return None
        turn = positions.rotation(torch.arange(len(self.given.lines[line]), device=self._device))
        if turn is None:
            return None
        ending = "" if len(self.given.lines) == 1 else f".{line}"
        return self._given(f"cosines{ending}", turn.cos, line), self._given(f"sines{ending}", turn.sin, line)

    # -- the answer -----------------------------------------------------------------------------------------------

    def _answer(self, stream: str, line: str) -> None:
        model: Any = self.model
        columns, logits = WORDS, self._seen["logits"][-1]
        if isinstance(model, ViT):
            columns, line = CLASSES, "answer"
            stream = self._put("summary", line, by.same(stream), self.entries[stream].values[:1])
        else:
            logits = logits[0]
        if isinstance(model, BERT):
            self._product("transform", line, stream, model.transform)
            bent = self._put("transform_bent", line, by.activated("transform", "gelu"))
            stream = self._norm("transform_norm", bent, model.transform_norm, line)
        self._product("logits", line, stream, model.head, "head", values=logits, columns=columns)
        chances = logits.float().softmax(dim=-1)
        self._put("probabilities", line, by.softmaxed("logits"), chances, columns)


def _merged(module: nn.Linear) -> Tensor:
    return module.merged() if isinstance(module, LowRankLinear) else module.weight


# -- the residual stream ----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class WeaveColumn:
    """One line of vectors, before the first layer or after one."""

    site: str
    layer: str | None  # None before the first
    line: str
    lengths: tuple[float, ...]
    changes: tuple[float, ...] | None  # the length of the difference over that of what came in
    opinions: tuple[Opinion, ...] | None


def weave(ledger: Ledger) -> list[WeaveColumn]:
    """Every column, in the order in which they work; heads that the ledger has silenced are to be silent here too."""
    model, given = ledger.model, ledger.given
    read = None if isinstance(model, ViT) else lens(model, given)
    columns = []
    for line, (name, stack) in zip(given.lines, stacks(model).items(), strict=True):
        sites = [f"{name}.0.residual_in", *(f"{name}.{layer}.residual_out" for layer in range(len(stack.blocks)))]
        before: Tensor | None = None
        for number, site in enumerate(sites):
            vectors = ledger[site].values.double()  # (T, C)
            changes = None if before is None else (vectors - before).norm(dim=-1) / before.norm(dim=-1)
            columns.append(
                WeaveColumn(
                    site,
                    None if number == 0 else f"{name}.{number - 1}",
                    line,
                    tuple(vectors.norm(dim=-1).tolist()),
                    None if changes is None else tuple(changes.tolist()),
                    read.opinions[number] if read is not None and read.line == line else None,
                )
            )
            before = vectors
    return columns
